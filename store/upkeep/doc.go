// Package upkeep works on a database as a whole, for its operators. Dump writes
// all rows of one snapshot as lines of JSON, Restore loads them into an empty
// database of either kind, and Check finds rows that break an invariant.
package upkeep
