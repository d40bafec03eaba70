// Package resident keeps resources as sets by what they have: their types,
// projects, visibilities, tags and metadata items. Filters that ask for nothing
// else are decided by set operations, and facets counted, without a database. A
// value of Resources never changes; With returns the next one.
package resident
