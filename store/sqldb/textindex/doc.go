// Package textindex searches strings of rows for substrings. It creates the
// trigram indexes of both databases, and builds the conditions that use them.
package textindex
