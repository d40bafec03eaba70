package resourcedb

import (
	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/text"
)

// newMetadata returns the metadata of a resource to create.
func newMetadata(rules resource.MetadataRules, input resource.Input) []resource.MetadataItem {
	items := resource.MetadataChange{Items: input.Metadata}.Plan(rules, nil).Set
	for _, item := range input.ServiceMetadata {
		items = append(items, resource.MetadataItem{Key: item.Key, Value: item.Value})
	}
	return items
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
		return problem.Under(resource.MayWriteForProject(viewer, *input.ProjectID, "the resource to create"),
			"input.projectId")
	}
	return nil
}

// recordOf returns the record of an input, with defaults for the viewer and
// without metadata.
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

// recordFields returns a new resource for the audit log.
func recordFields(record ResourceRecord) sqldb.Fields {
	return sqldb.Fields{
		"type": record.Type, "name": record.Name, "description": sqldb.TextOrNil(record.Description),
		"projectId":  record.ProjectID,
		"visibility": record.Visibility, "parent": sqldb.TextOrNil(record.Parent),
		"metadata":     metadataFields(pointersTo(record.Metadata)),
		"capabilities": capabilityFields(record.Capabilities), "tags": append([]string{}, record.Tags...),
	}
}
