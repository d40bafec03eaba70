// Package visible holds the predicates of what a viewer may see. It is decided
// here and nowhere else: each predicate goes into every read of its kind, so
// that a viewer gets NOT_FOUND for anything that is not visible, by any path.
package visible
