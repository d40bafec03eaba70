package model

import (
	"context"

	"github.com/cadastre-dev/cadastre/audit"
	"github.com/cadastre-dev/cadastre/change"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/resource"
)

// The connections of the schema that have the fields of every connection.
type (
	AuditEventConnection              = Connection[audit.Event]
	NamespaceConnection               = Connection[metadef.Namespace]
	PropertyDefinitionConnection      = Connection[metadef.PropertyDefinition]
	ObjectDefinitionConnection        = Connection[metadef.ObjectDefinition]
	TagConnection                     = Connection[metadef.Tag]
	ResourceTypeConnection            = Connection[metadef.ResourceType]
	ResourceTypeAssociationConnection = Connection[metadef.ResourceTypeAssociation]
	CapabilityValueConnection         = Connection[resource.CapabilityValue]
	MetadataKeyConnection             = Connection[resource.MetadataKey]
	ConsumerConnection                = Connection[Consumer]
	AllocationConnection              = Connection[placement.Allocation]
	TraitConnection                   = Connection[placement.Trait]
	ResourceClassConnection           = Connection[placement.ResourceClass]
	ResourceProviderConnection        = Connection[ResourceProvider]
)

// The edges of the schema.
type (
	AuditEventEdge              = Edge[audit.Event]
	NamespaceEdge               = Edge[metadef.Namespace]
	PropertyDefinitionEdge      = Edge[metadef.PropertyDefinition]
	ObjectDefinitionEdge        = Edge[metadef.ObjectDefinition]
	TagEdge                     = Edge[metadef.Tag]
	ResourceTypeEdge            = Edge[metadef.ResourceType]
	ResourceTypeAssociationEdge = Edge[metadef.ResourceTypeAssociation]
	CapabilityValueEdge         = Edge[resource.CapabilityValue]
	MetadataKeyEdge             = Edge[resource.MetadataKey]
	ConsumerEdge                = Edge[Consumer]
	AllocationEdge              = Edge[placement.Allocation]
	TraitEdge                   = Edge[placement.Trait]
	ResourceClassEdge           = Edge[placement.ResourceClass]
	ResourceProviderEdge        = Edge[ResourceProvider]
	ResourceEdge                = Edge[resource.Resource]
	ResourceProblemsEdge        = Edge[resource.ResourceProblems]
	ChangeEdge                  = Edge[change.Change]
	AllocationCandidateEdge     = Edge[AllocationCandidate]
	CapacityEdge                = Edge[Capacity]
	CapacityBucketEdge          = Edge[placement.CapacityBucket]
	FailureEdge                 = Edge[Failure]
)

// ChangeConnection is a page of the feed of changes, which never ends.
type ChangeConnection struct {
	*Connection[change.Change]
	Cursor string // where the page ends
	// Newest returns the cursor after the newest change.
	Newest func(context.Context) (string, error)
}

// Latest returns the cursor after the newest change.
func (c *ChangeConnection) Latest(ctx context.Context) (*string, error) {
	cursor, err := c.Newest(ctx)
	return &cursor, err
}

// CapacityBucketConnection is a page of the capacity history.
type CapacityBucketConnection struct {
	*Connection[placement.CapacityBucket]
	IsIncomplete bool
}

// ResourceConnection is a page of resources.
type ResourceConnection struct {
	*Connection[resource.Resource]
	// CountMetadata and CountFacets count the values on the resources of the
	// list.
	CountMetadata func(ctx context.Context, keys []string, first int) ([]*resource.MetadataFacet, error)
	CountFacets   func(ctx context.Context, wanted []resource.FacetRequest) ([]*resource.Facet, error)
}

// Facets returns the values on the resources of the list, with their counts.
func (c *ResourceConnection) Facets(ctx context.Context, of []resource.FacetRequest) ([]*resource.Facet, error) {
	return c.CountFacets(ctx, of)
}

// MetadataFacets returns the values of metadata keys on all resources of the
// list.
func (c *ResourceConnection) MetadataFacets(ctx context.Context, keys []string,
	first *int) ([]*resource.MetadataFacet, error) {
	if first == nil {
		return c.CountMetadata(ctx, keys, resource.DefaultFacetValues)
	}
	return c.CountMetadata(ctx, keys, *first)
}

// MetadataProblemConnection is a page of resources with metadata that breaks
// its definitions.
type MetadataProblemConnection struct{ *resource.ProblemPage }

// Edges returns the resources with their cursors.
func (c *MetadataProblemConnection) Edges() []ResourceProblemsEdge {
	rows := page.Page[*resource.ResourceProblems]{Items: c.Nodes, Cursors: c.Cursors}
	return (&Connection[resource.ResourceProblems]{Page: rows}).Edges()
}

// PageInfo returns the cursors of the page and whether more pages follow.
func (c *MetadataProblemConnection) PageInfo() *PageInfo {
	info := &PageInfo{EndCursor: c.End, HasNext: c.HasMore}
	if len(c.Cursors) > 0 {
		info.StartCursor = &c.Cursors[0]
	}
	return info
}

// ProblemFilterOf returns a filter of problems; nil selects all.
func ProblemFilterOf(filter *MetadataProblemFilter) resource.ProblemFilter {
	if filter == nil {
		return resource.ProblemFilter{}
	}
	of := resource.ProblemFilter{Namespace: filter.Namespace.Value(), Key: filter.Key.Value(),
		Rule: RuleNamed(filter.Rule.Value())}
	if resources := filter.Resources.Value(); resources != nil {
		of.Resources = *resources
	}
	return of
}

// ProblemScanOf returns a scan for problems; nil is the first page of a scan
// without a filter.
func ProblemScanOf(scan *MetadataProblemScan) resource.ProblemScan {
	if scan == nil {
		return resource.ProblemScan{First: page.DefaultSize, Scan: resource.MaxScan}
	}
	return resource.ProblemScan{Filter: ProblemFilterOf(scan.Filter.Value()), First: scan.First,
		Scan: scan.Scan, After: scan.After.Value()}
}
