// Package metadefdb stores metadata definitions: namespaces with their
// properties, objects, tags, members and associations, and resource types.
package metadefdb

import (
	"github.com/cadastre-dev/cadastre/change"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/internal/lru"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/store/resident"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/text"
)

// MetadefStore reads and writes definitions.
type MetadefStore struct {
	*sqldb.DB
	options DefinitionOptions
	// schemas caches the parsed keywords of properties by their JSON. Parsing
	// them took most of the time of a list of properties.
	schemas *lru.Cache[metadef.PropertySchema]
	memory  *resident.Copy[definitions]
}

const (
	// schemaBytes is the approximate maximum size of schemas in memory.
	schemaBytes = 32 << 20
	// A parsed schema takes approximately schemaWeight bytes for each byte of
	// its JSON, plus schemaFixed.
	schemaWeight, schemaFixed = 4, 400
)

// New returns the store of the definitions in a database. It reads none before
// LoadDefinitions.
func New(db *sqldb.DB, options DefinitionOptions) *MetadefStore {
	s := &MetadefStore{DB: db, options: options.withDefaults(), schemas: newSchemas()}
	s.keepDefinitions()
	db.AddAudienceReader(change.Namespace, s.namespaceAudiences)
	db.AddAudienceReader(change.ResourceType, s.TypeAudiences)
	return s
}

func newSchemas() *lru.Cache[metadef.PropertySchema] {
	return lru.New[metadef.PropertySchema](schemaBytes)
}

// PropertyNoun returns the property of a row. Its schema is shared and must not
// be modified. Required is set only if the row was read with its object.
func (s *MetadefStore) PropertyNoun(row *ent.PropertyDefinition) *metadef.PropertyDefinition {
	schema, ok := s.schemas.Get(row.Keywords)
	if !ok {
		schema = metadef.ReadPropertySchema(text.JSON(row.Keywords))
		s.schemas.Add(row.Keywords, schema, int64(len(row.Keywords))*schemaWeight+schemaFixed)
	}
	return propertyWith(row, schema)
}
