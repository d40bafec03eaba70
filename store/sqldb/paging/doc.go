// Package paging reads pages of tables: ordered by a column, between two
// cursors, and nested lists for many parents in one statement.
package paging
