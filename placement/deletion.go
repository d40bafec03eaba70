package placement

import "fmt"

// MaxDeleted is the maximum number of providers that are deleted together.
const MaxDeleted = 1000

// TreeDeletion deletes a provider. It follows `DeleteResourceProviderInput`.
type TreeDeletion struct {
	Provider string // uuid
	// WithDescendants means that the whole subtree is deleted, or nothing.
	WithDescendants bool
	DryRun          bool
}

// Deletion deletes all allocations of consumers. It follows
// `DeleteAllocationsForManyInput`.
type Deletion struct {
	Consumers []string // uuids
	// Atomic means that either all allocations are deleted or none.
	Atomic bool
	DryRun bool
}

// Validate returns every problem of the deletion's form, each at its path below
// path ("input"). It does not check existence.
func (d *Deletion) Validate(path string) []Problem { return validateConsumers(d.Consumers, path) }

// Delete releases the consumers of a valid deletion. It returns a refusal for
// each consumer without allocations and nil for the others, in the order of the
// input, each at its path below path ("input"). An atomic deletion with a
// refusal releases no consumer.
func (l *Ledger) Delete(deletion *Deletion, path string) []*Refusal {
	refused, found := make([]*Refusal, len(deletion.Consumers)), false
	path = under(path, "consumers")
	for i, uuid := range deletion.Consumers {
		if l.Consumer(uuid).Generation == 0 {
			found = true
			refused[i] = &Refusal{Kind: NotHeld,
				Problem: Problem{Path: at(path, i), Message: fmt.Sprintf("consumer %s has no allocations", uuid)}}
		}
	}
	for i, uuid := range deletion.Consumers {
		if refused[i] == nil && !(found && deletion.Atomic) {
			l.Release(uuid)
		}
	}
	return refused
}
