package access

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/problem"
)

// Rule names one thing that some viewers may do and others may not. Which rows
// they may do it to is for the store's access predicates and for ownership.
type Rule string

// The rules, by the part of the API that they cover.
const (
	RuleViewer              Rule = "viewer"                // asking who one is, and looking up ids
	RuleDefinitionsRead     Rule = "definitions.read"      // visible namespaces and all that is in them
	RuleDefinitionsWrite    Rule = "definitions.write"     // any visible namespace; owners and editors write theirs besides
	RuleResourceTypesWrite  Rule = "resourceTypes.write"   // resource types
	RuleResourcesRead       Rule = "resources.read"        // visible resources, their metadata and tags
	RuleResourcesWrite      Rule = "resources.write"       // resources of the viewer's own project
	RuleResourcesWriteAny   Rule = "resources.writeAny"    // resources of any project
	RuleServiceMetadata     Rule = "metadata.serviceOwned" // metadata that users cannot change
	RuleCapabilitiesWrite   Rule = "capabilities.write"    // values of capabilities on resources
	RuleCapabilityRegistry  Rule = "capabilities.registry" // names of capabilities and who discovers them
	RuleCapabilitiesPrivate Rule = "capabilities.private"  // names and values of private capabilities
	RulePlacementRead       Rule = "placement.read"        // providers, candidates, and the consumers of the viewer's own project
	RulePlacementWrite      Rule = "placement.write"       // all of placement
	RuleConsumersReadAny    Rule = "consumers.readAny"     // consumers of any project, with their allocations and usages
	RuleAuditRead           Rule = "audit.read"            // the audit log
	RuleChangesRead         Rule = "changes.read"          // what happened to the things that the viewer may see
)

// anyone stands for every viewer that has shown a known token, with any role or
// none.
const anyone = "*"

// readers are all four roles: whoever writes, reads.
var readers = []string{RoleAdmin, RoleService, RoleMember, RoleReader}

// rules are the defaults: who may do what, by role.
var rules = map[Rule][]string{
	RuleViewer:              {anyone},
	RuleDefinitionsRead:     readers,
	RuleDefinitionsWrite:    {RoleAdmin},
	RuleResourceTypesWrite:  {RoleAdmin},
	RuleResourcesRead:       readers,
	RuleResourcesWrite:      {RoleAdmin, RoleService, RoleMember},
	RuleResourcesWriteAny:   {RoleAdmin, RoleService},
	RuleServiceMetadata:     {RoleAdmin, RoleService},
	RuleCapabilitiesWrite:   {RoleAdmin, RoleService},
	RuleCapabilityRegistry:  {RoleAdmin},
	RuleCapabilitiesPrivate: {RoleAdmin, RoleService},
	RulePlacementRead:       readers,
	RulePlacementWrite:      {RoleAdmin, RoleService},
	RuleConsumersReadAny:    {RoleAdmin, RoleService},
	RuleAuditRead:           {RoleAdmin},
	RuleChangesRead:         readers,
}

// Permission is what a field of Query or Mutation needs.
type Permission struct {
	Rule Rule
	// AfterVisibility is set where the store asks, once it has found that the
	// thing exists for the viewer: what is not visible is not found, whatever
	// the viewer's role; or because owners may, where the operator lets them.
	// Elsewhere the role is asked first.
	AfterVisibility bool
	// Besides is who else may use the field, on namespaces of theirs.
	Besides Besides
}

// Besides is who may use a field of Mutation besides those that its rule lets:
// members of projects, on some namespaces.
type Besides int

// Who may use a field besides.
const (
	NobodyElse Besides = iota
	Owners             // of the project that owns the namespace, where the operator lets them
	Editors            // and of projects that it is shared with as editors
)

// permissions is the table of every field of Query, Mutation and Subscription. A field
// without a row is refused to everyone, and a test finds it.
var permissions = func() map[string]Permission {
	table := map[string]Permission{}
	add := func(permission Permission, fields string) {
		for field := range strings.FieldsSeq(fields) {
			table[field] = permission
		}
	}
	add(Permission{Rule: RuleViewer}, `viewer node nodes`)
	add(Permission{Rule: RuleDefinitionsRead}, `namespaces namespace resourceTypes resourceType tags definitions
		validateMetadata exportNamespaces`)
	add(Permission{Rule: RuleDefinitionsWrite, AfterVisibility: true, Besides: Owners}, `createNamespace unloadNamespaces deleteNamespace
		associateResourceType updateResourceTypeAssociation disassociateResourceType shareNamespace unshareNamespace`)
	add(Permission{Rule: RuleDefinitionsWrite, AfterVisibility: true, Besides: Editors}, `updateNamespace deleteNamespaceContents importNamespaces
		createProperty updateProperty deleteProperty createObject updateObject deleteObject setTags updateTag deleteTag`)
	add(Permission{Rule: RuleResourceTypesWrite}, `createResourceType`)
	add(Permission{Rule: RuleResourceTypesWrite, AfterVisibility: true}, `updateResourceType deleteResourceType`)
	add(Permission{Rule: RuleResourcesRead}, `resources resource metadataKeys metadataProblems explainResources`)
	add(Permission{Rule: RuleResourcesWrite}, `createResource createResources updateResource deleteResource setResourceTags setMetadata
		setMetadataOnResources replaceMetadata deleteMetadata`)
	add(Permission{Rule: RuleCapabilitiesWrite}, `setCapabilities unsetCapabilities`)
	add(Permission{Rule: RuleCapabilityRegistry}, `createCapability setCapabilityVisibility deleteCapability`)
	add(Permission{Rule: RulePlacementRead}, `resourceProviders resourceProvider allocationCandidates placementRequest traits resourceClasses
		consumer consumers usages capacity`)
	add(Permission{Rule: RulePlacementWrite}, `createResourceProvider createResourceProviders updateResourceProvider deleteResourceProvider
		setInventories setInventory deleteInventory setProviderTraits setProviderAggregates setOnResourceProviders createTrait deleteTrait
		createResourceClass deleteResourceClass setAllocations deleteAllocations reshape`)
	add(Permission{Rule: RuleDefinitionsRead}, `namespaceChanged`)
	add(Permission{Rule: RuleResourcesRead}, `resourceChanged`)
	add(Permission{Rule: RulePlacementRead}, `allocationCandidatesChanged capacityChanged resourceProviderChanged`)
	add(Permission{Rule: RuleAuditRead}, `auditEvents`)
	add(Permission{Rule: RuleChangesRead}, `changes`)
	return table
}()

// PermissionOf returns what a field of Query or Mutation needs, and false for a
// field that the table does not hold.
func PermissionOf(field string) (permission Permission, ok bool) {
	permission, ok = permissions[field]
	return permission, ok
}

// Policy is which roles may do what, where an operator wants other than the
// defaults. The nil Policy is the defaults.
type Policy struct {
	roles map[string][]string // by rule or field
}

// NewPolicy returns a policy of overrides: lists of roles (or "*", everyone
// with a known token) by rule, or by field of Query or Mutation, which goes
// before its rule. Unknown rules, fields and roles are refused, all of them at
// once.
func NewPolicy(overrides map[string][]string) (*Policy, error) {
	var problems problem.Problems
	for _, name := range slices.Sorted(maps.Keys(overrides)) {
		_, isRule := rules[Rule(name)]
		_, isField := permissions[name]
		if !isRule && !isField {
			problems.Add(name, "is neither a rule nor a field of Query or Mutation")
		}
		for i, role := range overrides[name] {
			if role != anyone && !slices.Contains(readers, role) {
				problems.Add(fmt.Sprintf("%s[%d]", name, i), "unknown role %q: there are admin, service, member, reader, and * for everyone", role)
			}
		}
	}
	return &Policy{roles: overrides}, problems.Err()
}

// Differences returns the rules and fields for which two policies have other
// roles, sorted.
func (p *Policy) Differences(other *Policy) []string {
	names := map[string]bool{}
	for _, of := range []*Policy{p, other} {
		if of != nil {
			for name := range of.roles {
				names[name] = true
			}
		}
	}
	var differ []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !slices.Equal(p.overridden(name), other.overridden(name)) {
			differ = append(differ, name)
		}
	}
	return differ
}

// overridden returns the roles that the policy has for a rule or a field,
// sorted: where it has none, the default of a rule, and for a field a word that
// is not a role.
func (p *Policy) overridden(name string) []string {
	roles, isRule := rules[Rule(name)]
	overridden := false
	if p != nil {
		if own, ok := p.roles[name]; ok {
			roles, overridden = own, true
		}
	}
	if !isRule && !overridden {
		return []string{"as its rule"}
	}
	return slices.Sorted(slices.Values(roles))
}

// rolesFor returns the roles that may do what a rule covers, by way of a field
// of Query or Mutation where one is known.
func (p *Policy) rolesFor(rule Rule, field string) []string {
	if p != nil {
		if roles, overridden := p.roles[field]; overridden && permissions[field].Rule == rule {
			return roles
		}
		if roles, overridden := p.roles[string(rule)]; overridden {
			return roles
		}
	}
	return rules[rule]
}

// WithPolicy returns the viewer under an operator's policy.
func (v Viewer) WithPolicy(policy *Policy) Viewer {
	v.policy = policy
	return v
}

// Authorize returns the viewer at a field of Query or Mutation, and ErrForbidden
// where the role is asked first and does not suffice.
func (v Viewer) Authorize(field string) (Viewer, error) {
	v.field = field
	permission, ok := PermissionOf(field)
	if !ok {
		return v, problem.Refuse(problem.ErrForbidden, "nobody may use %s", field)
	}
	if permission.AfterVisibility {
		return v, nil
	}
	return v, v.Require(permission.Rule, field)
}

// RequireAt refuses a viewer who may not do what a field of Query or Mutation
// needs. It is Authorize for where the role is asked after visibility.
func (v Viewer) RequireAt(field string) error {
	v.field = field
	return v.Require(permissions[field].Rule, field)
}

// Require refuses a viewer who may not do what a rule covers. What is the field
// of the API, or what is done in words: "reading placement".
func (v Viewer) Require(rule Rule, what string) error {
	if v.May(rule) {
		return nil
	}
	return problem.Refuse(problem.ErrForbidden, "%s needs %s", what, v.RolesThatMay(rule))
}

// RolesThatMay returns the roles that may do what a rule covers, in words.
func (v Viewer) RolesThatMay(rule Rule) string {
	roles := v.policy.rolesFor(rule, v.field)
	if len(roles) == 0 {
		return "a role that nobody has"
	}
	last := len(roles) - 1
	if last == 0 {
		return "the role " + roles[0]
	}
	return "the role " + strings.Join(roles[:last], ", ") + " or " + roles[last]
}

// May reports whether the viewer may do what a rule covers.
func (v Viewer) May(rule Rule) bool {
	roles := v.policy.rolesFor(rule, v.field)
	return slices.Contains(roles, anyone) || slices.ContainsFunc(roles, v.Has)
}
