package resourcedb

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"slices"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/change"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/visible"
)

// noteResource notes that a resource was created, changed or deleted. before is
// nil for a created resource, after for a deleted one.
func noteResource(tx *sqldb.Tx, before, after *ent.Resource) {
	uuid := cmp.Or(before, after).UUID
	tx.SawBefore("Resource", uuid, audienceOf(before))
	tx.SeenBy("Resource", uuid, audienceOf(after))
	tx.Changed("Resource", uuid)
}

// audienceOf returns the audience of a resource, nil if row is nil.
func audienceOf(row *ent.Resource) *change.Audience {
	if row == nil {
		return nil
	}
	return visible.AudienceOf(access.Visibility(row.Visibility), row.ProjectID)
}

// resourceAudiences reads the viewers of resources.
func (s *ResourceStore) resourceAudiences(ctx context.Context, tx *sqldb.Tx,
	uuids []string) (map[string]*change.Audience, error) {
	audiences := map[string]*change.Audience{}
	err := s.Query(ctx, tx, `SELECT uuid, visibility, project_id FROM resources WHERE `+s.Listed("uuid", "$1", "text"),
		func(rows *sql.Rows) error {
			row := new(ent.Resource)
			err := rows.Scan(&row.UUID, &row.Visibility, &row.ProjectID)
			audiences[row.UUID] = audienceOf(row)
			return err
		}, sqldb.JSONOf(uuids))
	return audiences, err
}

// capabilityAudiences reads the viewers of capabilities, by resource type and
// name. A public capability has the viewers of its resource type. Only viewers
// who see all capabilities see a private one.
func (s *ResourceStore) capabilityAudiences(ctx context.Context, tx *sqldb.Tx,
	keys []string) (map[string]*change.Audience, error) {
	audiences, typeOf := map[string]*change.Audience{}, map[string]string{}
	err := s.Query(ctx, tx, `SELECT t.name, c.name, c.private FROM capabilities c JOIN resource_types t ON t.id = c.resource_type_id
		WHERE `+s.Listed("(t.name || '/' || c.name)", "$1", "text"), func(rows *sql.Rows) error {
		var of, name string
		var private bool
		err := rows.Scan(&of, &name, &private)
		if audiences[of+"/"+name] = change.ToProjects(); !private {
			typeOf[of+"/"+name] = of
		}
		return err
	}, sqldb.JSONOf(keys))
	if err != nil || len(typeOf) == 0 {
		return audiences, err
	}
	ofTypes, err := s.metadefs.TypeAudiences(ctx, tx, lists.Distinct(slices.Collect(maps.Values(typeOf))))
	for key, of := range typeOf {
		audiences[key] = ofTypes[of]
	}
	return audiences, err
}
