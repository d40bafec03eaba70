// Package sqldb is the database below every domain: it opens SQLite or
// PostgreSQL, migrates it, runs transactions that carry audit events and
// changes, takes pages of tables, and knows the errors of the drivers. It knows
// no domain.
package sqldb
