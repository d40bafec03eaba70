package sqldb_test

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/metadef/metadeftest"
	"github.com/cadastre-dev/cadastre/origin"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// dice chooses the arguments of mutations from small sets, so that they
// collide.
type dice struct {
	*rand.Rand
	thrown int
}

func (d *dice) fresh(prefix string) string { d.thrown++; return fmt.Sprint(prefix, d.thrown) }

func (d *dice) of(prefix string, n int) string { return fmt.Sprint(prefix, d.IntN(n)) }

func (d *dice) namespace() string { return d.of("N", 3) }
func (d *dice) resource() string  { return storetest.UUID(10 + d.IntN(4)) }
func (d *dice) provider() string  { return storetest.UUID(20 + d.IntN(2)) }
func (d *dice) consumer() string  { return storetest.UUID(30 + d.IntN(2)) }
func (d *dice) class() string     { return []string{"VCPU", "VCPU", "CUSTOM_C0"}[d.IntN(3)] }

func (d *dice) renaming(prefix string) metadef.Change[*string] {
	if d.IntN(2) == 0 {
		return metadef.Change[*string]{}
	}
	return metadef.Change[*string]{Set: true, Value: new(d.of(prefix, 3))}
}

func (d *dice) object() *string {
	if d.IntN(2) == 0 {
		return nil
	}
	return new(d.of("o", 2))
}

func (d *dice) property() metadef.PropertyInput {
	property := metadeftest.Property(d.of("p", 3), metadef.String)
	property.Title = metadeftest.To(d.fresh("Title "))
	return property
}

func (d *dice) inventory() placement.Inventory {
	return placement.Inventory{ResourceClass: d.class(), Total: int32(5 + d.IntN(20)), MinUnit: 1,
		MaxUnit: 20, StepSize: 1, AllocationRatio: 1.5}
}

func (d *dice) claim() placement.ConsumerClaim {
	claim := placement.ConsumerClaim{UUID: d.consumer(), ProjectID: "p", UserID: "u"}
	if d.IntN(2) == 0 {
		claim.Generation = new(int64(1 + d.IntN(2)))
	}
	if claim.Generation == nil || d.IntN(3) > 0 {
		claim.Allocations = []placement.ProviderAllocation{{Provider: d.provider(),
			Resources: []placement.Amount{{ResourceClass: d.class(), Amount: 1 + d.Int64N(4)}}}}
	}
	return claim
}

// throwable maps names of mutations in the API to functions that run them with
// random arguments.
type throwable map[string]func(ctx context.Context, d *dice, s *store.Store) error

func definitionMutations() throwable {
	return throwable{
		"createNamespace": func(ctx context.Context, d *dice, s *store.Store) error {
			_, err := s.CreateNamespace(ctx, metadef.NamespaceInput{Name: d.namespace(),
				Tags:                     []metadef.TagInput{{Name: "t0"}, {Name: "t1", Parent: new("t0")}},
				Properties:               []metadef.PropertyInput{d.property()},
				Objects:                  []metadef.ObjectInput{metadeftest.Object("o0", d.property())},
				ResourceTypeAssociations: []metadef.DocumentAssociation{{ResourceType: d.of("T", 3)}}})
			return err
		},
		"importNamespaces": func(ctx context.Context, d *dice, s *store.Store) error {
			document := fmt.Sprintf(`{"namespace": %q, "description": %q, "properties": {%q: {"title": "P", "type": "string"}}, "tags": [{"name": "t2"}],
				"resource_type_associations": [{"name": %q}]}`, d.namespace(),
				d.of("imported ", 2), d.of("p", 3), d.of("T", 4))
			modes := []metadef.ImportMode{metadef.Skip, metadef.Merge, metadef.PreferNew, metadef.Overwrite}
			request := metadef.ImportRequest{Mode: modes[d.IntN(4)],
				Documents: []string{document}, DryRun: d.IntN(5) == 0}
			if d.IntN(2) == 0 {
				request.Origin = new(d.of("origin", 2))
			}
			_, err := s.ImportNamespaces(ctx, request)
			return err
		},
		"unloadNamespaces": func(ctx context.Context, d *dice, s *store.Store) error {
			_, err := s.UnloadNamespaces(ctx,
				metadef.UnloadRequest{Names: []string{d.namespace(), "N9"}, IncludeProtected: d.IntN(2) == 0})
			return err
		},
		"updateNamespace": func(ctx context.Context, d *dice, s *store.Store) error {
			_, err := s.UpdateNamespace(ctx, metadef.NamespaceChange{Name: d.namespace(), NewName: d.renaming("N"),
				NamespacePatch: metadef.NamespacePatch{Protected: metadeftest.To(d.IntN(4) == 0),
					Description: metadeftest.To(d.of("described ", 2))}})
			return err
		},
		"deleteNamespace": func(ctx context.Context, d *dice, s *store.Store) error {
			_, err := s.DeleteNamespace(ctx, d.namespace(), nil)
			return err
		},
		"deleteNamespaceContents": func(ctx context.Context, d *dice, s *store.Store) error {
			kinds := []metadef.ContentKind{metadef.ContentProperties, metadef.ContentObjects, metadef.ContentTags}
			_, err := s.DeleteNamespaceContents(ctx, d.namespace(), kinds[d.IntN(3):][:1], nil)
			return err
		},
		"setDefaults": func(ctx context.Context, d *dice, s *store.Store) error {
			rules := []metadef.DefaultRule{{ResourceType: d.of("T", 4), Key: d.of("k", 3), Value: d.of("v", 2)}}
			_, err := s.SetDefaults(ctx, metadef.DefaultsChange{Namespace: d.namespace(), Rules: rules})
			return err
		},
		"createProperty": func(ctx context.Context, d *dice, s *store.Store) error {
			_, _, err := s.CreateProperty(ctx,
				metadef.NewProperty{Namespace: d.namespace(), Object: d.object(), PropertyInput: d.property()})
			return err
		},
		"updateProperty": func(ctx context.Context, d *dice, s *store.Store) error {
			_, _, err := s.UpdateProperty(ctx, metadef.PropertyChange{Namespace: d.namespace(), Object: d.object(),
				Name: d.of("p", 3), NewName: d.renaming("p")})
			return err
		},
		"deleteProperty": func(ctx context.Context, d *dice, s *store.Store) error {
			_, _, err := s.DeleteProperty(ctx, d.namespace(), d.object(), d.of("p", 3), nil)
			return err
		},
		"createObject": func(ctx context.Context, d *dice, s *store.Store) error {
			_, _, err := s.CreateObject(ctx, metadef.NewObject{Namespace: d.namespace(),
				ObjectInput: metadeftest.Object(d.of("o", 2), d.property())})
			return err
		},
		"updateObject": func(ctx context.Context, d *dice, s *store.Store) error {
			_, _, err := s.UpdateObject(ctx,
				metadef.ObjectChange{Namespace: d.namespace(), Name: d.of("o", 2), NewName: d.renaming("o"),
					ObjectPatch: metadeftest.Object("", d.property()).ObjectPatch})
			return err
		},
		"deleteObject": func(ctx context.Context, d *dice, s *store.Store) error {
			_, _, err := s.DeleteObject(ctx, d.namespace(), d.of("o", 2), nil)
			return err
		},
		"setTags": func(ctx context.Context, d *dice, s *store.Store) error {
			_, _, err := s.SetTags(ctx, metadef.TagsChange{Namespace: d.namespace(), Append: d.IntN(2) == 0,
				Tags: []metadef.TagInput{{Name: d.of("t", 3)}}})
			return err
		},
		"updateTag": func(ctx context.Context, d *dice, s *store.Store) error {
			_, _, err := s.UpdateTag(ctx,
				metadef.TagChange{Namespace: d.namespace(), Name: d.of("t", 3), NewName: d.renaming("t")})
			return err
		},
		"deleteTag": func(ctx context.Context, d *dice, s *store.Store) error {
			_, _, err := s.DeleteTag(ctx, d.namespace(), d.of("t", 3), nil)
			return err
		},
		"associateResourceType": func(ctx context.Context, d *dice, s *store.Store) error {
			_, _, err := s.AssociateResourceType(ctx, metadef.NewAssociation{Namespace: d.namespace(),
				DocumentAssociation: metadef.DocumentAssociation{ResourceType: d.of("T", 4),
					Prefix: new(d.of("x", 3) + "_")}})
			return err
		},
		"updateResourceTypeAssociation": func(ctx context.Context, d *dice, s *store.Store) error {
			_, _, err := s.UpdateAssociation(ctx,
				metadef.AssociationChange{Ref: metadef.AssociationRef{UUID: d.association(ctx, s)},
					Prefix: metadef.Change[*string]{Set: true, Value: new(d.of("y", 3) + "_")}})
			return err
		},
		"disassociateResourceType": func(ctx context.Context, d *dice, s *store.Store) error {
			_, _, err := s.DisassociateResourceType(ctx, metadef.AssociationRef{UUID: d.association(ctx, s)}, nil)
			return err
		},
		"shareNamespace": func(ctx context.Context, d *dice, s *store.Store) error {
			_, _, err := s.ShareNamespace(ctx, d.namespace(), d.of("project", 2),
				[]metadef.MemberRole{metadef.Editor, metadef.Reader}[d.IntN(2)], nil)
			return err
		},
		"unshareNamespace": func(ctx context.Context, d *dice, s *store.Store) error {
			_, _, err := s.UnshareNamespace(ctx, d.namespace(), d.of("project", 2), nil)
			return err
		},
		"createResourceType": func(ctx context.Context, d *dice, s *store.Store) error {
			_, err := s.CreateResourceType(ctx, d.of("T", 6), false, false)
			return err
		},
		"updateResourceType": func(ctx context.Context, d *dice, s *store.Store) error {
			_, err := s.UpdateResourceType(ctx,
				metadef.ResourceTypeChange{Name: d.of("T", 3), NewName: metadeftest.To(d.of("T", 8))})
			return err
		},
		"deleteResourceType": func(ctx context.Context, d *dice, s *store.Store) error {
			_, err := s.DeleteResourceType(ctx, d.of("T", 6))
			return err
		},
	}
}

// association returns the uuid of a random association, or "" if there is none.
func (d *dice) association(ctx context.Context, s *store.Store) string {
	rows, err := s.ReadAll(ctx, `SELECT uuid FROM resource_type_associations ORDER BY id`)
	if err != nil {
		panic(err)
	}
	if len(rows) == 0 {
		return ""
	}
	return rows[d.IntN(len(rows))][0]
}

func resourceMutations() throwable {
	metadata := func(mode resource.MetadataMode) func(ctx context.Context, d *dice, s *store.Store) error {
		return func(ctx context.Context, d *dice, s *store.Store) error {
			change := resource.MetadataChange{Resource: d.resource(), Mode: mode}
			if mode == resource.DeleteMetadata {
				change.Keys = []string{d.of("k", 3)}
			} else {
				change.Items = []metadef.KeyValue{{Key: d.of("k", 3), Value: d.of("v", 2)}}
			}
			_, _, err := s.ChangeMetadata(ctx, change)
			return err
		}
	}
	return throwable{
		"createResource": func(ctx context.Context, d *dice, s *store.Store) error {
			_, err := s.CreateResource(ctx, resource.Input{UUID: new(d.resource()), Type: d.of("T", 3),
				Name: d.fresh("r"), Tags: []string{d.of("t", 3)},
				Metadata:     []metadef.KeyValue{{Key: d.of("k", 3), Value: "v"}},
				Capabilities: []metadef.KeyValue{{Key: d.of("c", 3), Value: "v"}}})
			return err
		},
		"updateResource": func(ctx context.Context, d *dice, s *store.Store) error {
			_, err := s.UpdateResource(ctx, resource.Patch{UUID: d.resource(), NewName: d.renaming("r"),
				Parent: metadef.Change[*string]{Set: d.IntN(2) == 0, Value: new(d.resource())}})
			return err
		},
		"deleteResource": func(ctx context.Context, d *dice, s *store.Store) error {
			_, err := s.DeleteResource(ctx, d.resource(), nil)
			return err
		},
		"setResourceTags": func(ctx context.Context, d *dice, s *store.Store) error {
			_, err := s.SetResourceTags(ctx, d.resource(), []string{d.of("t", 3)}, nil)
			return err
		},
		"createResources": func(ctx context.Context, d *dice, s *store.Store) error {
			input := resource.Inputs{Atomic: d.IntN(2) == 0}
			for range 1 + d.IntN(3) {
				input.Items = append(input.Items,
					resource.Input{Type: d.of("T", 3), Name: "many", UUID: new(d.resource())})
			}
			if last := len(input.Items) - 1; d.IntN(2) == 0 {
				input.Items[last].Parent = input.Items[0].UUID
			}
			_, err := s.CreateResources(ctx, input)
			return err
		},
		"syncResources": func(ctx context.Context, d *dice, s *store.Store) error {
			page := origin.Page{Origin: "o", Region: "r", Kind: "k", Pass: storetest.UUID(9),
				ResourceType: d.of("T", 3), Range: new(origin.Range)}
			for i := range d.IntN(3) {
				page.Resources = append(page.Resources,
					origin.Thing{ForeignID: fmt.Sprint(i), Name: d.of("N", 2),
						ProjectID: d.of("p", 2), Visibility: access.Private})
			}
			_, err := s.SyncResources(ctx, page)
			return err
		},
		"endSync": func(ctx context.Context, _ *dice, s *store.Store) error {
			_, err := s.EndSync(ctx, origin.End{Origin: "o", Region: "r", Kind: "k", Pass: storetest.UUID(9),
				Reading: origin.Reading{Complete: true, Seen: 1}, Limits: origin.Limits{Allow: true}})
			return err
		},
		"applyDefaults": func(ctx context.Context, d *dice, s *store.Store) error {
			_, err := s.ApplyDefaults(ctx,
				resource.DefaultsRun{Namespace: d.namespace(), First: 1 + d.IntN(4), DryRun: d.IntN(4) == 0})
			return err
		},
		"setMetadata":     metadata(resource.MergeMetadata),
		"replaceMetadata": metadata(resource.ReplaceMetadata),
		"deleteMetadata":  metadata(resource.DeleteMetadata),
		"setMetadataOnResources": func(ctx context.Context, d *dice, s *store.Store) error {
			changes := resource.MetadataChanges{Atomic: d.IntN(2) == 0}
			for range d.IntN(3) {
				change := resource.MetadataChange{Resource: d.resource(),
					Items: []metadef.KeyValue{{Key: d.of("k", 3), Value: d.of("v", 2)}}}
				if d.IntN(3) == 0 {
					change.Keys = []string{d.of("k", 3)}
				}
				changes.Items = append(changes.Items, change)
			}
			_, err := s.ChangeMetadataOfMany(ctx, changes)
			return err
		},
		"setCapabilities": func(ctx context.Context, d *dice, s *store.Store) error {
			_, err := s.SetCapabilities(ctx, d.resource(),
				[]metadef.KeyValue{{Key: d.of("c", 5), Value: d.of("v", 2)}}, nil)
			return err
		},
		"unsetCapabilities": func(ctx context.Context, d *dice, s *store.Store) error {
			_, err := s.UnsetCapabilities(ctx, d.resource(), []string{d.of("c", 5)}, nil)
			return err
		},
		"createCapability": func(ctx context.Context, d *dice, s *store.Store) error {
			_, err := s.CreateCapability(ctx, d.of("T", 3), d.of("c", 5), nil)
			return err
		},
		"setCapabilityVisibility": func(ctx context.Context, d *dice, s *store.Store) error {
			_, err := s.SetCapabilityVisibility(ctx, d.of("T", 3), d.of("c", 5), d.IntN(2) == 0)
			return err
		},
		"deleteCapability": func(ctx context.Context, d *dice, s *store.Store) error {
			_, err := s.DeleteCapability(ctx, d.of("T", 3), d.of("c", 5), d.IntN(3) > 0)
			return err
		},
	}
}

func placementMutations() throwable {
	return throwable{
		"createResourceProvider": func(ctx context.Context, d *dice, s *store.Store) error {
			input := placement.NewProvider{UUID: new(d.provider()), Name: d.fresh("provider ")}
			if d.IntN(2) == 0 {
				input.Parent = new(d.provider())
			}
			_, _, err := s.CreateResourceProvider(ctx, input)
			return err
		},
		"createResourceProviders": func(ctx context.Context, d *dice, s *store.Store) error {
			input := placement.NewProviders{Atomic: d.IntN(2) == 0}
			for range 1 + d.IntN(3) {
				input.Items = append(input.Items,
					placement.NewProvider{UUID: new(d.provider()), Name: d.fresh("provider ")})
			}
			if last := len(input.Items) - 1; d.IntN(2) == 0 {
				input.Items[last].ParentName = &input.Items[0].Name
			}
			_, _, err := s.CreateResourceProviders(ctx, input)
			return err
		},
		"updateResourceProvider": func(ctx context.Context, d *dice, s *store.Store) error {
			patch := placement.ProviderPatch{Provider: d.provider()}
			switch d.IntN(4) {
			case 0:
				patch.NewName = new(d.fresh("renamed "))
			case 1:
				patch.Parent = new([]string{"", d.provider()}[d.IntN(2)])
			default:
				patch.Resource = new([]string{"", d.resource()}[d.IntN(2)])
			}
			_, _, err := s.UpdateResourceProvider(ctx, patch)
			return err
		},
		"deleteResourceProvider": func(ctx context.Context, d *dice, s *store.Store) error {
			_, _, err := s.DeleteResourceProvider(ctx, d.provider())
			return err
		},
		"setInventories": func(ctx context.Context, d *dice, s *store.Store) error {
			_, _, err := s.SetInventories(ctx, placement.ProviderInventories{Provider: d.provider(),
				Inventories: []placement.Inventory{d.inventory()}})
			return err
		},
		"setInventory": func(ctx context.Context, d *dice, s *store.Store) error {
			_, _, err := s.SetInventory(ctx,
				placement.InventoryChange{Provider: d.provider(), Inventory: d.inventory()})
			return err
		},
		"updateInventories": func(ctx context.Context, d *dice, s *store.Store) error {
			_, _, err := s.UpdateInventories(ctx,
				placement.InventoryUpdate{ResourceClass: d.class(),
					Reserved: new(int32(d.IntN(8))), Atomic: d.IntN(2) == 0}, nil)
			return err
		},
		"deleteInventory": func(ctx context.Context, d *dice, s *store.Store) error {
			_, _, err := s.DeleteInventory(ctx,
				placement.InventoryDeletion{Provider: d.provider(), ResourceClass: d.class()})
			return err
		},
		"setOnResourceProviders": func(ctx context.Context, d *dice, s *store.Store) error {
			input := placement.Replacements{Atomic: d.IntN(2) == 0}
			for range 1 + d.IntN(3) {
				one := placement.Replacement{Provider: new(d.provider())}
				if d.IntN(2) == 0 {
					one.Traits = []string{d.of("CUSTOM_T", 2)}
				}
				if d.IntN(2) == 0 {
					one.Aggregates = []string{storetest.UUID(90 + d.IntN(3))}
				}
				input.Items = append(input.Items, one)
			}
			_, _, err := s.SetOnResourceProviders(ctx, input)
			return err
		},
		"setProviderTraits": func(ctx context.Context, d *dice, s *store.Store) error {
			_, _, err := s.SetProviderTraits(ctx,
				placement.ProviderTraits{Provider: d.provider(), Traits: []string{d.of("CUSTOM_T", 2)}})
			return err
		},
		"setProviderAggregates": func(ctx context.Context, d *dice, s *store.Store) error {
			_, _, err := s.SetProviderAggregates(ctx,
				placement.ProviderAggregates{Provider: d.provider(),
					Aggregates: []string{storetest.UUID(90 + d.IntN(3))}})
			return err
		},
		"createTrait": func(ctx context.Context, d *dice, s *store.Store) error {
			_, err := s.CreateTrait(ctx, d.of("CUSTOM_T", 2))
			return err
		},
		"ensureTraits": func(ctx context.Context, d *dice, s *store.Store) error {
			_, _, err := s.EnsureTraits(ctx, []string{d.of("CUSTOM_T", 2), d.of("CUSTOM_T", 2)})
			return err
		},
		"deleteTrait": func(ctx context.Context, d *dice, s *store.Store) error {
			_, err := s.DeleteTrait(ctx, d.of("CUSTOM_T", 2))
			return err
		},
		"createResourceClass": func(ctx context.Context, d *dice, s *store.Store) error {
			_, err := s.CreateResourceClass(ctx, d.of("CUSTOM_C", 2))
			return err
		},
		"deleteResourceClass": func(ctx context.Context, d *dice, s *store.Store) error {
			_, err := s.DeleteResourceClass(ctx, d.of("CUSTOM_C", 2))
			return err
		},
		"setAllocations": func(ctx context.Context, d *dice, s *store.Store) error {
			_, err := s.SetAllocations(ctx, placement.Claim{Consumers: []placement.ConsumerClaim{d.claim()}})
			return err
		},
		"place": func(ctx context.Context, d *dice, s *store.Store) error {
			_, _, err := s.Place(ctx, placement.Placing{Atomic: true, HoldFor: new(placement.MaxHold),
				Consumers: []placement.NewConsumer{{UUID: d.consumer(), ProjectID: "p", UserID: "u"}},
				Request:   placement.Request{Unsuffixed: placement.Group{Resources: []placement.Amount{{ResourceClass: "VCPU", Amount: 1}}}}}, false)
			return err
		},
		"setLimits": func(ctx context.Context, _ *dice, s *store.Store) error {
			_, err := s.SetLimits(ctx, placement.ProjectLimits{ProjectID: "p",
				Limits: []placement.NewLimit{{ResourceClass: "VCPU", Amount: 1 << 30}}})
			return err
		},
		"applyPlan": func(ctx context.Context, d *dice, s *store.Store) error {
			_, err := s.ApplyPlan(ctx,
				placement.PlannedMoves{Moves: []placement.PlannedMove{{Consumer: d.consumer(), Generation: 1,
					Allocations: d.claim().Allocations}}})
			return err
		},
		"confirmAllocations": func(ctx context.Context, d *dice, s *store.Store) error {
			_, err := s.ConfirmAllocations(ctx, placement.Confirmation{Consumers: []string{d.consumer()}})
			return err
		},
		"deleteAllocationsForMany": func(ctx context.Context, d *dice, s *store.Store) error {
			_, err := s.DeleteAllocationsForMany(ctx, placement.Deletion{Consumers: []string{d.consumer()}})
			return err
		},
		"deleteAllocations": func(ctx context.Context, d *dice, s *store.Store) error {
			_, err := s.DeleteAllocations(ctx, d.consumer())
			return err
		},
		"reshape": func(ctx context.Context, d *dice, s *store.Store) error {
			_, _, _, err := s.Reshape(ctx, placement.Reshape{Consumers: []placement.ConsumerClaim{d.claim()},
				Inventories: []placement.ProviderInventories{{Provider: d.provider(),
					Inventories: []placement.Inventory{d.inventory()}}}})
			return err
		},
	}
}
