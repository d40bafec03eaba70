package metadefdb

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/namespace"
	"github.com/cadastre-dev/cadastre/ent/namespacemember"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/visible"
	"github.com/cadastre-dev/cadastre/text"
)

// DefinitionOptions say who may write definitions, and how many. A limit of 0
// means its default.
type DefinitionOptions struct {
	// OwnerWrites allows members of a project to write the project's
	// namespaces.
	OwnerWrites bool
	// NamespacesPerProject is the maximum number of namespaces of a project.
	// The default is 1000.
	NamespacesPerProject int
	// PropertiesPerNamespace is the maximum number of properties in a
	// namespace, including the properties of its objects. It is also the
	// maximum for objects, for tags and for associations. The default is 1000.
	// Higher values count as 1000.
	PropertiesPerNamespace int
	// DefinitionSize is the maximum size in bytes of a property definition, and
	// of the description of an object. The default is 64 KiB. Higher values
	// count as 64 KiB.
	DefinitionSize int
	// ResidentBytes is the maximum memory for definitions, in bytes. 0 means
	// DefaultResidentBytes. A negative value keeps none in memory.
	ResidentBytes int64
}

func (o DefinitionOptions) withDefaults() DefinitionOptions {
	for _, limit := range []struct {
		value *int
		usual int
		most  int
	}{
		{&o.NamespacesPerProject, 1000, math.MaxInt},
		{&o.PropertiesPerNamespace, metadef.MaxDefinitions, metadef.MaxDefinitions},
		{&o.DefinitionSize, metadef.MaxDefinition, metadef.MaxDefinition},
	} {
		if *limit.value <= 0 {
			*limit.value = limit.usual
		}
		*limit.value = min(*limit.value, limit.most)
	}
	o.ResidentBytes = cmp.Or(o.ResidentBytes, DefaultResidentBytes)
	return o
}

// edit is a requested change of one namespace or its contents.
type edit struct {
	mutation  string
	namespace string
	revision  *int   // that the caller has seen, nil for any
	manages   bool   // requires managing the namespace, not just editing
	because   string // the input field that requires managing, "" if the whole mutation does
	deletes   bool   // refused if the namespace is protected
	named     string // the input field that names the namespace, if it is not input.namespace
}

// editNamespace changes a namespace or its contents in one transaction, which
// holds the namespace's lock. It refuses in the same order for all definitions:
// an invisible namespace, an insufficient role, problems that change finds with
// the input, then problems of admit, which change calls before it writes. If
// change returns an event, editNamespace increments the namespace's revision
// and sets UpdatedAt. A nil event means that nothing changed, or that change
// has recorded events itself. results are pointers to variables that change
// sets.
func (s *MetadefStore) editNamespace(ctx context.Context, e edit,
	change func(tx *sqldb.Tx, row *ent.Namespace) (*sqldb.Event, error), results ...any) (*metadef.Namespace, error) {
	if err := text.CheckAny(e.field(), e.namespace); err != nil {
		return nil, err
	}
	var changed *metadef.Namespace
	err := s.Write(ctx, e.mutation, func(tx *sqldb.Tx) error {
		row, err := s.lockNamespace(ctx, tx, e)
		if err != nil {
			return err
		}
		if err := s.checkStanding(ctx, tx, row, e); err != nil {
			return err
		}
		if e.manages {
			if err := s.sawNamespaces(ctx, tx, row); err != nil {
				return err
			}
		}
		event, err := change(tx, row)
		if err != nil {
			return err
		}
		if event == nil {
			if tx.IsEmpty() {
				tx.Record(ctx, sqldb.Event{Kind: "Namespace", Key: e.namespace})
			}
			changed = namespaceNoun(row)
			return nil
		}
		tx.Record(ctx, *event)
		if row.Name != e.namespace {
			tx.Deleted("Namespace", e.namespace)
			tx.SawBefore("Namespace", row.Name, nil)
		}
		tx.Changed("Namespace", row.Name)
		seesNamespace(tx, row)
		err = s.touchNamespace(ctx, tx, row)
		changed = namespaceNoun(row)
		return err
	}, append(results, &changed)...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.mutation, err)
	}
	return changed, nil
}

// admit refuses an edit if the namespace is protected against it, or is not at
// the revision that the caller has seen.
func (e edit) admit(row *ent.Namespace) error {
	if e.deletes && row.Protected {
		return refuseProtected(row.Name).On(e.field())
	}
	if e.revision != nil && *e.revision != row.Revision {
		return problem.Refuse(problem.ErrConcurrentUpdate, "namespace %q is at revision %d, not %d", row.Name,
			row.Revision, *e.revision).On("input.revision")
	}
	return nil
}

func refuseProtected(name string) *problem.Refusal {
	return problem.Refuse(problem.ErrProtected, "namespace %q is protected: nothing in it can be deleted", name)
}

func refuseUnknownNamespace(name string) *problem.Refusal {
	return problem.Refuse(problem.ErrNotFound, "namespace %q does not exist", name)
}

// field returns the input field that names the namespace.
func (e edit) field() string { return cmp.Or(e.named, "input.namespace") }

// lockNamespace reads a visible namespace and locks its row until the
// transaction ends. Every writer of the namespace's contents locks it first.
func (s *MetadefStore) lockNamespace(ctx context.Context, tx *sqldb.Tx, e edit) (*ent.Namespace, error) {
	row, err := tx.Namespace.Query().Where(visible.Namespaces(ctx), namespace.Name(e.namespace), s.Locked()).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, refuseUnknownNamespace(e.namespace).On(e.field())
	}
	return row, err
}

// touchNamespace increments the revision of a namespace and sets UpdatedAt.
func (s *MetadefStore) touchNamespace(ctx context.Context, tx *sqldb.Tx, row *ent.Namespace) error {
	row.Revision, row.UpdatedAt = row.Revision+1, s.Now()
	return tx.Namespace.Update().Where(namespace.ID(row.ID)).
		SetRevision(row.Revision).SetUpdatedAt(row.UpdatedAt).Exec(ctx)
}

// checkStanding refuses a viewer who may not make the edit.
func (s *MetadefStore) checkStanding(ctx context.Context, tx *sqldb.Tx, row *ent.Namespace, e edit) error {
	standing, err := s.standingIn(ctx, tx, row)
	if err != nil {
		return err
	}
	switch {
	case !e.manages:
		return standing.CheckDefine(tx.Mutation)
	case e.because != "" && standing.MayDefine():
		return problem.Under(standing.CheckManage("changing "+e.because), "input."+e.because)
	}
	return standing.CheckManage(tx.Mutation)
}

// checkOwn checks the viewer's standing at the namespaces of the viewer's project.
// field is the field of Mutation that the error names.
func (s *MetadefStore) checkOwn(ctx context.Context, field string,
	check func(metadef.NamespaceStanding, string) error) error {
	viewer, err := access.ViewerFrom(ctx).Authorize(field)
	if err != nil {
		return err
	}
	return check(metadef.NamespaceStanding{Viewer: viewer, Owner: viewer.ProjectID,
		OwnerWrites: s.options.OwnerWrites}, field)
}

// standingIn returns the viewer's standing in a namespace. It refuses a viewer
// who may not use the mutation.
func (s *MetadefStore) standingIn(ctx context.Context, tx *sqldb.Tx,
	row *ent.Namespace) (metadef.NamespaceStanding, error) {
	viewer, err := access.ViewerFrom(ctx).Authorize(tx.Mutation)
	if err != nil {
		return metadef.NamespaceStanding{}, err
	}
	standing := metadef.NamespaceStanding{Viewer: viewer, Owner: row.Owner,
		OwnerWrites: s.options.OwnerWrites, Protected: row.Protected}
	if standing.MayManage() {
		return standing, nil
	}
	roles, err := tx.NamespaceMember.Query().
		Where(namespacemember.NamespaceID(row.ID),
			namespacemember.ProjectIDIn(standing.Viewer.ProjectID, metadef.EveryProject)).
		Select(namespacemember.FieldRole).Strings(ctx)
	for _, role := range roles {
		standing.Role = metadef.StrongerRole(standing.Role, metadef.MemberRole(role))
	}
	return standing, err
}

// ownersKey is the class of the advisory locks that transactions on PostgreSQL
// take before they count the namespaces of a project.
const ownersKey = 7_261_003

// checkNamespaceQuota refuses another namespace to a project at its limit. On
// PostgreSQL, transactions that would give the project a namespace wait until
// this one ends. SQLite has only one writer.
func (s *MetadefStore) checkNamespaceQuota(ctx context.Context, tx *sqldb.Tx, owner string) error {
	if err := tx.LockName(ctx, ownersKey, owner); err != nil {
		return err
	}
	owned, err := tx.Namespace.Query().Where(namespace.Owner(owner)).Count(ctx)
	if err != nil {
		return err
	}
	if most := s.options.NamespacesPerProject; owned >= most {
		return problem.Refuse(problem.ErrQuotaExceeded, "project %q owns %d namespaces, at most %d are allowed", owner,
			owned, most)
	}
	return nil
}

// checkCount refuses a namespace with more than PropertiesPerNamespace members
// of one kind. The message calls them what.
func (s *MetadefStore) checkCount(what string, count int) error {
	if most := s.options.PropertiesPerNamespace; count > most {
		return problem.Refuse(problem.ErrQuotaExceeded,
			"namespace would have %d %s, at most %d are allowed", count, what, most)
	}
	return nil
}

// mostOfType is the maximum number of associations of a namespace with one
// resource type. Each association shows all definitions of the namespace again.
const mostOfType = 16

// checkOfType refuses too many associations with one resource type.
func checkOfType(associations []metadef.DocumentAssociation) error {
	count := map[string]int{}
	for _, association := range associations {
		if count[association.ResourceType]++; count[association.ResourceType] > mostOfType {
			return problem.Refuse(problem.ErrQuotaExceeded,
				"namespace would have more than %d associations with the resource type %s", mostOfType,
				metadef.Shorten(association.ResourceType))
		}
	}
	return nil
}

// checkSize refuses a definition with more bytes than DefinitionSize.
func (s *MetadefStore) checkSize(field string, definition text.JSON) error {
	if most := s.options.DefinitionSize; len(definition) > most {
		return problem.Refuse(problem.ErrQuotaExceeded,
			"definition has %d bytes, at most %d are allowed", len(definition), most).On(field)
	}
	return nil
}

// checkInputQuota is checkQuota for an input that is not parsed yet. It checks
// only numbers, no sizes.
func (s *MetadefStore) checkInputQuota(input metadef.NamespaceInput) error {
	count := len(input.Properties)
	for _, object := range input.Objects {
		count += len(object.Properties.Value)
	}
	return cmp.Or(s.checkCounts(count, len(input.Objects), len(input.Tags), len(input.ResourceTypeAssociations)),
		checkOfType(input.ResourceTypeAssociations))
}

func (s *MetadefStore) checkCounts(properties, objects, tags, associations int) error {
	for _, kind := range []struct {
		what  string
		count int
	}{{"properties", properties}, {"objects", objects}, {"tags", tags}, {"resource type associations", associations}} {
		if err := s.checkCount(kind.what, kind.count); err != nil {
			return err
		}
	}
	return nil
}

// checkQuota refuses a document with a definition that is too large, or with
// too many definitions. path is the document's path, in terms of the API
// (`input`) or of a file (`$`).
func (s *MetadefStore) checkQuota(document *metadef.Document, path string) error {
	count := len(document.Properties)
	for i, property := range document.Properties {
		at := fmt.Sprintf("%s.properties[%d]", path, i)
		if path == "$" {
			at = path + ".properties." + property.Name
		}
		if err := s.checkSize(at, property.Keywords); err != nil {
			return err
		}
	}
	for o, object := range document.Objects {
		count += len(object.Properties)
		if err := s.checkSize(fmt.Sprintf("%s.objects[%d].description", path, o),
			text.JSON(text.OrEmpty(object.Description))); err != nil {
			return err
		}
		for i, property := range object.Properties {
			at := fmt.Sprintf("%s.objects[%d].properties[%d]", path, o, i)
			if path == "$" {
				at = fmt.Sprintf("%s.objects[%d].properties.%s", path, o, property.Name)
			}
			if err := s.checkSize(at, property.Keywords); err != nil {
				return err
			}
		}
	}
	return cmp.Or(s.checkCounts(count, len(document.Objects), len(document.Tags), len(document.Associations)),
		checkOfType(document.Associations))
}
