package resident

import (
	"iter"
	"math/bits"
)

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
