// Package visible has the access predicates of viewers. No other package
// decides visibility. Each predicate is part of every read of its kind, so a
// viewer gets NOT_FOUND for anything that is not visible, by any path.
package visible
