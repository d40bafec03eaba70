// Package metadef holds the nouns and the pure rules of metadata definitions:
// namespaces, objects, properties, tags and resource types, the documents that
// carry them, and what values they allow. It knows no database, no HTTP and no
// clock.
package metadef
