// Package sqldb is the database layer below every domain. It opens and migrates
// SQLite or PostgreSQL, runs transactions with audit events and changes, reads
// rows of tables, and classifies driver errors. It does not know the domains.
package sqldb
