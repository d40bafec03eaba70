// Package audit holds the nouns of the audit log.
package audit
