package resourcedb

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/capability"
	"github.com/cadastre-dev/cadastre/ent/capabilityvalue"
	entresource "github.com/cadastre-dev/cadastre/ent/resource"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/metadefdb"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/text"
)

// SetCapabilities sets capabilities of a resource and keeps all others. By
// default only administrators and services may call it. It registers
// unregistered names for the resource's type, unless the operator requires
// explicit registration.
func (s *ResourceStore) SetCapabilities(ctx context.Context, uuid string, capabilities []metadef.KeyValue,
	revision *int) (*resource.Resource, error) {
	return s.changeCapabilities(ctx, uuid, revision, "setCapabilities",
		func(problems *problem.Problems) {
			resource.CheckCapabilities(problems, "input.capabilities", capabilities)
			if len(capabilities) == 0 {
				problems.Add("input.capabilities", "must not be empty")
			}
		},
		func(tx *sqldb.Tx, row *ent.Resource, there map[string]*ent.CapabilityValue) (capabilityPlan, error) {
			return s.planCapabilities(ctx, tx, row, capabilities, there)
		})
}

// UnsetCapabilities removes capabilities from a resource. By default only
// administrators and services may call it. It returns ErrNotFound for a name
// that the resource has no value for.
func (s *ResourceStore) UnsetCapabilities(ctx context.Context, uuid string, names []string,
	revision *int) (*resource.Resource, error) {
	return s.changeCapabilities(ctx, uuid, revision, "unsetCapabilities",
		func(problems *problem.Problems) { resource.CheckCapabilityNames(problems, "input.names", names) },
		func(_ *sqldb.Tx, _ *ent.Resource, there map[string]*ent.CapabilityValue) (plan capabilityPlan, err error) {
			for i, name := range names {
				value := there[name]
				if value == nil {
					return plan, problem.Refuse(problem.ErrNotFound, "resource %s has no capability %q", uuid, name).
						On(problem.Index("input.names", i))
				}
				plan.gone = append(plan.gone, value)
			}
			return plan, nil
		})
}

// capabilityPlan lists the values that a change deletes and those it writes.
type capabilityPlan struct {
	gone   []*ent.CapabilityValue
	writes []capabilityWrite
}

func (s *ResourceStore) changeCapabilities(ctx context.Context, uuid string, revision *int,
	mutation string, check func(*problem.Problems),
	plan func(*sqldb.Tx, *ent.Resource, map[string]*ent.CapabilityValue) (capabilityPlan, error),
) (*resource.Resource, error) {
	if err := checkInput(check); err != nil {
		return nil, err
	}
	var resources []*resource.Resource
	err := s.Write(ctx, mutation, func(tx *sqldb.Tx) error {
		row, err := s.lockResource(ctx, tx, "input.resource", uuid, revision)
		if err != nil {
			return err
		}
		there, before, err := capabilitiesOn(ctx, tx, row)
		if err != nil {
			return err
		}
		planned, err := plan(tx, row, there)
		if err != nil {
			return err
		}
		now, touched := s.Now(), []int64(nil)
		if err := s.writeCapabilities(ctx, tx, planned, now); err != nil {
			return err
		}
		if len(planned.gone)+len(planned.writes) > 0 {
			touched = []int64{row.ID}
		}
		if resources, err = touchResources(ctx, tx, []*ent.Resource{row}, touched, now); err != nil {
			return err
		}
		held, after, err := capabilitiesOn(ctx, tx, row)
		if err != nil {
			return err
		}
		resources[0].Capabilities = []*resource.ResourceCapability{}
		for _, name := range slices.Sorted(maps.Keys(held)) {
			resources[0].Capabilities = append(resources[0].Capabilities,
				&resource.ResourceCapability{ResourceID: row.ID,
					Name: name, Value: held[name].Value, Private: held[name].Edges.Capability.Private})
		}
		tx.Record(ctx,
			sqldb.Event{Kind: "Resource", Key: uuid, Before: sqldb.Fields{"capabilities": capabilityFields(before)},
				After: sqldb.Fields{"capabilities": capabilityFields(after)}})
		return nil
	}, &resources)
	if err != nil {
		return nil, fmt.Errorf("change capabilities: %w", err)
	}
	return resources[0], nil
}

// capabilityFields returns capabilities in the form of audit events.
func capabilityFields(capabilities []metadef.KeyValue) []sqldb.Fields {
	return lists.Map(capabilities, func(c metadef.KeyValue) sqldb.Fields {
		return sqldb.Fields{"key": c.Key, "value": c.Value}
	})
}

// capabilitiesOn returns the values of a resource by name, and as a list sorted
// by name.
func capabilitiesOn(ctx context.Context, tx *sqldb.Tx,
	row *ent.Resource) (map[string]*ent.CapabilityValue, []metadef.KeyValue, error) {
	there, err := valuesOn(ctx, tx, []int64{row.ID})
	return there[row.ID], sortedValues(there[row.ID]), err
}

// valuesOn returns the values of resources by row id and name.
func valuesOn(ctx context.Context, tx *sqldb.Tx, resources []int64) (map[int64]map[string]*ent.CapabilityValue, error) {
	values, err := tx.CapabilityValue.Query().Where(paging.Among(capabilityvalue.FieldResourceID, resources)).
		WithCapability().All(ctx)
	there := map[int64]map[string]*ent.CapabilityValue{}
	for _, value := range values {
		if value.Edges.Capability == nil { // deleted meanwhile
			continue
		}
		if there[value.ResourceID] == nil {
			there[value.ResourceID] = map[string]*ent.CapabilityValue{}
		}
		there[value.ResourceID][value.Edges.Capability.Name] = value
	}
	return there, err
}

// sortedValues returns values as a list sorted by name.
func sortedValues(values map[string]*ent.CapabilityValue) []metadef.KeyValue {
	list := make([]metadef.KeyValue, 0, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		list = append(list, metadef.KeyValue{Key: name, Value: values[name].Value})
	}
	return list
}

// planCapabilities returns the plan that gives a resource its new values. It
// registers missing names; see registered. It skips values that do not change.
func (s *ResourceStore) planCapabilities(ctx context.Context, tx *sqldb.Tx, row *ent.Resource,
	capabilities []metadef.KeyValue, there map[string]*ent.CapabilityValue) (capabilityPlan, error) {
	keys := lists.Map(capabilities, func(c metadef.KeyValue) capabilityKey {
		return capabilityKey{row.ResourceTypeID, c.Key}
	})
	registry, err := s.registered(ctx, tx, keys, "input.capabilities")
	if err != nil {
		return capabilityPlan{}, err
	}
	var plan capabilityPlan
	return plan, plan.set(row, capabilities, there, len(there), registry, "input.capabilities")
}

// set adds the changes that give a resource new values, and skips values that do
// not change. count is the number of present values that stay or change. set
// refuses the list at a path if the resource would have too many.
func (p *capabilityPlan) set(row *ent.Resource, capabilities []metadef.KeyValue,
	there map[string]*ent.CapabilityValue, count int, registry map[capabilityKey]int64, path string,
) error {
	for _, c := range capabilities {
		existing := there[c.Key]
		switch {
		case existing == nil:
			count++
		case existing.Value == c.Value:
			continue
		default:
			p.gone = append(p.gone, existing)
		}
		of := registry[capabilityKey{row.ResourceTypeID, c.Key}]
		p.writes = append(p.writes, capabilityWrite{row.ID, of, c.Value})
	}
	if len(capabilities) > 0 && count > resource.MaxCapabilities {
		return problem.Refuse(problem.ErrQuotaExceeded,
			"resource %s would have %d capabilities, at most %d are allowed",
			row.UUID, count, resource.MaxCapabilities).On(path)
	}
	return nil
}

// registered returns the row ids of the registry entries of names. It registers
// missing names, or refuses them, each by its index in the list at path, if the
// operator requires explicit registration.
func (s *ResourceStore) registered(ctx context.Context, tx *sqldb.Tx, keys []capabilityKey,
	path string) (map[capabilityKey]int64, error) {
	if s.options.CapabilityRegistration != resource.RegisterExplicitly {
		return s.ensureCapabilities(ctx, tx, keys)
	}
	there, err := findCapabilities(ctx, tx, keys)
	if err != nil {
		return nil, err
	}
	return there, checkRegistered(keys, there, path)
}

// checkRegistered refuses the unregistered names of the list at a path.
func checkRegistered(keys []capabilityKey, there map[capabilityKey]int64, path string) error {
	var problems problem.Problems
	for i, key := range keys {
		if there[key] == 0 {
			problems.Add(fmt.Sprintf("%s[%d].key", path, i),
				"is not registered for the type; createCapability registers it")
		}
	}
	return problems.Err()
}

// CreateCapability registers a name for a resource type. By default only
// administrators may call it. It returns ErrAlreadyExists for a registered
// name. If private is nil, the operator's default applies.
func (s *ResourceStore) CreateCapability(ctx context.Context, resourceType, name string,
	private *bool) (*resource.Capability, error) {
	taken := problem.Refuse(problem.ErrAlreadyExists, "capability %q already exists for resource type %q",
		name, resourceType).On("input.name")
	made, err := s.manageCapability(ctx, "createCapability", resourceType, name,
		func(tx *sqldb.Tx, of *ent.ResourceType, row *ent.Capability) (*ent.Capability, error) {
			if row != nil {
				return nil, taken
			}
			hidden := *cmp.Or(private, new(s.options.CapabilityDefaultVisibility != access.Public))
			now := s.Now()
			return tx.Capability.Create().SetResourceTypeID(of.ID).SetName(name).SetPrivate(hidden).
				SetCreatedAt(now).SetUpdatedAt(now).Save(ctx)
		})
	if sqldb.IsDuplicate(err) {
		return nil, taken.Because(err)
	}
	return made, err
}

// SetCapabilityVisibility makes a capability private or public, with immediate
// effect. By default only administrators may call it.
func (s *ResourceStore) SetCapabilityVisibility(ctx context.Context, resourceType, name string,
	private bool) (*resource.Capability, error) {
	return s.manageCapability(ctx, "setCapabilityVisibility", resourceType, name,
		func(tx *sqldb.Tx, _ *ent.ResourceType, row *ent.Capability) (*ent.Capability, error) {
			if row == nil {
				return nil, refuseUnknownCapability(resourceType, name)
			}
			return tx.Capability.UpdateOneID(row.ID).SetPrivate(private).SetUpdatedAt(s.Now()).Save(ctx)
		})
}

func refuseUnknownCapability(resourceType, name string) error {
	return problem.Refuse(problem.ErrNotFound, "capability %q does not exist for resource type %q", name, resourceType).
		On("input.name")
}

// checkCapabilityName refuses strings that cannot name a capability of a
// resource type.
func checkCapabilityName(resourceType, name string) error {
	var problems problem.Problems
	text.Check(&problems, "input.resourceType", resourceType, 1, text.MaxName)
	text.Check(&problems, "input.name", name, 1, resource.MaxCapabilityName)
	return problems.Err()
}

// manageCapability changes the registry entry of a name and returns it as
// manage leaves it. manage gets nil if there is no entry.
func (s *ResourceStore) manageCapability(ctx context.Context, mutation, resourceType, name string,
	manage func(*sqldb.Tx, *ent.ResourceType, *ent.Capability) (*ent.Capability, error),
) (*resource.Capability, error) {
	if err := checkCapabilityName(resourceType, name); err != nil {
		return nil, err
	}
	var managed *resource.Capability
	err := s.Write(ctx, mutation, func(tx *sqldb.Tx) error {
		of, err := metadefdb.ResourceTypeRow(ctx, tx, "input.resourceType", resourceType)
		if err != nil {
			return err
		}
		rows, err := tx.Capability.Query().Where(capability.ResourceTypeID(of.ID), capability.Name(name), s.Locked()).
			All(ctx)
		if err != nil {
			return err
		}
		rows = append(rows, nil)
		if err := tx.Was(ctx, "Capability", of.Name+"/"+name); err != nil {
			return err
		}
		after, err := manage(tx, of, rows[0])
		if err != nil {
			return err
		}
		managed = capabilityNoun(after)
		tx.Changed("Capability", of.Name+"/"+name)
		return recordCapability(ctx, tx, of, name, rows[0])
	}, &managed)
	if err != nil {
		return nil, fmt.Errorf("manage a capability: %w", err)
	}
	return managed, nil
}

func recordCapability(ctx context.Context, tx *sqldb.Tx, of *ent.ResourceType,
	name string, before *ent.Capability) error {
	after, err := tx.Capability.Query().Where(capability.ResourceTypeID(of.ID), capability.Name(name)).All(ctx)
	if err != nil {
		return err
	}
	event := sqldb.Event{Kind: "Capability", Key: of.Name + "/" + name}
	if before != nil {
		event.Before = sqldb.Fields{"resourceType": of.Name, "private": before.Private}
	}
	if len(after) > 0 {
		event.After = sqldb.Fields{"resourceType": of.Name, "private": after[0].Private}
	}
	tx.Record(ctx, event)
	return nil
}

// DeleteCapability removes a name from the registry and returns the deleted
// capability. By default only administrators may call it. It returns ErrInUse
// if resources have values for the name, unless force is set: then it removes
// the values and increments the revision of each resource.
func (s *ResourceStore) DeleteCapability(ctx context.Context, resourceType, name string,
	force bool) (*resource.CapabilityDeletion, error) {
	if err := checkCapabilityName(resourceType, name); err != nil {
		return nil, err
	}
	var deletion *resource.CapabilityDeletion
	err := s.Write(ctx, "deleteCapability", func(tx *sqldb.Tx) error {
		of, err := metadefdb.ResourceTypeRow(ctx, tx, "input.resourceType", resourceType)
		if err != nil {
			return err
		}
		var holders []*ent.Resource
		if force { // lock resources before capabilities
			holders, err = tx.Resource.Query().
				Where(entresource.HasCapabilityValuesWith(capabilityvalue.HasCapabilityWith(
					capability.ResourceTypeID(of.ID), capability.Name(name))), s.Locked()).Order(entresource.ByID()).
				All(ctx)
			if err != nil {
				return err
			}
		}
		rows, err := tx.Capability.Query().Where(capability.ResourceTypeID(of.ID), capability.Name(name), s.Locked()).
			All(ctx)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return refuseUnknownCapability(resourceType, name)
		}
		if err := tx.Was(ctx, "Capability", of.Name+"/"+name); err != nil {
			return err
		}
		if deletion, err = s.removeCapability(ctx, tx, rows[0], holders, force); err != nil {
			return err
		}
		tx.Record(ctx, sqldb.Event{Kind: "Capability", Key: of.Name + "/" + name,
			Before: sqldb.Fields{"resourceType": of.Name, "name": name, "private": rows[0].Private,
				"resourceCount": deletion.RemovedCount}})
		tx.Deleted("Capability", of.Name+"/"+name)
		return nil
	}, &deletion)
	if err != nil {
		return nil, fmt.Errorf("delete a capability: %w", err)
	}
	return deletion, nil
}

// removeCapability deletes a locked capability. holders are the resources that
// had values when they were locked.
func (s *ResourceStore) removeCapability(ctx context.Context, tx *sqldb.Tx, row *ent.Capability,
	holders []*ent.Resource, force bool) (*resource.CapabilityDeletion, error) {
	values := tx.CapabilityValue.Query().Where(capabilityvalue.CapabilityID(row.ID))
	deletion := &resource.CapabilityDeletion{Capability: capabilityNoun(row), Removed: []*resource.RemovedCapability{}}
	if !force {
		count, err := values.Count(ctx)
		if err == nil && count > 0 {
			err = problem.Refuse(problem.ErrInUse,
				"capability %q is in use by %d resources; force removes their values, too", row.Name, count).
				On("input.name")
		}
		if err != nil {
			return nil, err
		}
	} else {
		removed, err := values.All(ctx)
		if err != nil {
			return nil, err
		}
		if deletion.Removed, err = s.removeValues(ctx, tx, row.Name, holders, removed); err != nil {
			return nil, err
		}
		deletion.RemovedCount = len(removed)
	}
	return deletion, tx.Capability.DeleteOneID(row.ID).Exec(ctx) // the database deletes values, members and counts, too
}

// removeValues increments the revisions of the resources that lose a capability
// and records each loss. It returns the first MaxRemoved losses by uuid of the
// resource, or ErrRetry if a resource with a value is not among holders.
func (s *ResourceStore) removeValues(ctx context.Context, tx *sqldb.Tx, name string, holders []*ent.Resource,
	values []*ent.CapabilityValue) ([]*resource.RemovedCapability, error) {
	of := lists.ByKey(holders, func(row *ent.Resource) int64 { return row.ID })
	touched := make([]int64, len(values))
	for i, value := range values {
		if of[value.ResourceID] == nil { // the resource got its value meanwhile and is not locked
			return nil, sqldb.ErrRetry
		}
		touched[i] = value.ResourceID
	}
	err := tx.Resource.Update().Where(paging.Among(entresource.FieldID, touched)).
		AddRevision(1).SetUpdatedAt(s.Now()).Exec(ctx)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(values, func(a, b *ent.CapabilityValue) int {
		return cmp.Compare(of[a.ResourceID].UUID, of[b.ResourceID].UUID)
	})
	removed := []*resource.RemovedCapability{}
	for i, value := range values {
		holder := of[value.ResourceID]
		noteResource(tx, holder, holder)
		tx.Record(ctx, sqldb.Event{Kind: "Resource", Key: holder.UUID,
			Before: sqldb.Fields{"revision": holder.Revision,
				"capabilities": []sqldb.Fields{{"key": name, "value": value.Value}}},
			After: sqldb.Fields{"revision": holder.Revision + 1, "capabilities": []sqldb.Fields{}}})
		if i < resource.MaxRemoved {
			removed = append(removed, &resource.RemovedCapability{ResourceID: value.ResourceID, Value: value.Value})
		}
		if (i+1)%paging.RowsAtOnce == 0 {
			if err := tx.Flush(ctx); err != nil {
				return nil, err
			}
		}
	}
	return removed, nil
}
