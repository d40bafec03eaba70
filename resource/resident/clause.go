package resident

import (
	"fmt"
	"iter"
	"math/bits"
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/text"
)

// Clause is a compiled condition. It returns the set of the resources of a part
// that meet the condition. The caller owns the set. For resources that have
// changed since the part was made, the set may be wrong.
type Clause func(part) Set

// inColumn returns the clause for the resources that add finds in the values of
// a column.
func inColumn(in Column, add func(of *postings, holds Set)) Clause {
	return func(p part) Set {
		holds := newSet(len(p.uuids))
		if of := p.columns[in]; of != nil {
			add(of, holds)
		}
		return holds
	}
}

// Has holds for the resources with one of the values in a column.
func Has(in Column, values ...string) Clause {
	return inColumn(in, func(of *postings, holds Set) {
		for _, value := range values {
			if place, found := slices.BinarySearch(of.values, value); found {
				addAll(holds, of.of(place))
			}
		}
	})
}

// beginsWith holds for the resources with a value in a column that begins with a
// prefix.
func beginsWith(in Column, begin string) Clause {
	return inColumn(in, func(of *postings, holds Set) {
		if from, to := of.between(begin); from < to {
			addAll(holds, of.within(from, to))
		}
	})
}

// Contains holds for the resources with a value in a column that passes a test.
// It tests each value once.
func Contains(in Column, passes func(value string) bool) Clause {
	return inColumn(in, func(of *postings, holds Set) {
		for i, value := range of.values {
			if passes(value) {
				addAll(holds, of.of(i))
			}
		}
	})
}

// Exists holds for the resources with a value in a column.
func Exists(in Column) Clause {
	return inColumn(in, func(of *postings, holds Set) { addAll(holds, of.members) })
}

// hasTag holds for the resources with one of the folded tags.
func hasTag(folded ...string) Clause {
	return Any(lists.Map(folded, func(tag string) Clause { return beginsWith(Column{Kind: OfTag}, TagValue(tag, "")) })...)
}

// Among holds for the resources with the uuids.
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

// All holds if every clause holds.
func All(clauses ...Clause) Clause {
	return func(p part) Set {
		holds := fullSet(len(p.uuids))
		for _, clause := range clauses {
			holds.and(clause(p))
		}
		return holds
	}
}

// Any holds if at least one clause holds.
func Any(clauses ...Clause) Clause {
	return func(p part) Set {
		holds := newSet(len(p.uuids))
		for _, clause := range clauses {
			holds.or(clause(p))
		}
		return holds
	}
}

// Not holds if a clause does not hold.
func Not(clause Clause) Clause {
	return func(p part) Set {
		holds := clause(p)
		holds.not()
		return holds
	}
}

// Seen returns the clause for the resources in a viewer's reach.
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

// Compile compiles a condition. It panics unless query.DecidedBySets accepts
// the condition. types returns the values that stand for named types.
func Compile(c resource.Condition, types func(names []string) []string) Clause {
	members := func() []Clause {
		return lists.Map(c.Members, func(member resource.Condition) Clause { return Compile(member, types) })
	}
	operands := c.Test.Operands
	switch c.Kind {
	case resource.ConditionAll:
		return All(members()...)
	case resource.ConditionAny:
		return Any(members()...)
	case resource.ConditionNot:
		return Not(members()[0])
	case resource.ConditionNever:
		return Any()
	case resource.ConditionMetadata:
		return compileTest(c.Test)
	case resource.ConditionType:
		return Has(Column{Kind: OfType}, types(operands)...)
	case resource.ConditionProject:
		return Has(Column{Kind: OfProject}, operands...)
	case resource.ConditionVisibility:
		return Has(Column{Kind: OfVisibility}, operands...)
	case resource.ConditionName:
		return Has(Column{Kind: OfName}, operands...)
	case resource.ConditionNameContains:
		return Contains(Column{Kind: OfName}, func(name string) bool { return text.ContainsFolded(name, operands[0]) })
	case resource.ConditionUUID:
		return Among(operands)
	case resource.ConditionTag:
		return hasTag(operands...)
	}
	panic(fmt.Sprintf("sets do not decide conditions of kind %d", c.Kind))
}

func compileTest(test resource.Test) Clause {
	in := Column{OfItem, test.Name}
	switch test.Operator {
	case resource.Exists:
		return Exists(in)
	case resource.Equals:
		return Has(in, test.Operands...)
	case resource.HasPrefix:
		return beginsWith(in, test.Operands[0])
	case resource.Has:
		return Contains(in, func(value string) bool { return strings.Contains(value, test.Operands[0]) })
	}
	panic(fmt.Sprintf("sets do not decide operator %d", test.Operator))
}

func addAll(to Set, members []uint32) {
	for _, number := range members {
		to.add(number)
	}
}

// Set is a bitset of resources of a part, by number.
type Set []uint64

func newSet(count int) Set { return make(Set, (count+63)/64) }

// fullSet returns the set of the numbers below count.
func fullSet(count int) Set {
	set := newSet(count)
	for i := range set {
		set[i] = ^uint64(0)
	}
	if rest := count % 64; rest > 0 {
		set[len(set)-1] = 1<<rest - 1
	}
	return set
}

func (s Set) add(number uint32)      { s[number/64] |= 1 << (number % 64) }
func (s Set) remove(number uint32)   { s[number/64] &^= 1 << (number % 64) }
func (s Set) has(number uint32) bool { return s[number/64]>>(number%64)&1 == 1 }

// among returns how many of the numbers are in the set.
func (s Set) among(numbers []uint32) (count int) {
	for _, number := range numbers {
		count += int(s[number/64] >> (number % 64) & 1)
	}
	return count
}

func (s Set) count() (count int) {
	for _, word := range s {
		count += bits.OnesCount64(word)
	}
	return count
}

// all yields the numbers in order.
func (s Set) all() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for i, word := range s {
			for ; word != 0; word &= word - 1 {
				if !yield(uint32(i*64 + bits.TrailingZeros64(word))) {
					return
				}
			}
		}
	}
}

// and intersects the set with another one.
func (s Set) and(other Set) {
	for i := range s {
		s[i] &= other[i]
	}
}

// or adds the members of another set.
func (s Set) or(other Set) {
	for i := range s {
		s[i] |= other[i]
	}
}

// not complements the set, including numbers beyond the last resource.
func (s Set) not() {
	for i := range s {
		s[i] = ^s[i]
	}
}
