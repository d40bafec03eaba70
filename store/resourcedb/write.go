package resourcedb

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/defaults"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/metadefdb"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/text"
)

// CreateResource creates a resource with everything given for it, in one
// transaction: for members in their own project, for administrators and
// services in any. A type that does not exist is ErrNotFound, a uuid that is
// taken or reserved ErrAlreadyExists.
func (s *ResourceStore) CreateResource(ctx context.Context, input resource.Input) (*resource.Resource, error) {
	viewer := access.ViewerFrom(ctx)
	if err := mayCreateResource(viewer, input); err != nil {
		return nil, err
	}
	var problems problem.Problems
	input.Check(&problems, "input")
	record := recordOf(viewer, input)
	if record.ProjectID == "" && input.ProjectID == nil {
		problems.Add("input.projectId", "is required because the viewer has no project")
	}
	if len(problems) > 0 {
		return nil, s.refuseInput(ctx, problems, input, record.ProjectID)
	}
	if err := s.mayWriteNow(ctx); err != nil {
		return nil, err
	}
	if resource.IsReservedUUID(text.OrEmpty(input.UUID)) && input.UUID != nil {
		return nil, resource.RefuseUUID(record.UUID)
	}
	var err error
	if record.UUID == "" {
		random, err := uuid.NewRandom()
		if err != nil {
			return nil, fmt.Errorf("make a uuid: %w", err)
		}
		record.UUID = random.String()
	}
	record.Metadata = newMetadata(s.metadataRules(), input)
	var created *resource.Resource
	err = s.Write(ctx, "createResource", func(tx *sqldb.Tx) error {
		row, err := s.insertResource(ctx, tx, record, input)
		if err == nil {
			created = resourceNoun(row)
		}
		return err
	}, &created)
	if sqldb.IsDuplicate(err) {
		return nil, resource.RefuseUUID(record.UUID).Because(err)
	}
	if err != nil {
		return nil, fmt.Errorf("create a resource: %w", err)
	}
	return created, nil
}

// newMetadata returns the metadata of a resource to create.
func newMetadata(rules resource.MetadataRules, input resource.Input) []resource.MetadataItem {
	items := resource.MetadataChange{Items: input.Metadata}.Plan(rules, nil).Set
	for _, item := range input.ServiceMetadata {
		items = append(items, resource.MetadataItem{Key: item.Key, Value: item.Value})
	}
	return items
}

// refuseInput refuses a malformed resource, with what rules refuse of its
// metadata, so that one answer has all that is wrong with it.
func (s *ResourceStore) refuseInput(ctx context.Context, problems problem.Problems, input resource.Input, project string) error {
	id, err := s.metadefs.TypeNamed(ctx, input.Type, "input.type")
	if errors.Is(err, problem.ErrNotFound) || errors.Is(err, problem.ErrInvalidInput) {
		return problems.Err()
	}
	if err != nil {
		return err
	}
	more, err := s.refusedWrites(ctx, s.Ent, []judgedWrite{judgedInput(input, id, project)})
	return cmp.Or(err, problems.With(more).Err())
}

func mayCreateResource(viewer access.Viewer, input resource.Input) error {
	if len(input.ServiceMetadata) > 0 {
		if err := viewer.Require(access.RuleServiceMetadata, "writing metadata that users cannot change"); err != nil {
			return problem.Under(err, "input.serviceMetadata")
		}
	}
	if len(input.Capabilities) > 0 {
		if err := viewer.Require(access.RuleCapabilitiesWrite, "writing capabilities"); err != nil {
			return problem.Under(err, "input.capabilities")
		}
	}
	if input.ProjectID != nil {
		return problem.Under(resource.MayWriteForProject(viewer, *input.ProjectID, "the resource to create"), "input.projectId")
	}
	return nil
}

// recordOf returns what an input comes to for a viewer, without metadata.
func recordOf(viewer access.Viewer, input resource.Input) ResourceRecord {
	record := ResourceRecord{
		UUID: text.OrEmpty(input.UUID), Type: input.Type, Parent: text.OrEmpty(input.Parent), Name: input.Name,
		Description: text.OrEmpty(input.Description), ProjectID: viewer.ProjectID, Visibility: access.Private,
		Capabilities: input.Capabilities, Tags: input.Tags,
	}
	if input.ProjectID != nil {
		record.ProjectID = *input.ProjectID
	}
	if input.Visibility != nil {
		record.Visibility = *input.Visibility
	}
	return record
}

// checkJudged refuses a write to a new resource of a type.
func (s *ResourceStore) checkJudged(ctx context.Context, tx *sqldb.Tx, of *ent.ResourceType, write judgedWrite) error {
	if !of.Strict {
		return s.refusedBy(ctx, nil, []judgedWrite{write}).Err()
	}
	problems, err := s.refusedWrites(ctx, tx.Client(), []judgedWrite{write})
	return cmp.Or(err, problems.Err())
}

func (s *ResourceStore) insertResource(ctx context.Context, tx *sqldb.Tx, record ResourceRecord, input resource.Input) (*ent.Resource, error) {
	of, err := metadefdb.ResourceTypeRow(ctx, tx, "input.type", record.Type)
	if err != nil {
		return nil, err
	}
	r := newResource{ResourceRecord: record, typeID: of.ID}
	if r.parentID, err = s.parentFor(ctx, tx, of.Name, record.Parent); err != nil {
		return nil, err
	}
	if err := s.checkJudged(ctx, tx, of, judgedInput(input, of.ID, record.ProjectID)); err != nil {
		return nil, err
	}
	if most := s.limits.MetadataItems; most > 0 && len(record.Metadata) > most {
		return nil, problem.Refuse(problem.ErrQuotaExceeded, "resource would have %d metadata items, at most %d are allowed", len(record.Metadata), most).On("input.metadata")
	}
	rows, err := s.insertResourceLevel(ctx, tx, []newResource{r}, s.Now())
	if err != nil {
		return nil, err
	}
	tx.Record(ctx, sqldb.Event{Kind: "Resource", Key: rows[0].UUID, After: recordFields(record)})
	return rows[0], nil
}

// recordFields returns a new resource for the audit log.
func recordFields(record ResourceRecord) sqldb.Fields {
	return sqldb.Fields{
		"type": record.Type, "name": record.Name, "description": sqldb.TextOrNil(record.Description), "projectId": record.ProjectID,
		"visibility": record.Visibility, "parent": sqldb.TextOrNil(record.Parent), "metadata": metadataFields(pointersTo(record.Metadata)),
		"capabilities": capabilityFields(record.Capabilities), "tags": append([]string{}, record.Tags...),
	}
}

// parentFor locks the parent that a resource of a type is to have against
// deletion and returns its row id, 0 for none. Some types have one kind of
// parent only, and some never stand alone: what does not fit is
// ErrInvalidInput.
func (s *ResourceStore) parentFor(ctx context.Context, tx *sqldb.Tx, typeName, parent string) (int64, error) {
	var natural defaults.ResourceType
	for _, builtIn := range defaults.ResourceTypes() {
		if builtIn.Name == typeName {
			natural = builtIn
		}
	}
	if parent == "" {
		if natural.ParentRequired {
			return 0, problem.Invalid("input.parent", "a resource of the type %s needs a parent of the type %s", typeName, natural.Parent)
		}
		return 0, nil
	}
	rows, err := s.lockResources(ctx, tx, []string{parent}, func(int) string { return "input.parent" })
	if errors.Is(err, problem.ErrNotFound) {
		return 0, problem.Invalid("input.parent", "resource %s does not exist", parent)
	}
	if err != nil {
		return 0, err
	}
	kind, err := tx.ResourceType.Get(ctx, rows[0].ResourceTypeID)
	if err != nil {
		return 0, err
	}
	if natural.Parent != "" && kind.Name != natural.Parent {
		return 0, problem.Invalid("input.parent", "the parent of a resource of the type %s must be of the type %s, not %s", typeName, natural.Parent, kind.Name)
	}
	return rows[0].ID, nil
}
