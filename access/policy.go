package access

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/problem"
)

// Rule names an action that only some viewers may perform. The store's access
// predicates and ownership determine the rows that a viewer may act on.
type Rule string

// The rules, with the part of the API that each one covers.
const (
	RuleViewer              Rule = "viewer"                // the viewer itself, and lookups of ids
	RuleDefinitionsRead     Rule = "definitions.read"      // visible namespaces and their contents
	RuleDefinitionsWrite    Rule = "definitions.write"     // any visible namespace; see Besides for owners and editors
	RuleResourceTypesWrite  Rule = "resourceTypes.write"   // resource types
	RuleResourcesRead       Rule = "resources.read"        // visible resources, their metadata and tags
	RuleResourcesWrite      Rule = "resources.write"       // resources of the viewer's own project
	RuleResourcesWriteAny   Rule = "resources.writeAny"    // resources of any project
	RuleServiceMetadata     Rule = "metadata.serviceOwned" // metadata that users cannot change
	RuleCapabilitiesWrite   Rule = "capabilities.write"    // values of capabilities on resources
	RuleCapabilityRegistry  Rule = "capabilities.registry" // names and visibility of capabilities
	RuleCapabilitiesPrivate Rule = "capabilities.private"  // names and values of private capabilities
	// resources of other systems, written by a sync, in all projects
	RuleSync Rule = "sync"
	// providers, candidates, and the consumers of the viewer's own project
	RulePlacementRead  Rule = "placement.read"
	RulePlacementWrite Rule = "placement.write" // all of placement
	// consumers of any project, with their allocations and usages
	RuleConsumersReadAny Rule = "consumers.readAny"
	RuleLimitsWrite      Rule = "limits.write"  // limits of projects
	RuleLimitsExceed     Rule = "limits.exceed" // claims above the limits of a project
	RuleAuditRead        Rule = "audit.read"    // the audit log
	RuleChangesRead      Rule = "changes.read"  // changes of objects that the viewer may see
)

// anyone stands for every viewer with a known token, with or without a role.
const anyone = "*"

// readers are all four roles, because every role that may write may also read.
var readers = []string{RoleAdmin, RoleService, RoleMember, RoleReader}

// rules maps each rule to the roles that it permits by default.
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
	RuleSync:                {RoleAdmin, RoleService},
	RulePlacementRead:       readers,
	RulePlacementWrite:      {RoleAdmin, RoleService},
	RuleConsumersReadAny:    {RoleAdmin, RoleService},
	RuleLimitsWrite:         {RoleAdmin},
	RuleLimitsExceed:        {},
	RuleAuditRead:           {RoleAdmin},
	RuleChangesRead:         readers,
}

// Permission is the requirement of a field of Query, Mutation or Subscription.
type Permission struct {
	Rule Rule
	// AfterVisibility is set if the store checks the role, after it has checked
	// that the viewer sees the object. There are two reasons. An invisible
	// object is NOT_FOUND for every role, and the operator may let owners use
	// the field. Without AfterVisibility, Authorize checks the role first.
	AfterVisibility bool
	// Besides permits the field to members of projects, on their namespaces.
	Besides besides
}

// besides is the project membership that permits a field of Mutation to viewers
// whom its rule does not permit. It applies to namespaces only.
type besides int

// The values of Besides.
const (
	nobodyElse besides = iota
	owners             // members of the project that owns the namespace, if the operator permits it
	editors            // owners, and members of projects that are editors of the namespace
)

// permissions is the table of every field of Query, Mutation and Subscription.
// Authorize refuses a field without a row to every viewer. A test finds such a
// field.
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
	add(Permission{Rule: RuleDefinitionsWrite, AfterVisibility: true, Besides: owners},
		`createNamespace unloadNamespaces deleteNamespace
		associateResourceType updateResourceTypeAssociation disassociateResourceType shareNamespace unshareNamespace`)
	add(Permission{Rule: RuleDefinitionsWrite, AfterVisibility: true, Besides: editors},
		`updateNamespace deleteNamespaceContents importNamespaces
		createProperty updateProperty deleteProperty createObject updateObject deleteObject setTags updateTag deleteTag`)
	add(Permission{Rule: RuleDefinitionsWrite}, `setDefaults applyDefaults`)
	add(Permission{Rule: RuleResourceTypesWrite}, `createResourceType`)
	add(Permission{Rule: RuleResourceTypesWrite, AfterVisibility: true}, `updateResourceType deleteResourceType`)
	add(Permission{Rule: RuleResourcesRead}, `resources resource metadataKeys metadataProblems explainResources`)
	add(Permission{Rule: RuleResourcesWrite},
		`createResource createResources updateResource deleteResource setResourceTags setMetadata
		setMetadataOnResources replaceMetadata deleteMetadata`)
	add(Permission{Rule: RuleCapabilitiesWrite}, `setCapabilities unsetCapabilities`)
	add(Permission{Rule: RuleCapabilityRegistry}, `createCapability setCapabilityVisibility deleteCapability`)
	add(Permission{Rule: RuleSync}, `syncs syncResources endSync`)
	add(Permission{Rule: RulePlacementRead},
		`resourceProviders resourceProvider allocationCandidates placementRequest traits resourceClasses
		consumer consumers lastRefusal usages limits capacity capacityHistory whatIf capacityFor fits fitsTogether survives drainPlan rebalancePlan`)
	add(Permission{Rule: RulePlacementWrite},
		`createResourceProvider createResourceProviders updateResourceProvider deleteResourceProvider
		setInventories setInventory updateInventories deleteInventory setProviderTraits setProviderAggregates setOnResourceProviders createTrait ensureTraits deleteTrait
		createResourceClass deleteResourceClass setAllocations deleteAllocations deleteAllocationsForMany confirmAllocations place applyPlan reshape`)
	add(Permission{Rule: RuleLimitsWrite}, `setLimits`)
	add(Permission{Rule: RuleDefinitionsRead}, `namespaceChanged`)
	add(Permission{Rule: RuleResourcesRead}, `resourceChanged`)
	add(Permission{Rule: RulePlacementRead}, `allocationCandidatesChanged capacityChanged resourceProviderChanged
		consumerChanged survivalChanged`)
	add(Permission{Rule: RuleAuditRead}, `auditEvents`)
	add(Permission{Rule: RuleChangesRead}, `changes`)
	return table
}()

// PermissionOf returns the permission of a field, false for an unknown field.
func PermissionOf(field string) (permission Permission, ok bool) {
	permission, ok = permissions[field]
	return permission, ok
}

// Policy has an operator's overrides of the default roles for rules and fields.
// The nil Policy has no overrides.
type Policy struct {
	roles map[string][]string // by rule or field
}

// NewPolicy returns a policy with overrides. Each one is a list of roles for a
// rule or for a field of Query, Mutation or Subscription. The role "*" is every
// viewer with a known token. A field takes precedence over its rule. The error
// lists all unknown rules, fields and roles.
func NewPolicy(overrides map[string][]string) (*Policy, error) {
	var problems problem.Problems
	for _, name := range slices.Sorted(maps.Keys(overrides)) {
		_, isRule := rules[Rule(name)]
		_, isField := permissions[name]
		if !isRule && !isField {
			problems.Add(name, "is neither a rule nor a field of Query, Mutation or Subscription")
		}
		for i, role := range overrides[name] {
			if role != anyone && !slices.Contains(readers, role) {
				problems.Add(fmt.Sprintf("%s[%d]", name, i),
					"unknown role %q: the roles are admin, service, member, reader, and * for everyone", role)
			}
		}
	}
	return &Policy{roles: overrides}, problems.Err()
}

// Differences returns the rules and fields for which two policies have
// different roles, sorted.
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
// sorted. Without an override it returns the default roles of a rule, and for a
// field one string that is not a role.
func (p *Policy) overridden(name string) []string {
	roles, isRule := rules[Rule(name)]
	overridden := false
	if p != nil {
		if own, ok := p.roles[name]; ok {
			roles, overridden = own, true
		}
	}
	if !isRule && !overridden {
		return []string{"as the rule permits"}
	}
	return slices.Sorted(slices.Values(roles))
}

// rolesFor returns the roles that a rule permits, perhaps none. It prefers the
// policy's override for the field, if the field has this rule.
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

// Authorize returns the viewer as a user of a field. It returns ErrForbidden
// for an unknown field, and if the roles do not permit the field. It leaves the
// check to the store if the permission has AfterVisibility.
func (v Viewer) Authorize(field string) (Viewer, error) {
	v.field = field
	permission, ok := PermissionOf(field)
	if !ok {
		return v, problem.Refuse(problem.ErrForbidden, "no role may use %s", field)
	}
	if permission.AfterVisibility {
		return v, nil
	}
	return v, v.Require(permission.Rule, field)
}

// RequireAt returns ErrForbidden unless the viewer's roles permit a field. The
// store calls it after it has checked visibility.
func (v Viewer) RequireAt(field string) error {
	return v.At(field).Require(permissions[field].Rule, field)
}

// Require returns ErrForbidden unless the viewer's roles permit a rule. The
// error begins with the argument what: a field of the API, or an action in
// words, such as "reading placement".
func (v Viewer) Require(rule Rule, what string) error {
	if v.May(rule) {
		return nil
	}
	return problem.Refuse(problem.ErrForbidden, "%s needs %s", what, v.RolesThatMay(rule))
}

// RolesThatMay returns the roles that a rule permits, in words.
func (v Viewer) RolesThatMay(rule Rule) string {
	roles := v.policy.rolesFor(rule, v.field)
	if len(roles) == 0 {
		return "a role, but the policy permits none"
	}
	last := len(roles) - 1
	if last == 0 {
		return "the role " + roles[0]
	}
	return "the role " + strings.Join(roles[:last], ", ") + " or " + roles[last]
}

// May reports whether the viewer's roles permit a rule.
func (v Viewer) May(rule Rule) bool {
	roles := v.policy.rolesFor(rule, v.field)
	return slices.Contains(roles, anyone) || slices.ContainsFunc(roles, v.Has)
}

// At returns the viewer as a user of a field of Query, Mutation or
// Subscription, because an operator's policy may override a rule for one field.
// At never refuses.
func (v Viewer) At(field string) Viewer {
	v.field = field
	return v
}

// MayUse reports whether the viewer's roles permit a field of Query, Mutation
// or Subscription.
func (v Viewer) MayUse(field string) bool {
	permission, ok := PermissionOf(field)
	return ok && v.At(field).May(permission.Rule)
}

// Can reports whether the viewer could use the field on at least one object, by
// role or by project membership. If ownersWrite is set, members of the project
// that owns a namespace may write it.
func (v Viewer) Can(field string, ownersWrite bool) bool {
	if v.MayUse(field) {
		return true
	}
	switch permissions[field].Besides {
	case editors:
		return v.Has(RoleMember)
	case owners:
		return ownersWrite && v.Has(RoleMember) && v.ProjectID != ""
	}
	return false
}

// Rules returns the rules that the viewer's roles permit, sorted.
func (v Viewer) Rules() []Rule {
	return slices.DeleteFunc(AllRules(), func(rule Rule) bool { return !v.At("").May(rule) })
}

// AllRules returns all rules, sorted.
func AllRules() []Rule { return slices.Sorted(maps.Keys(rules)) }

// AllRoles returns all roles, sorted.
func AllRoles() []string { return slices.Sorted(slices.Values(readers)) }

// Operations returns all fields in the table of permissions, sorted.
func Operations() []string { return slices.Sorted(maps.Keys(permissions)) }

// EnumName returns the enum value for a role, a rule or a field, for example
// RESOURCES_WRITE_ANY for resources.writeAny.
func EnumName(name string) string {
	var out strings.Builder
	for _, r := range name {
		switch {
		case r == '.':
			r = '_'
		case r >= 'A' && r <= 'Z':
			out.WriteByte('_')
		}
		out.WriteRune(r)
	}
	return strings.ToUpper(out.String())
}

// FieldNamed returns the field of Query, Mutation or Subscription for an enum
// value, "" if there is none.
func FieldNamed(enumName string) string { return fieldsByEnumName[enumName] }

// fieldsByEnumName maps an EnumName to its field in the table of permissions.
var fieldsByEnumName = func() map[string]string {
	fields := map[string]string{}
	for field := range permissions {
		fields[EnumName(field)] = field
	}
	return fields
}()

// UsedField returns the field of Query, Mutation or Subscription that the
// viewer uses, empty for none.
func (v Viewer) UsedField() string { return v.field }
