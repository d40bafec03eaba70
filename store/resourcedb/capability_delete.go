package resourcedb

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/capability"
	"github.com/cadastre-dev/cadastre/ent/capabilityvalue"
	entresource "github.com/cadastre-dev/cadastre/ent/resource"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/metadefdb"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
)

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
