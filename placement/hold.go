package placement

// MaxHold is the maximum number of seconds of a hold.
const MaxHold = 24 * 60 * 60

// Confirmation ends the holds of consumers, which keep their allocations. It
// follows `ConfirmAllocationsInput`.
type Confirmation struct {
	Consumers []string // uuids
	DryRun    bool
}

// Validate returns every problem of the confirmation's form, each at its path
// below path ("input").
func (c *Confirmation) Validate(path string) []Problem {
	return validateConsumers(c.Consumers, path)
}

// validateConsumers returns the problems of a list of uuids of consumers, each at
// its path below path.
func validateConsumers(uuids []string, path string) []Problem {
	var v validator
	path = under(path, "consumers")
	v.require(len(uuids) > 0, path, "must name at least one consumer")
	v.atMost(MaxConsumers, path, len(uuids))
	seen := map[string]bool{}
	for i, uuid := range uuids {
		v.checkDistinctUUID(seen, at(path, i), uuid)
	}
	return v.problems
}

// Confirm ends the holds of all consumers of a valid confirmation and returns
// nil, or returns why it is refused and leaves the ledger unchanged. A consumer
// without a hold stays as it is. The refusals are in the order of the input,
// each at its path below path ("input").
func (l *Ledger) Confirm(confirmation *Confirmation, path string) []Refusal {
	var found refusals
	path = under(path, "consumers")
	for i, uuid := range confirmation.Consumers {
		switch consumer := l.Consumer(uuid); {
		case consumer.Generation == 0:
			found.add(NotHeld, at(path, i), "consumer %s has no allocations", uuid)
		case consumer.HasEnded:
			found.add(NotHeld, at(path, i), "the hold of consumer %s has ended", uuid)
		}
	}
	if len(found) > 0 {
		return found
	}
	for _, uuid := range confirmation.Consumers {
		consumer := l.Consumer(uuid)
		consumer.ExpiresAt = nil
		l.consumers[uuid] = &consumer
	}
	return nil
}

// ReleaseEnded is Release for a consumer whose hold has ended. It reports false
// for any other consumer.
func (l *Ledger) ReleaseEnded(uuid string) bool {
	return l.Consumer(uuid).HasEnded && l.Release(uuid)
}
