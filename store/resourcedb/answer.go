package resourcedb

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/query"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/resource/resident"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/text"
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

// typeValue returns the value that stands for a type. It is the row id, because
// types can be renamed.
func typeValue(id int64) string { return strconv.FormatInt(id, 10) }

// typeName returns the name of the type that a value stands for.
func (h *heldResources) typeName(value string) string {
	id, _ := strconv.ParseInt(value, 10, 64) // as typeValue wrote it
	return h.types[id]
}

// valuesOfTypes returns the values of the types that have one of the names.
func (h *heldResources) valuesOfTypes(names []string) (values []string) {
	for id, name := range h.types {
		if slices.Contains(names, name) {
			values = append(values, typeValue(id))
		}
	}
	return values
}

// facet returns the first values of a facet with their counts, at most one more
// than the request wants.
func (a answer) facet(of resource.FacetRequest) []resident.Count {
	first, start := of.First+1, text.OrEmpty(of.StartsWith)
	switch of.By {
	case resource.FacetProject:
		return a.held.CountValues(resident.Column{Kind: resident.OfProject}, a.sets, start, first)
	case resource.FacetVisibility:
		return a.held.CountValues(resident.Column{Kind: resident.OfVisibility}, a.sets, start, first)
	case resource.FacetTag:
		return a.held.CountValues(resident.Column{Kind: resident.OfTag}, a.sets, text.Fold(start), first)
	case resource.FacetMetadataKey:
		return a.held.CountKeys(a.sets, start, first)
	case resource.FacetMetadataValue:
		return a.held.CountValues(resident.Column{Kind: resident.OfItem, Key: *of.Key}, a.sets, start, first)
	}
	return a.types(start, first)
}

// types returns the type names that begin with start, and their counts: at most
// first of them, the largest counts first.
func (a answer) types(start string, first int) []resident.Count {
	var named []resident.Count
	for _, found := range a.held.CountValues(resident.Column{Kind: resident.OfType}, a.sets, "", math.MaxInt) {
		if name := a.held.typeName(found.Value); strings.HasPrefix(name, start) {
			named = append(named, resident.Count{Group: name, Value: name, Count: found.Count})
		}
	}
	slices.SortFunc(named, func(a, b resident.Count) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Group, b.Group))
	})
	return named[:min(first, len(named))]
}

// keys returns the metadata keys after the given one, in order.
func (a answer) keys(after string) (keys []resource.MetadataKey) {
	for _, found := range a.held.CountKeys(a.sets, "", math.MaxInt) {
		if found.Value > after {
			keys = append(keys, resource.MetadataKey{Key: found.Value, ResourceCount: found.Count})
		}
	}
	slices.SortFunc(keys, func(a, b resource.MetadataKey) int { return strings.Compare(a.Key, b.Key) })
	return keys
}

// explanation counts the resources that the viewer may see, the ones that pass
// each clause, and the ones that pass it and all clauses before it.
func (a answer) explanation(clauses []clause) *resource.Explanation {
	explanation := explanationOf(clauses)
	sets := []resident.Clause{}
	for _, c := range clauses {
		if c.Ignored {
			sets = append(sets, resident.All())
		} else {
			sets = append(sets, a.held.compile(c.Condition))
		}
	}
	considered, passing, remaining := a.held.Explain(a.sets[0], sets)
	explanation.Considered = considered
	for i := range explanation.Clauses {
		explanation.Clauses[i].Passing, explanation.Clauses[i].Remaining = passing[i], remaining[i]
	}
	return explanation
}
