package metadefdb

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/namespace"
	"github.com/cadastre-dev/cadastre/ent/namespacemember"
	"github.com/cadastre-dev/cadastre/ent/resourcetypeassociation"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/store/resident"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/text"
)

// Approximate bytes of memory, without descriptions and keywords.
const (
	namespaceBytes   = 900
	propertyBytes    = 700
	objectBytes      = 500
	associationBytes = 500
	memberBytes      = 100
)

// readAll reads all definitions that a transaction sees, regardless of
// visibility. It returns resident.TooBig, before it reads them, if the
// properties alone need more than most bytes of memory.
func (s *MetadefStore) readAll(ctx context.Context, on sqldb.Conn, most int64) (*definitions, error) {
	var count, length int64
	err := s.Query(ctx, on, `SELECT COUNT(*), COALESCE(SUM(LENGTH(keywords)), 0) FROM property_definitions`,
		func(rows *sql.Rows) error { return rows.Scan(&count, &length) })
	if err != nil {
		return nil, fmt.Errorf("measure the definitions: %w", err)
	}
	if bytes := count*propertyBytes + length*schemaWeight; bytes > most {
		return nil, resident.TooBig(bytes)
	}
	types, err := s.readTypes(ctx, on, nil)
	if err != nil {
		return nil, err
	}
	namespaces, err := s.readNamespaces(ctx, s.ClientOn(on), nil)
	if err != nil {
		return nil, err
	}
	return newDefinitions(
		lists.Index(namespaces, func(in *heldNamespace) (int64, *heldNamespace) { return in.ID, in }),
		lists.Index(types, func(of heldType) (int64, heldType) { return of.ID, of })), nil
}

// readTypes reads the resource types with the names, or all if names is nil.
func (s *MetadefStore) readTypes(ctx context.Context, on sqldb.Conn, names []string) (types []heldType, err error) {
	statement, args := `SELECT id, name, protected, strict, COALESCE(implied, false) FROM resource_types`, []any(nil)
	if names != nil {
		statement, args = statement+` WHERE `+s.Listed("name", "$1", "text"), []any{sqldb.JSONOf(names)}
	}
	err = s.Query(ctx, on, statement, func(rows *sql.Rows) error {
		var of heldType
		err := rows.Scan(&of.ID, &of.Name, &of.Protected, &of.Strict, &of.Implied)
		types = append(types, of)
		return err
	}, args...)
	if err != nil {
		return nil, fmt.Errorf("read the resource types: %w", err)
	}
	return types, nil
}

// readNamespaces reads the namespaces with the names, or all if names is nil,
// regardless of visibility.
func (s *MetadefStore) readNamespaces(ctx context.Context, client *ent.Client,
	names []string) ([]*heldNamespace, error) {
	query := client.Namespace.Query()
	if names != nil {
		query.Where(paging.Among(namespace.FieldName, names))
	}
	rows, err := query.All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the namespaces: %w", err)
	}
	ids := lists.Map(rows, func(row *ent.Namespace) int64 { return row.ID })
	members, err := client.NamespaceMember.Query().Where(paging.Among(namespacemember.FieldNamespaceID, ids)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read members of namespaces: %w", err)
	}
	associations, err := namedAssociations(client).Where(paging.Among(resourcetypeassociation.FieldNamespaceID, ids)).
		All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read associations of namespaces: %w", err)
	}
	var content Content
	if err := content.ReadDefinitions(ctx, client, ids, s.PropertyNoun); err != nil {
		return nil, err
	}
	namespaces := lists.Map(rows, func(row *ent.Namespace) *heldNamespace {
		return newHeldNamespace(namespaceNoun(row), content)
	})
	slices.SortFunc(associations, func(a, b *ent.ResourceTypeAssociation) int { return cmp.Compare(a.ID, b.ID) })
	byID := lists.ByKey(namespaces, func(in *heldNamespace) int64 { return in.ID })
	for _, row := range members {
		in := byID[row.NamespaceID]
		in.audience.Members[row.ProjectID] = true
		in.bytes += memberBytes
	}
	for _, row := range associations {
		in := byID[row.NamespaceID]
		in.associations = append(in.associations, AssociationNoun(row))
		in.bytes += associationBytes
	}
	return namespaces, nil
}

// newHeldNamespace returns a namespace with its definitions, but without
// associations and members.
func newHeldNamespace(of *metadef.Namespace, content Content) *heldNamespace {
	in := &heldNamespace{Namespace: of, properties: content.Properties[of.ID], objects: content.Objects[of.ID],
		audience: metadef.Audience{Visibility: of.Visibility, Owner: of.Owner, Members: map[string]bool{}}}
	in.bytes = namespaceBytes + int64(len(text.OrEmpty(of.Description)))
	for _, property := range in.properties {
		in.bytes += propertyBytes + int64(len(property.Keywords))*schemaWeight
	}
	for _, object := range in.objects {
		in.bytes += objectBytes + int64(len(text.OrEmpty(object.Description)))
	}
	return in
}
