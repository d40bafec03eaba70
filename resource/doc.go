// Package resource holds the nouns and the pure rules of resources: their
// metadata, their capabilities, and the conditions that choose among them.
package resource
