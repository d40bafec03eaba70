package metadefdb

import (
	"cmp"
	"context"
	"fmt"

	"github.com/cadastre-dev/cadastre/ent/namespace"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/text"
)

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
