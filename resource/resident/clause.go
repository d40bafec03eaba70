package resident

import (
	"slices"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/resource"
)

// Clause is a condition on resources, which returns those of a part of which it
// holds. What it returns is the caller's; of resources that are no longer as they
// were it may be wrong.
type Clause func(part) Set

// Has holds for the resources that have one of some values in a column.
func Has(in Column, values ...string) Clause {
	return func(p part) Set {
		holds, of := newSet(len(p.uuids)), p.columns[in]
		if of == nil {
			return holds
		}
		for _, value := range values {
			if place, found := slices.BinarySearch(of.values, value); found {
				addAll(holds, of.of(place))
			}
		}
		return holds
	}
}

// Begins holds for the resources that have a value in a column which begins with
// a text.
func Begins(in Column, begin string) Clause {
	return func(p part) Set {
		holds, of := newSet(len(p.uuids)), p.columns[in]
		if of == nil {
			return holds
		}
		from, to := of.between(begin)
		for i := from; i < to; i++ {
			addAll(holds, of.of(i))
		}
		return holds
	}
}

// HasTag holds for the resources with one of some tags, which are folded.
func HasTag(folded ...string) Clause {
	return Any(lists.Map(folded, func(tag string) Clause { return Begins(Column{Kind: OfTag}, TagValue(tag, "")) })...)
}

// Among holds for the resources with one of some uuids.
func Among(uuids []string) Clause {
	return func(p part) Set {
		holds := newSet(len(p.uuids))
		for _, uuid := range uuids {
			if number, found := p.number(uuid); found {
				holds.add(number)
			}
		}
		return holds
	}
}

// All holds where each clause holds.
func All(clauses ...Clause) Clause {
	return func(p part) Set {
		holds := fullSet(len(p.uuids))
		for _, clause := range clauses {
			holds.and(clause(p))
		}
		return holds
	}
}

// Any holds where one of the clauses holds.
func Any(clauses ...Clause) Clause {
	return func(p part) Set {
		holds := newSet(len(p.uuids))
		for _, clause := range clauses {
			holds.or(clause(p))
		}
		return holds
	}
}

// Not holds where a clause does not hold.
func Not(clause Clause) Clause {
	return func(p part) Set {
		holds := clause(p)
		holds.not()
		return holds
	}
}

// Seen holds for the resources that viewers with a reach may see.
func Seen(reach resource.Reach) Clause {
	switch {
	case reach.None:
		return Any()
	case reach.All:
		return All()
	case reach.Project == "":
		return Has(Column{Kind: OfVisibility}, reach.Visibility)
	}
	return Any(Has(Column{Kind: OfVisibility}, reach.Visibility), Has(Column{Kind: OfProject}, reach.Project))
}

// Meets returns the clause of a condition; false for one that asks for anything
// else than keys, values and beginnings of values of metadata.
func Meets(c resource.Condition) (Clause, bool) {
	switch c.Kind {
	case resource.ConditionMetadata:
		return meetsTest(c.Test)
	case resource.ConditionNever:
		return Any(), true
	case resource.ConditionAll, resource.ConditionAny, resource.ConditionNot:
		members := make([]Clause, len(c.Members))
		for i, member := range c.Members {
			ok := false
			if members[i], ok = Meets(member); !ok {
				return nil, false
			}
		}
		switch c.Kind {
		case resource.ConditionAll:
			return All(members...), true
		case resource.ConditionAny:
			return Any(members...), true
		}
		return Not(members[0]), true
	}
	return nil, false
}

func meetsTest(test resource.Test) (Clause, bool) {
	in := Column{OfItem, test.Name}
	switch test.Operator {
	case resource.Exists:
		return Begins(in, ""), true
	case resource.Equals:
		return Has(in, test.Operands...), true
	case resource.HasPrefix:
		return Begins(in, test.Operands[0]), true
	}
	return nil, false
}

func addAll(to Set, members []uint32) {
	for _, number := range members {
		to.add(number)
	}
}
