package model

import (
	"github.com/cadastre-dev/cadastre/audit"
	"github.com/cadastre-dev/cadastre/change"
	"github.com/cadastre-dev/cadastre/metadef"
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
