// Package visible has the predicates for what a viewer may see. No other
// package decides that. Each predicate is part of every read of its kind, so a
// viewer gets NOT_FOUND for anything that is not visible, by any path.
package visible
