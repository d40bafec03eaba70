package metadefdb

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/namespace"
	"github.com/cadastre-dev/cadastre/ent/namespacemember"
	"github.com/cadastre-dev/cadastre/ent/resourcetypeassociation"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/store/resident"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/changelog"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/text"
)

// The store keeps definitions in memory (store/resident), because requests read
// them often and change them rarely. Each writer waits until memory has its
// commit, or returns an error if memory cannot be updated.
//
//   - A reading at one instant gets the definitions of that instant.
//   - Every other reader gets the definitions that the process has in memory.
//     They include its own commits, and the commits of others that it was
//     notified of.
//   - A write that is checked against definitions compares memory with the
//     change log in its transaction (Copy.Unchanged). If definitions have changed,
//     it reads them in the transaction.
//
// If definitions need too much memory, none are kept, and every reader asks the
// database. Readers get the same answers from memory as from the database.

// DefaultResidentBytes is the default maximum memory for definitions, in bytes.
const DefaultResidentBytes = 256 << 20

// keepDefinitions prepares the copy of definitions in memory, which is empty
// until LoadDefinitions. From then on it follows commits.
func (s *MetadefStore) keepDefinitions() {
	s.memory = resident.New(s.DB, resident.Domain[definitions]{
		Name:    "definitions",
		Kinds:   []string{namespaceKind, typeKind},
		Load:    s.readAll,
		Differs: s.differs,
		Next:    s.readChanged,
		Size:    func(d *definitions) int64 { return d.bytes },
		Most:    s.options.ResidentBytes,
	})
	s.memory.FollowCommits()
}

// LoadDefinitions loads the definitions into memory, unless they need more than
// the maximum. From then on, writers notify the other servers through others.
func (s *MetadefStore) LoadDefinitions(ctx context.Context, others resident.Others) error {
	s.memory.Tells(others)
	return s.ReloadDefinitions(ctx)
}

// ReloadDefinitions reloads the definitions from the database, after writes
// that bypass the store.
func (s *MetadefStore) ReloadDefinitions(ctx context.Context) error {
	if s.options.ResidentBytes < 0 {
		return nil
	}
	return s.memory.Load(ctx)
}

// FollowDefinitions updates the definitions in memory to all commits from
// before the call.
func (s *MetadefStore) FollowDefinitions(ctx context.Context) error { return s.memory.CatchUp(ctx) }

// ShowDefinitions updates the definitions in memory until they include the
// given committed transactions; nil means all that committed before the call.
func (s *MetadefStore) ShowDefinitions(ctx context.Context, transactions []changelog.TransactionID) error {
	return s.memory.Show(ctx, transactions)
}

// namesIn returns the names of the namespaces and types in notes, each once.
func namesIn(notes []changelog.Note) (namespaces, types []string) {
	for _, note := range notes {
		if note.Kind == namespaceKind {
			namespaces = append(namespaces, note.Key)
		} else {
			types = append(types, note.Key)
		}
	}
	return lists.Distinct(namespaces), lists.Distinct(types)
}

// differs drops the notes of unchanged types. A type is also noted when its
// audience changes.
func (s *MetadefStore) differs(ctx context.Context, on sqldb.Conn, held *definitions,
	notes []changelog.Note) ([]changelog.Note, error) {
	_, names := namesIn(notes)
	if len(names) == 0 {
		return notes, nil
	}
	types, err := s.readTypes(ctx, on, names)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(notes, func(note changelog.Note) bool {
		return note.Kind == typeKind && held.isSame(note.Key, types)
	}), nil
}

// readChanged returns the definitions after the changes in notes.
func (s *MetadefStore) readChanged(ctx context.Context, on sqldb.Conn, held *definitions,
	notes []changelog.Note) (*definitions, error) {
	var changed changedThings
	var err error
	changed.namespaceNames, changed.typeNames = namesIn(notes)
	if len(changed.typeNames) > 0 {
		if changed.types, err = s.readTypes(ctx, on, changed.typeNames); err != nil {
			return nil, err
		}
	}
	if len(changed.namespaceNames) > 0 {
		if changed.namespaces, err = s.readNamespaces(ctx, s.ClientOn(on), changed.namespaceNames); err != nil {
			return nil, err
		}
	}
	return held.with(changed), nil
}

// knownType returns the row id of a resource type if definitions in memory show
// that the viewer knows it. Otherwise it reports false, and the caller must ask
// the database. Everything that follows is then read at one instant.
func (s *MetadefStore) knownType(ctx context.Context, name string) (id int64, ok bool, err error) {
	held, err := s.memory.Of(ctx)
	if err != nil || held == nil {
		return 0, false, err
	}
	if id, ok = held.knows(access.ViewerFrom(ctx), name); !ok {
		s.ReadAtOnce(ctx)
	}
	return id, ok, nil
}

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
