package metadefdb

import (
	"context"

	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/predicate"
	"github.com/cadastre-dev/cadastre/ent/unloadednamespace"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
)

// The store notes the names of deleted namespaces of the product's own bundle,
// so that the next import of the bundle does not create them again. It does not
// note namespaces of other bundles: their importers, who need not be
// administrators, would learn that others had deleted them.

// noteUnloaded notes the namespaces that came from the product's own bundle.
func (s *MetadefStore) noteUnloaded(ctx context.Context, tx *sqldb.Tx, rows []*ent.Namespace) error {
	var names []string
	for _, row := range rows {
		if row.Origin != nil && *row.Origin == metadef.OwnOrigin {
			names = append(names, row.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	if _, err := tx.UnloadedNamespace.Delete().Where(isUnloaded(metadef.OwnOrigin, names...)).Exec(ctx); err != nil {
		return err
	}
	now := s.Now()
	return paging.InsertAll(ctx, lists.Map(names, func(name string) *ent.UnloadedNamespaceCreate {
		return tx.UnloadedNamespace.Create().SetOrigin(metadef.OwnOrigin).SetName(name).SetCreatedAt(now)
	}), tx.UnloadedNamespace.CreateBulk)
}

// isUnloaded returns the predicate for the notes about namespaces of a bundle.
func isUnloaded(origin string, names ...string) predicate.UnloadedNamespace {
	return unloadednamespace.And(unloadednamespace.Origin(origin), paging.Among(unloadednamespace.FieldName, names))
}

// wasUnloaded reports whether the product's own bundle is imported and its
// namespace of this name was deleted before.
func wasUnloaded(ctx context.Context, tx *sqldb.Tx, name string, request metadef.ImportRequest) (bool, error) {
	if request.Origin == nil || *request.Origin != metadef.OwnOrigin {
		return false, nil
	}
	return tx.UnloadedNamespace.Query().Where(isUnloaded(*request.Origin, name)).Exist(ctx)
}

// forgetUnloaded deletes the note of a namespace that its bundle creates again.
func forgetUnloaded(ctx context.Context, tx *sqldb.Tx, name, origin string) error {
	_, err := tx.UnloadedNamespace.Delete().Where(isUnloaded(origin, name)).Exec(ctx)
	return err
}
