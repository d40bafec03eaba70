package resourcedb

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/resourcetype"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/metadefdb"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/store/visible"
	"github.com/cadastre-dev/cadastre/text"
)

// ResourceOutcome is the outcome for one of many resources: the stored
// resource, or the problems of its row of the input.
type ResourceOutcome = sqldb.RowOutcome[resource.Resource]

// CreateResource creates a resource with everything given for it, in one
// transaction. By default members may create resources in their own project,
// administrators and services in any. It returns ErrNotFound for a type that
// does not exist and ErrAlreadyExists for a uuid that is taken or reserved.
func (s *ResourceStore) CreateResource(ctx context.Context, input resource.Input) (*resource.Resource, error) {
	one := resource.Inputs{Items: []resource.Input{input}, Atomic: true}
	outcomes, err := s.createAll(ctx, "createResource", one, func(int) string { return "input" })
	if err != nil {
		return nil, err
	}
	return outcomes[0].Row, nil
}

// CreateResources creates resources in one transaction and returns their
// outcomes in the order of the input. An atomic input creates all or none;
// otherwise the valid ones are created. A parent must exist or precede its
// children.
func (s *ResourceStore) CreateResources(ctx context.Context, input resource.Inputs) ([]ResourceOutcome, error) {
	if err := sqldb.CheckRows(len(input.Items), resource.MaxInputs); err != nil {
		return nil, err
	}
	return s.createAll(ctx, "createResources", input, sqldb.RowPath)
}

func (s *ResourceStore) createAll(ctx context.Context, mutation string, input resource.Inputs,
	path func(int) string) ([]ResourceOutcome, error) {
	drafts := lists.Map(input.Items, func(item resource.Input) *draft { return s.draft(access.ViewerFrom(ctx), item) })
	if err := s.judgeMalformed(ctx, drafts); err != nil {
		return nil, err
	}
	formed := slices.DeleteFunc(slices.Clone(drafts), func(d *draft) bool { return len(d.problems) > 0 })
	if len(formed) == 0 {
		outcomes := outcomesOf(drafts, path)
		return outcomes, sqldb.RefuseRows(input.Atomic, outcomes)
	}
	var outcomes []ResourceOutcome
	err := s.Write(ctx, mutation, func(tx *sqldb.Tx) error {
		parents, err := s.judgeDrafts(ctx, tx, formed)
		if err != nil {
			return err
		}
		outcomes = outcomesOf(drafts, path)
		if err := sqldb.RefuseRows(input.Atomic, outcomes); err != nil {
			return err
		}
		if err := s.writeDrafts(ctx, tx, formed, parents); err != nil {
			return err
		}
		outcomes = outcomesOf(drafts, path)
		return nil
	}, &outcomes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", mutation, err)
	}
	return outcomes, nil
}

// draft is a resource to be created.
type draft struct {
	input    resource.Input
	record   ResourceRecord
	problems problem.Problems // at paths below "input"
	// malformed means that the input itself has problems. Definitions are still
	// checked, to report everything in one answer.
	malformed bool
	refused   problem.Problems // found in the transaction
	kind      *ent.ResourceType
	row       *ent.Resource // set once it is written
}

// draft returns a resource to be created, with the problems that need no
// database: of the viewer's rights first, then of the input.
func (s *ResourceStore) draft(viewer access.Viewer, input resource.Input) *draft {
	d := &draft{input: input, record: recordOf(viewer, input)}
	if d.refuse(&d.problems, mayCreateResource(viewer, input)); len(d.problems) > 0 {
		return d
	}
	input.Check(&d.problems, "input")
	if d.record.ProjectID == "" && input.ProjectID == nil {
		d.problems.Add("input.projectId", "is required because the viewer has no project")
	}
	if d.malformed = len(d.problems) > 0; d.malformed {
		return d
	}
	if input.UUID != nil && resource.IsReservedUUID(*input.UUID) {
		d.refuse(&d.problems, resource.RefuseUUID(*input.UUID))
		return d
	}
	if d.record.UUID == "" {
		d.record.UUID = uuid.NewString()
	}
	d.record.Metadata = newMetadata(s.metadataRules(), input)
	return d
}

// refuse adds the problems in an error. A nil error has none.
func (d *draft) refuse(problems *problem.Problems, err error) {
	*problems = append(*problems, problem.InError(err)...)
}

// outcomesOf returns the outcomes of resources, with each problem at the path
// of its row.
func outcomesOf(drafts []*draft, path func(int) string) []ResourceOutcome {
	outcomes := make([]ResourceOutcome, len(drafts))
	for i, d := range drafts {
		if d.row != nil {
			outcomes[i].Row = resourceNoun(d.row)
		}
		for _, one := range slices.Concat(d.problems, d.refused) {
			one.Field = path(i) + strings.TrimPrefix(one.Field, "input")
			outcomes[i].Problems = append(outcomes[i].Problems, one)
		}
	}
	return outcomes
}

// judgeMalformed checks the metadata of malformed resources against definitions
// and adds these problems to the others, so that one answer has all of them.
func (s *ResourceStore) judgeMalformed(ctx context.Context, drafts []*draft) error {
	malformed := slices.DeleteFunc(slices.Clone(drafts), func(d *draft) bool { return !d.malformed })
	known := slices.DeleteFunc(slices.Clone(malformed), func(d *draft) bool {
		return text.CheckAny("", d.input.Type) != nil
	})
	if len(known) == 0 {
		return nil
	}
	refused, err := s.judgeMetadata(ctx, s.Ent, known)
	for i, d := range known {
		d.problems = d.problems.With(refused[i])
	}
	return err
}

// judgeMetadata finds the types of resources and returns the problems that
// definitions find with the metadata of each. A resource of an unknown type has
// none.
func (s *ResourceStore) judgeMetadata(ctx context.Context, client *ent.Client,
	drafts []*draft) ([]problem.Problems, error) {
	names := lists.Distinct(lists.Map(drafts, func(d *draft) string { return d.record.Type }))
	types, err := client.ResourceType.Query().
		Where(visible.ResourceTypes(ctx), paging.Among(resourcetype.FieldName, names)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("look up resource types: %w", err)
	}
	byName := lists.ByKey(types, func(row *ent.ResourceType) string { return row.Name })
	strict := map[metadefdb.RulesKey]bool{}
	for _, d := range drafts {
		if d.kind = byName[d.record.Type]; d.kind != nil && d.kind.Strict {
			strict[d.rulesKey()] = true
		}
	}
	var rules map[metadefdb.RulesKey]*metadef.Rules
	if len(strict) > 0 {
		if rules, err = s.metadefs.StrictRulesFor(ctx, client, slices.Collect(maps.Keys(strict))); err != nil {
			return nil, err
		}
	}
	refused, viewer := make([]problem.Problems, len(drafts)), access.ViewerFrom(ctx)
	for i, d := range drafts {
		if d.kind != nil {
			write := resource.MetadataWrite{Items: slices.Concat(d.input.Metadata, d.input.ServiceMetadata)}
			d.input.AddRefused(&refused[i], "input", s.judged(viewer, rules, d.rulesKey(), write))
		}
	}
	return refused, nil
}

// rulesKey returns the key of the rules for a resource of a known type.
func (d *draft) rulesKey() metadefdb.RulesKey {
	return metadefdb.RulesKey{TypeID: d.kind.ID, ProjectID: d.record.ProjectID}
}

// judgeDrafts checks resources one after the other, each against the database
// and the resources before it. It returns the possible parents by uuid.
func (s *ResourceStore) judgeDrafts(ctx context.Context, tx *sqldb.Tx, drafts []*draft) (map[string]parentRow, error) {
	refused, err := s.judgeMetadata(ctx, tx.Client(), drafts)
	if err != nil {
		return nil, err
	}
	var uuids, parents []string
	for _, d := range drafts {
		d.refused, d.row = nil, nil
		if d.input.UUID != nil {
			uuids = append(uuids, d.record.UUID)
		}
		if d.record.Parent != "" {
			parents = append(parents, d.record.Parent)
		}
	}
	known, err := s.lockParents(ctx, tx, lists.Distinct(parents))
	if err != nil {
		return nil, err
	}
	taken, err := s.takenUUIDs(ctx, tx, uuids)
	if err != nil {
		return nil, err
	}
	registered, err := s.registeredOf(ctx, tx, drafts)
	if err != nil {
		return nil, err
	}
	viewer := access.ViewerFrom(ctx)
	for i, d := range drafts {
		if d.kind == nil {
			d.refuse(&d.refused, metadefdb.RefuseUnknownType(d.record.Type).On("input.type"))
			continue
		}
		d.refuse(&d.refused, checkParent(viewer, known, d.kind.Name, d.record.Parent))
		d.refused = append(d.refused, refused[i]...)
		d.checkLimits(s.limits.MetadataItems, registered)
		if taken[d.record.UUID] {
			d.refuse(&d.refused, resource.RefuseUUID(d.record.UUID))
		}
		if len(d.refused) > 0 {
			continue
		}
		taken[d.record.UUID] = true
		if visible.SeesResource(viewer, d.record.ProjectID, d.record.Visibility) {
			known[d.record.UUID] = parentRow{project: d.record.ProjectID, kind: d.kind.Name}
		}
	}
	return known, nil
}

// checkLimits adds the problems of exceeded limits and of unregistered
// capabilities. registered is nil unless the operator requires explicit
// registration.
func (d *draft) checkLimits(items int, registered map[capabilityKey]int64) {
	if items > 0 && len(d.record.Metadata) > items {
		d.refused.AddKind(problem.ErrQuotaExceeded, "input.metadata",
			"resource would have %d metadata items, at most %d are allowed", len(d.record.Metadata), items)
	}
	if registered == nil {
		return
	}
	keys := lists.Map(d.record.Capabilities, func(c metadef.KeyValue) capabilityKey {
		return capabilityKey{d.kind.ID, c.Key}
	})
	d.refuse(&d.refused, checkRegistered(keys, registered, "input.capabilities"))
}

// takenUUIDs returns which uuids are taken, even by resources that the viewer
// does not see.
func (s *ResourceStore) takenUUIDs(ctx context.Context, tx *sqldb.Tx, uuids []string) (map[string]bool, error) {
	if len(uuids) == 0 {
		return map[string]bool{}, nil
	}
	taken, err := sqldb.Column[string](ctx, s.DB, tx,
		`SELECT uuid FROM resources WHERE `+s.Listed("uuid", "$1", "text"), sqldb.JSONOf(uuids))
	return lists.Set(taken, lists.Itself), err
}

// registeredOf returns the row ids of the registry entries of the capabilities of
// resources. It returns nil if there are no capabilities, or unless the operator
// requires explicit registration.
func (s *ResourceStore) registeredOf(ctx context.Context, tx *sqldb.Tx,
	drafts []*draft) (map[capabilityKey]int64, error) {
	if s.options.CapabilityRegistration != resource.RegisterExplicitly {
		return nil, nil
	}
	var keys []capabilityKey
	for _, d := range drafts {
		for _, c := range d.record.Capabilities {
			if d.kind != nil {
				keys = append(keys, capabilityKey{d.kind.ID, c.Key})
			}
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	return findCapabilities(ctx, tx, keys)
}

// writeDrafts writes the resources without problems.
func (s *ResourceStore) writeDrafts(ctx context.Context, tx *sqldb.Tx, drafts []*draft,
	parents map[string]parentRow) error {
	drafts = slices.DeleteFunc(slices.Clone(drafts), func(d *draft) bool { return len(d.refused) > 0 })
	if len(drafts) == 0 {
		return nil
	}
	rows := lists.Map(drafts, func(d *draft) newResource {
		return newResource{d.record, d.kind.ID, parents[d.record.Parent].id}
	})
	written, err := s.writeResources(ctx, tx, rows, s.Now())
	if sqldb.IsDuplicate(err) {
		return fmt.Errorf("%w: %w", sqldb.ErrRetry, err) // a transaction that has committed meanwhile took the uuid
	}
	if err != nil {
		return err
	}
	for i, d := range drafts {
		d.row = written[i]
		tx.Record(ctx, sqldb.Event{Kind: "Resource", Key: d.row.UUID, After: recordFields(d.record)})
	}
	return nil
}
