// Package resident keeps resources in memory as sets by their types, projects,
// visibilities, tags and metadata items. Set operations evaluate filters and
// count facets that use only these, without a database. A value of Resources is
// immutable; With returns a changed copy.
package resident
