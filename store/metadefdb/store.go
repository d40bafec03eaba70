// Package metadefdb keeps metadata definitions: namespaces with their
// properties, objects, tags, members and associations, and resource types.
package metadefdb

import "github.com/cadastre-dev/cadastre/store/sqldb"

// MetadefStore reads and writes definitions.
type MetadefStore struct {
	*sqldb.DB
	options DefinitionOptions
}

// New returns the definitions of a database.
func New(db *sqldb.DB, options DefinitionOptions) *MetadefStore {
	return &MetadefStore{DB: db, options: options.withDefaults()}
}
