package resourcedb

import (
	"context"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/query"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/resource/resident"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
)

// answer is the plan for a question, as query.Choose decided.
type answer struct {
	query.Decision
	// held are the resources at the instant that the request reads. sets are
	// the conditions that memory tests. Both are unset where the database
	// answers alone.
	held *heldResources
	sets []resident.Clause
	// clauses are the conditions that the database tests.
	clauses []clause
}

// bySets reports whether memory tests all conditions.
func (a answer) bySets() bool { return a.Compiler == query.Sets }

// answerOf returns the plan for a question about clauses, and notes it for the
// log of slow operations. The caller leaves the conditions of the question
// empty.
func (s *ResourceStore) answerOf(ctx context.Context, q query.Question, clauses []clause) (answer, error) {
	q.Conditions = conditionsOf(clauses)
	decision := s.choose(ctx, q)
	if decision.Compiler == query.SQL {
		return s.answeredBySQL(ctx, q, decision, clauses), nil
	}
	held, err := s.resourcesAt(ctx)
	if err != nil {
		return answer{}, err
	}
	if held == nil {
		return s.answeredBySQL(ctx, q, query.Decision{Compiler: query.SQL, Why: "memory does not have the snapshot"},
			clauses), nil
	}
	found := answer{Decision: decision, held: held, sets: []resident.Clause{seenBySets(ctx)}}
	for _, c := range clauses {
		switch {
		case c.Ignored:
		case query.DecidedBySets(c.Condition):
			found.sets = append(found.sets, held.compile(c.Condition))
		default:
			found.clauses = append(found.clauses, c)
		}
	}
	sqldb.Decided(ctx, q.Use.String()+" by "+decision.String())
	if decision.Compiler == query.Narrowed {
		found.clauses = append([]clause{{among: append([]int64{}, held.Matching(found.sets)...)}}, found.clauses...)
	}
	return found, nil
}

func (s *ResourceStore) answeredBySQL(ctx context.Context, q query.Question,
	decision query.Decision, clauses []clause) answer {
	sqldb.Decided(ctx, q.Use.String()+" by "+decision.String())
	return answer{Decision: decision, clauses: clauses}
}

// choose decides how to answer a question. It counts matches only where the
// decision depends on the count. It counts in memory, which may lag behind the
// database; only the decision depends on that count. If memory could answer but
// has no resources, choose starts to load them, and decides for the database.
func (s *ResourceStore) choose(ctx context.Context, q query.Question) query.Decision {
	if s.memory == nil {
		return query.Choose(q, query.Counts{})
	}
	held := s.memory.Held()
	if held == nil {
		if query.Choose(q, query.Counts{Resources: 1}).Compiler != query.SQL {
			s.loadSoon()
		}
		return query.Choose(q, query.Counts{})
	}
	counts := query.Counts{Resources: max(1, held.Count()), Providers: int(s.Sizes()["resource_providers"])}
	decision := query.Choose(q, counts)
	needsRows := decision.Compiler == query.Narrowed || q.Use == query.Page && decision.Compiler == query.Sets
	if needsRows && !s.IsReading(ctx) {
		return query.Decision{Compiler: query.SQL, Why: "no transaction holds a snapshot"}
	}
	if decision.Compiler == query.Narrowed || q.Use == query.Hosts && decision.Compiler == query.Sets {
		sets := []resident.Clause{seenBySets(ctx)}
		for _, c := range q.Conditions {
			if query.DecidedBySets(c) {
				sets = append(sets, held.compile(c))
			}
		}
		counts.Matching = held.CountMatching(sets)
		decision = query.Choose(q, counts)
	}
	return decision
}

// compile returns a condition as a set of resources.
func (h *heldResources) compile(c resource.Condition) resident.Clause {
	return resident.Compile(c, h.valuesOfTypes)
}

// seenBySets returns the set of the resources that the viewer may see.
func seenBySets(ctx context.Context) resident.Clause {
	return resident.Seen(resource.ReachOf(access.ViewerFrom(ctx)))
}

// page returns the row ids of one page, and the next one if there is one, in the
// direction of the request.
func (a answer) page(order page.Order, pages paging.Paging) []int64 {
	of := resident.Order{In: resident.Column{Kind: columnOf[resource.OrderField(order.Field)]},
		Descending: pages.IsReversed()}
	if of.In.Kind == resident.OfType {
		of.Name = a.held.typeName
	}
	for _, bound := range pages.Bounds() {
		key := bound.At.Key
		if pages.Key.IsTime {
			at, _ := time.Parse(time.RFC3339Nano, key) // as Paging checked
			key = resident.TimeKey(at.UnixNano())
		}
		of.Bounds = append(of.Bounds, resident.Bound{IsBelow: bound.Operator == "<", Key: key, UUID: bound.At.ID})
	}
	return a.held.First(a.sets, of, pages.Limit())
}

// columnOf maps each order to its column in memory.
var columnOf = map[resource.OrderField]resident.Kind{
	resource.OrderByName: resident.OfName, resource.OrderByType: resident.OfType,
	resource.OrderByProject: resident.OfProject,
	resource.OrderByCreated: resident.Created, resource.OrderByUpdated: resident.Updated,
}
