// Package resource has the types and the pure rules of resources: their
// metadata, their capabilities, and the conditions that select resources.
package resource
