package resourcedb

import (
	"context"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/metadataitem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/visible"
)

// MetadataOf returns the metadata items of the resources that the viewer may
// see, by key. With keys only those; nil means all.
func (s *ResourceStore) MetadataOf(ctx context.Context, resources []int64, keys []string) (map[int64][]*resource.MetadataItem, error) {
	rows, err := metadataItems.All(ctx, s.DB, sqldb.Among(metadataitem.FieldResourceID, resources), visible.OfResources(ctx),
		func(s *entsql.Selector) {
			if keys != nil {
				s.Where(sqldb.IsAmong(s, s.C(metadataitem.FieldKey), keys))
			}
		}, sqldb.Where(metadataitem.ByResourceID(), metadataitem.ByKey()))
	return sqldb.ByParent(rows, err, "metadata", metadataNoun, func(row *ent.MetadataItem) int64 { return row.ResourceID })
}

var metadataItems = sqldb.NewTable[ent.MetadataItem](metadataitem.Table, metadataitem.Columns,
	metadataitem.FieldValueHash, metadataitem.FieldValuePrefix)

// MetadataByID returns the metadata items of the rows that the viewer may see.
func (s *ResourceStore) MetadataByID(ctx context.Context, ids []int64) (map[int64]*resource.MetadataItem, error) {
	rows, err := s.Ent.MetadataItem.Query().
		Where(sqldb.Among(metadataitem.FieldID, ids), visible.OfResources(ctx)).All(ctx)
	return sqldb.ByID(rows, err, "metadata", metadataNoun, func(row *ent.MetadataItem) int64 { return row.ID })
}

func metadataNoun(row *ent.MetadataItem) *resource.MetadataItem {
	return &resource.MetadataItem{
		ID: row.ID, ResourceID: row.ResourceID, Key: row.Key, Value: row.Value, UserModifiable: row.UserModifiable,
		CreatedAt: row.CreatedAt.UTC(), UpdatedAt: row.UpdatedAt.UTC(),
	}
}
