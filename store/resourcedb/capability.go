package resourcedb

import (
	"context"
	"fmt"
	"slices"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/capability"
	"github.com/cadastre-dev/cadastre/ent/capabilitycount"
	"github.com/cadastre-dev/cadastre/ent/capabilityvalue"
	"github.com/cadastre-dev/cadastre/ent/predicate"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/store/visible"
	"github.com/cadastre-dev/cadastre/text"
)

// Capabilities returns, for each of the types, the capabilities that some
// resource has a value for, sorted by name. It returns private ones only if
// includePrivate is set and the viewer may see them, and ErrForbidden if the
// viewer may not discover capabilities.
func (s *ResourceStore) Capabilities(ctx context.Context, types []int64,
	includePrivate bool) (map[int64][]*resource.Capability, error) {
	viewer := access.ViewerFrom(ctx)
	if err := resource.MayDiscover(viewer, s.options.CapabilityDiscovery); err != nil {
		return nil, err
	}
	rows, err := s.Ent.Capability.Query().
		Where(paging.Among(capability.FieldResourceTypeID, types), capability.HasCounts(),
			capabilitiesSeen(viewer, includePrivate)).
		Order(capability.ByResourceTypeID(), capability.ByName()).All(ctx)
	return paging.ByParent(rows, err, "capabilities", capabilityNoun, func(row *ent.Capability) int64 {
		return row.ResourceTypeID
	})
}

// CapabilitiesNamed returns the capabilities with one name, by resource type.
// The answer for a private one is ErrForbidden unless the viewer may see
// private ones. CapabilitiesNamed returns ErrForbidden if the viewer may not
// discover capabilities.
func (s *ResourceStore) CapabilitiesNamed(ctx context.Context, types []int64,
	name string) (map[int64]resource.CapabilityAnswer, error) {
	viewer := access.ViewerFrom(ctx)
	if err := resource.MayDiscover(viewer, s.options.CapabilityDiscovery); err != nil {
		return nil, err
	}
	rows, err := s.Ent.Capability.Query().
		Where(paging.Among(capability.FieldResourceTypeID, types), capability.Name(name)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("look up capabilities: %w", err)
	}
	return lists.Index(rows, func(row *ent.Capability) (int64, resource.CapabilityAnswer) {
		return row.ResourceTypeID, resource.AnswerCapability(viewer, capabilityNoun(row))
	}), nil
}

// CapabilitiesByUUID returns the capabilities with the uuids, as far as the
// viewer may see them. If the viewer may not discover capabilities, it returns
// nil and no error.
func (s *ResourceStore) CapabilitiesByUUID(ctx context.Context,
	uuids []string) (map[string]*resource.Capability, error) {
	viewer := access.ViewerFrom(ctx)
	if resource.MayDiscover(viewer, s.options.CapabilityDiscovery) != nil {
		return nil, nil
	}
	rows, err := s.Ent.Capability.Query().
		Where(paging.Among(capability.FieldUUID, uuids), capabilitiesSeen(viewer, true),
			visible.OfResourceTypes(ctx)).All(ctx)
	return paging.ByID(rows, err, "capabilities", capabilityNoun, func(row *ent.Capability) string { return row.UUID })
}

// capabilitiesSeen keeps public registry entries, and private ones if
// includePrivate is set and the viewer may see them.
func capabilitiesSeen(viewer access.Viewer, includePrivate bool) predicate.Capability {
	return func(s *entsql.Selector) {
		if !includePrivate || !viewer.May(access.RuleCapabilitiesPrivate) {
			s.Where(entsql.EQ(s.C(capability.FieldPrivate), false))
		}
	}
}

// CapabilitiesOf returns, for each of the visible resources, its values, sorted
// by name. It returns private ones only if includePrivate is set and the viewer
// may see them, and ErrForbidden if the viewer may not discover capabilities.
func (s *ResourceStore) CapabilitiesOf(ctx context.Context, resources []int64,
	includePrivate bool) (map[int64][]*resource.ResourceCapability, error) {
	viewer := access.ViewerFrom(ctx)
	if err := resource.MayDiscover(viewer, s.options.CapabilityDiscovery); err != nil {
		return nil, err
	}
	query := s.Ent.CapabilityValue.Query().
		Where(paging.Among(capabilityvalue.FieldResourceID, resources), visible.OfResources(ctx))
	query.Modify(func(s *entsql.Selector) {
		registry := entsql.Dialect(s.Dialect()).Table(capability.Table)
		s.Join(registry).On(s.C(capabilityvalue.FieldCapabilityID), registry.C(capability.FieldID))
		if !includePrivate || !viewer.May(access.RuleCapabilitiesPrivate) {
			s.Where(entsql.EQ(registry.C(capability.FieldPrivate), false))
		}
		s.AppendSelectAs(registry.C(capability.FieldName), capabilityNameColumn)
		s.AppendSelectExprAs(entsql.ExprFunc(func(b *entsql.Builder) {
			b.WriteString("CASE WHEN ").Ident(registry.C(capability.FieldPrivate)).
				WriteString(" THEN 'private' ELSE 'public' END")
		}), capabilityVisibilityColumn)
		s.OrderBy(s.C(capabilityvalue.FieldResourceID), registry.C(capability.FieldName))
	})
	rows, err := query.All(ctx)
	return paging.ByParent(rows, err, "capabilities of resources", resourceCapabilityNoun,
		func(row *ent.CapabilityValue) int64 { return row.ResourceID })
}

// HeldCapabilities is CapabilitiesOf for a resource that was read together with
// its capabilities. It returns the ones that the viewer may see, and false if
// the resource came without them or the viewer may not discover capabilities.
func (s *ResourceStore) HeldCapabilities(ctx context.Context, of *resource.Resource,
	includePrivate bool) ([]*resource.ResourceCapability, bool) {
	viewer := access.ViewerFrom(ctx)
	if of.Capabilities == nil || resource.MayDiscover(viewer, s.options.CapabilityDiscovery) != nil {
		return nil, false
	}
	seesPrivate := includePrivate && viewer.May(access.RuleCapabilitiesPrivate)
	return slices.DeleteFunc(slices.Clone(of.Capabilities), func(c *resource.ResourceCapability) bool {
		return c.Private && !seesPrivate
	}), true
}

// Names of the registry columns that are read with a value.
const (
	capabilityNameColumn       = "capability_name"
	capabilityVisibilityColumn = "capability_visibility"
)

func resourceCapabilityNoun(row *ent.CapabilityValue) *resource.ResourceCapability {
	c := &resource.ResourceCapability{ResourceID: row.ResourceID, Value: row.Value}
	if name, err := row.GetValue(capabilityNameColumn); err == nil {
		c.Name = sqldb.TextOf(name)
	}
	if visibility, err := row.GetValue(capabilityVisibilityColumn); err == nil {
		c.Private = sqldb.TextOf(visibility) == "private"
	}
	return c
}

func capabilityNoun(row *ent.Capability) *resource.Capability {
	return &resource.Capability{ID: row.ID, UUID: row.UUID, ResourceTypeID: row.ResourceTypeID,
		Name: row.Name, Private: row.Private}
}

// valueOrders has the only order of the values of a capability: by code point.
var valueOrders = map[string]paging.SortKey{
	"": {Column: capabilitycount.FieldValuePrefix, Tie: capabilitycount.FieldValue, IsPrefix: true},
}

// valuePaging returns the paging of the values of capabilities, and the condition
// for values that begin with startsWith. It reports bad arguments as problems.
func valuePaging(startsWith string,
	request page.Request) (pages paging.Paging, matching func(*entsql.Selector), err error) {
	var problems problem.Problems
	text.Check(&problems, "startsWith", startsWith, 0, resource.MaxCapabilityValue)
	pages, err = paging.New("values", valueOrders, page.Order{}, request)
	matching = func(s *entsql.Selector) {
		if startsWith != "" {
			s.Where(hasPrefix(s.C(capabilitycount.FieldValue), s.C(capabilitycount.FieldValuePrefix), startsWith))
		}
	}
	return pages, matching, append(problems, problem.InError(err)...).Err()
}

func capabilityOfCount(row *ent.CapabilityCount) int64 { return row.CapabilityID }

func valueNoun(row *ent.CapabilityCount) *resource.CapabilityValue {
	return &resource.CapabilityValue{Value: row.Value, ResourceCount: row.ResourceCount}
}

// CapabilityValues returns a page of the values in use of each capability that
// begin with a prefix, by value, with the number of resources that have each.
// Writes maintain these numbers, so nothing is counted here.
func (s *ResourceStore) CapabilityValues(ctx context.Context, capabilities []int64, startsWith string,
	request page.Request) (map[int64]page.Page[*resource.CapabilityValue], error) {
	pages, matching, err := valuePaging(startsWith, request)
	if err != nil {
		return nil, err
	}
	rows, err := s.Ent.CapabilityCount.Query().
		Where(pages.OfEach(capabilitycount.Table, capabilitycount.FieldCapabilityID, capabilities, matching)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("list values of capabilities: %w", err)
	}
	return paging.PagesOf(pages, capabilities, rows, capabilityOfCount, valueNoun,
		func(row *ent.CapabilityCount) (any, string) { return row.Value, "" }), nil
}

// CapabilityValuesBehind reports which capabilities have values behind the page
// of CapabilityValues: before a page that is read forward, after a page that is
// read backward.
func (s *ResourceStore) CapabilityValuesBehind(ctx context.Context, capabilities []int64, startsWith string,
	request page.Request) (map[int64]bool, error) {
	pages, matching, err := valuePaging(startsWith, request)
	if err != nil {
		return nil, err
	}
	rows, err := s.Ent.CapabilityCount.Query().
		Where(pages.BehindEach(capabilitycount.Table, capabilitycount.FieldCapabilityID, capabilities, matching)).
		All(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for values of capabilities: %w", err)
	}
	return lists.Set(rows, capabilityOfCount), nil
}

// CountCapabilityValues returns the number of values in use of each capability
// that begin with a prefix.
func (s *ResourceStore) CountCapabilityValues(ctx context.Context, capabilities []int64,
	startsWith string) (map[int64]int, error) {
	_, matching, err := valuePaging(startsWith, page.Request{})
	if err != nil {
		return nil, err
	}
	return countTable.CountBy(ctx, s.DB, capabilitycount.FieldCapabilityID,
		paging.Among(capabilitycount.FieldCapabilityID, capabilities), matching)
}
