package client

import (
	"context"
	"fmt"
	"iter"

	"github.com/Khan/genqlient/graphql"
)

// Page is a part of a list, with the cursor of the next page.
type Page[T any] struct {
	Nodes []T
	Next  *string // the cursor of the next page; nil on the last page
}

// All returns the members of a list, page after page. It calls fetch with nil
// for the first page, and with the cursor of the previous page for the others.
// It ends with the first error of fetch.
func All[T any](fetch func(after *string) (Page[T], error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for after := (*string)(nil); ; {
			page, err := fetch(after)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, node := range page.Nodes {
				if !yield(node, nil) {
					return
				}
			}
			if page.Next == nil {
				return
			}
			after = page.Next
		}
	}
}

// Collect returns the members of a list, at most most of them; 0 means all.
func Collect[T any](list iter.Seq2[T, error], most int) ([]T, error) {
	all := []T{}
	for node, err := range list {
		if err != nil {
			return nil, err
		}
		if all = append(all, node); len(all) == most {
			break
		}
	}
	return all, nil
}

// MissingError means that the parent of a list does not exist, or that the
// viewer may not see it.
type MissingError struct{ Kind, Name string }

// Error names the missing object.
func (e *MissingError) Error() string { return fmt.Sprintf("%s %q does not exist", e.Kind, e.Name) }

// pageOf returns a page of a list in an answer.
func pageOf[T any](nodes []T, info *PageInfo) Page[T] {
	page := Page[T]{Nodes: nodes}
	if info != nil && info.HasNextPage {
		page.Next = info.EndCursor
	}
	return page
}

// The iterators below fetch pages of the size first; nil is the server's
// default.

// Namespaces returns the namespaces that match a filter, in an order.
func Namespaces(ctx context.Context, c graphql.Client, filter *NamespaceFilter, order *NamespaceOrder, first *int) iter.Seq2[*Namespace, error] {
	return All(func(after *string) (page Page[*Namespace], err error) {
		answer, err := ListNamespaces(ctx, c, filter, order, first, after)
		if err != nil {
			return page, err
		}
		return pageOf(answer.Namespaces.Nodes, answer.Namespaces.PageInfo), nil
	})
}

// Properties returns the properties of a namespace by name. With a resource
// type it returns them as they apply to the type, through associations with the
// target and the prefix.
func Properties(ctx context.Context, c graphql.Client, namespace string, resourceType, target, prefix *string, first *int) iter.Seq2[*Property, error] {
	return All(func(after *string) (page Page[*Property], err error) {
		answer, err := ListProperties(ctx, c, namespace, resourceType, target, prefix, first, after)
		if err != nil {
			return page, err
		}
		if answer.Namespace == nil {
			return page, &MissingError{"namespace", namespace}
		}
		list := answer.Namespace.PropertyConnection
		return pageOf(list.Nodes, list.PageInfo), nil
	})
}

// Objects returns the objects of a namespace by name, like Properties.
func Objects(ctx context.Context, c graphql.Client, namespace string, resourceType, target, prefix *string, first *int) iter.Seq2[*Object, error] {
	return All(func(after *string) (page Page[*Object], err error) {
		answer, err := ListObjects(ctx, c, namespace, resourceType, target, prefix, first, after)
		if err != nil {
			return page, err
		}
		if answer.Namespace == nil {
			return page, &MissingError{"namespace", namespace}
		}
		list := answer.Namespace.ObjectConnection
		return pageOf(list.Nodes, list.PageInfo), nil
	})
}

// Tags returns the tags of all namespaces. With search it returns only tags
// whose names contain this string.
func Tags(ctx context.Context, c graphql.Client, search *string, first *int) iter.Seq2[*Tag, error] {
	return All(func(after *string) (page Page[*Tag], err error) {
		answer, err := ListTags(ctx, c, search, first, after)
		if err != nil {
			return page, err
		}
		return pageOf(answer.Tags.Nodes, answer.Tags.PageInfo), nil
	})
}

// TagsOf returns the tags of a namespace.
func TagsOf(ctx context.Context, c graphql.Client, namespace string, first *int) iter.Seq2[*Tag, error] {
	return All(func(after *string) (page Page[*Tag], err error) {
		answer, err := ListTagsOf(ctx, c, namespace, first, after)
		if err != nil {
			return page, err
		}
		if answer.Namespace == nil {
			return page, &MissingError{"namespace", namespace}
		}
		list := answer.Namespace.TagConnection
		return pageOf(list.Nodes, list.PageInfo), nil
	})
}

// AssociationsOfType returns the associations of a resource type.
func AssociationsOfType(ctx context.Context, c graphql.Client, resourceType string, first *int) iter.Seq2[*Association, error] {
	return All(func(after *string) (page Page[*Association], err error) {
		answer, err := ListAssociationsOfType(ctx, c, resourceType, first, after)
		if err != nil {
			return page, err
		}
		if answer.ResourceType == nil {
			return page, &MissingError{"resource type", resourceType}
		}
		list := answer.ResourceType.Associations
		return pageOf(list.Nodes, list.PageInfo), nil
	})
}

// ResourceTypes returns the resource types that match a filter, in an order.
func ResourceTypes(ctx context.Context, c graphql.Client, filter *ResourceTypeFilter, order *ResourceTypeOrder, first *int) iter.Seq2[*ResourceType, error] {
	return All(func(after *string) (page Page[*ResourceType], err error) {
		answer, err := ListResourceTypes(ctx, c, filter, order, first, after)
		if err != nil {
			return page, err
		}
		return pageOf(answer.ResourceTypes.Nodes, answer.ResourceTypes.PageInfo), nil
	})
}

// CapabilityValues returns the values in use of a capability, with the number
// of resources for each.
func CapabilityValues(ctx context.Context, c graphql.Client, resourceType, name string) iter.Seq2[*ValueInUse, error] {
	return All(func(after *string) (page Page[*ValueInUse], err error) {
		answer, err := ReadCapability(ctx, c, resourceType, name, after)
		if err != nil {
			return page, err
		}
		if answer.ResourceType == nil {
			return page, &MissingError{"resource type", resourceType}
		}
		if answer.ResourceType.Capability == nil {
			return page, &MissingError{"capability", name}
		}
		values := answer.ResourceType.Capability.Values
		page.Nodes = values.Nodes
		if values.PageInfo.HasNextPage {
			page.Next = values.PageInfo.EndCursor
		}
		return page, nil
	})
}

// Resources returns the resources that match a filter, in an order, with or
// without their metadata.
func Resources(ctx context.Context, c graphql.Client, filter *ResourceFilter, order *ResourceOrder, first *int, withMetadata bool) iter.Seq2[*ListedResource, error] {
	return All(func(after *string) (page Page[*ListedResource], err error) {
		answer, err := ListResources(ctx, c, filter, order, first, after, withMetadata)
		if err != nil {
			return page, err
		}
		return pageOf(answer.Resources.Nodes, answer.Resources.PageInfo), nil
	})
}

// MetadataKeys returns the metadata keys of the resources that match a filter.
// A resource type and a string in the key restrict them further; nil does not.
func MetadataKeys(ctx context.Context, c graphql.Client, filter *ResourceFilter, resourceType, search *string, first *int) iter.Seq2[*KeyInUse, error] {
	return All(func(after *string) (page Page[*KeyInUse], err error) {
		answer, err := ListMetadataKeys(ctx, c, filter, resourceType, search, first, after)
		if err != nil {
			return page, err
		}
		return pageOf(answer.MetadataKeys.Nodes, answer.MetadataKeys.PageInfo), nil
	})
}

// Providers returns the providers that match a filter, in an order.
func Providers(ctx context.Context, c graphql.Client, filter *ResourceProviderFilter, order *ResourceProviderOrder, first *int) iter.Seq2[*Provider, error] {
	return All(func(after *string) (page Page[*Provider], err error) {
		answer, err := ListProviders(ctx, c, filter, order, first, after)
		if err != nil {
			return page, err
		}
		return pageOf(answer.ResourceProviders.Nodes, answer.ResourceProviders.PageInfo), nil
	})
}

// ProviderNames returns the names of the providers that match a filter.
func ProviderNames(ctx context.Context, c graphql.Client, filter *ResourceProviderFilter, first *int) iter.Seq2[*ProviderName, error] {
	return All(func(after *string) (page Page[*ProviderName], err error) {
		answer, err := ListProviderNames(ctx, c, filter, first, after)
		if err != nil {
			return page, err
		}
		return pageOf(answer.ResourceProviders.Nodes, answer.ResourceProviders.PageInfo), nil
	})
}

// AllocationsOf returns the allocations on the provider with a uuid.
func AllocationsOf(ctx context.Context, c graphql.Client, provider string, first *int) iter.Seq2[*Allocation, error] {
	return All(func(after *string) (page Page[*Allocation], err error) {
		answer, err := ListAllocationsOf(ctx, c, provider, first, after)
		if err != nil {
			return page, err
		}
		if answer.ResourceProvider == nil {
			return page, &MissingError{"provider", provider}
		}
		list := answer.ResourceProvider.Allocations
		return pageOf(list.Nodes, list.PageInfo), nil
	})
}

// Consumers returns the consumers that match a filter, in an order.
func Consumers(ctx context.Context, c graphql.Client, filter *ConsumerFilter, order *ConsumerOrder, first *int) iter.Seq2[*Consumer, error] {
	return All(func(after *string) (page Page[*Consumer], err error) {
		answer, err := ListConsumers(ctx, c, filter, order, first, after)
		if err != nil {
			return page, err
		}
		return pageOf(answer.Consumers.Nodes, answer.Consumers.PageInfo), nil
	})
}

// usagesPage is the number of groups of consumers in a request.
const usagesPage = 100

// Usages returns the usage of consumers in groups. A project, a user and a
// consumer type restrict them; nil does not.
func Usages(ctx context.Context, c graphql.Client, project, user, consumerType *string, groupBy UsageGrouping) iter.Seq2[*Usage, error] {
	key := func(of *Usage) *string {
		switch groupBy {
		case UsageGroupingProject:
			return of.ProjectId
		case UsageGroupingUser:
			return of.UserId
		}
		return of.ConsumerType
	}
	return All(func(after *string) (page Page[*Usage], err error) {
		first := usagesPage
		answer, err := ListUsages(ctx, c, project, user, consumerType, groupBy, &first, after)
		if err != nil {
			return page, err
		}
		page.Nodes = answer.Usages
		if n := len(page.Nodes); n == usagesPage {
			page.Next = key(page.Nodes[n-1])
		}
		return page, nil
	})
}

// Traits returns the traits that match a filter.
func Traits(ctx context.Context, c graphql.Client, filter *TraitFilter, first *int) iter.Seq2[*Trait, error] {
	return All(func(after *string) (page Page[*Trait], err error) {
		answer, err := ListTraits(ctx, c, filter, first, after)
		if err != nil {
			return page, err
		}
		return pageOf(answer.Traits.Nodes, answer.Traits.PageInfo), nil
	})
}

// ResourceClasses returns the resource classes that match a filter.
func ResourceClasses(ctx context.Context, c graphql.Client, filter *ResourceClassFilter, first *int) iter.Seq2[*ResourceClass, error] {
	return All(func(after *string) (page Page[*ResourceClass], err error) {
		answer, err := ListResourceClasses(ctx, c, filter, first, after)
		if err != nil {
			return page, err
		}
		return pageOf(answer.ResourceClasses.Nodes, answer.ResourceClasses.PageInfo), nil
	})
}

// Capacities returns the capacity of the providers that match a filter, in
// groups, for these resource classes, or all for nil.
func Capacities(ctx context.Context, c graphql.Client, filter *ResourceProviderFilter, groupBy CapacityGrouping, resourceClasses []string, first *int) iter.Seq2[*Capacity, error] {
	return All(func(after *string) (page Page[*Capacity], err error) {
		answer, err := ListCapacity(ctx, c, filter, groupBy, resourceClasses, first, after)
		if err != nil {
			return page, err
		}
		return pageOf(answer.Capacity.Nodes, answer.Capacity.PageInfo), nil
	})
}

// AuditEvents returns the events of the audit log that match a filter, newest
// first.
func AuditEvents(ctx context.Context, c graphql.Client, filter *AuditFilter, first *int) iter.Seq2[*AuditEvent, error] {
	return All(func(after *string) (page Page[*AuditEvent], err error) {
		answer, err := ListAuditEvents(ctx, c, filter, first, after)
		if err != nil {
			return page, err
		}
		return pageOf(answer.AuditEvents.Nodes, answer.AuditEvents.PageInfo), nil
	})
}

// Changes returns the changes after a cursor that match a filter, oldest first,
// up to the current newest. With nil it begins with the oldest change in the
// log.
func Changes(ctx context.Context, c graphql.Client, filter *ChangeFilter, cursor *string, first *int) iter.Seq2[*Change, error] {
	return All(func(after *string) (page Page[*Change], err error) {
		if after == nil {
			after = cursor
		}
		answer, err := ListChanges(ctx, c, filter, first, after)
		if err != nil {
			return page, err
		}
		return pageOf(answer.Changes.Nodes, answer.Changes.PageInfo), nil
	})
}
