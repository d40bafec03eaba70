package client

import (
	"cmp"
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

// connection is a page of a list in an answer.
type connection[T any] interface {
	GetNodes() []T
	GetPageInfo() *PageInfo
}

// nodes returns the members of a list, page after page.
func nodes[T any](fetch func(after *string) (connection[T], error)) iter.Seq2[T, error] {
	return All(func(after *string) (page Page[T], err error) {
		list, err := fetch(after)
		if err != nil {
			return page, err
		}
		page.Nodes = list.GetNodes()
		if info := list.GetPageInfo(); info != nil && info.HasNextPage {
			page.Next = info.EndCursor
		}
		return page, nil
	})
}

// The iterators below fetch pages of the size first; nil is the server's
// default.

// Namespaces returns the namespaces that match a filter, in an order.
func Namespaces(ctx context.Context, c graphql.Client, filter *NamespaceFilter, order *NamespaceOrder,
	first *int) iter.Seq2[*Namespace, error] {
	return nodes(func(after *string) (connection[*Namespace], error) {
		answer, err := ListNamespaces(ctx, c, filter, order, first, after)
		return answer.Namespaces, err
	})
}

// Properties returns the properties of a namespace by name. With a resource
// type it returns them as they apply to the type, through associations with the
// target and the prefix.
func Properties(ctx context.Context, c graphql.Client, namespace string, resourceType, target, prefix *string,
	first *int) iter.Seq2[*Property, error] {
	return nodes(func(after *string) (connection[*Property], error) {
		answer, err := ListProperties(ctx, c, namespace, resourceType, target, prefix, first, after)
		if err != nil || answer.Namespace == nil {
			return nil, cmp.Or[error](err, &MissingError{"namespace", namespace})
		}
		return answer.Namespace.PropertyConnection, nil
	})
}

// Objects returns the objects of a namespace by name, like Properties.
func Objects(ctx context.Context, c graphql.Client, namespace string, resourceType, target, prefix *string,
	first *int) iter.Seq2[*Object, error] {
	return nodes(func(after *string) (connection[*Object], error) {
		answer, err := ListObjects(ctx, c, namespace, resourceType, target, prefix, first, after)
		if err != nil || answer.Namespace == nil {
			return nil, cmp.Or[error](err, &MissingError{"namespace", namespace})
		}
		return answer.Namespace.ObjectConnection, nil
	})
}

// Tags returns the tags of all namespaces. With search it returns only tags
// whose names contain this string.
func Tags(ctx context.Context, c graphql.Client, search *string, first *int) iter.Seq2[*Tag, error] {
	return nodes(func(after *string) (connection[*Tag], error) {
		answer, err := ListTags(ctx, c, search, first, after)
		return answer.Tags, err
	})
}

// TagsOf returns the tags of a namespace.
func TagsOf(ctx context.Context, c graphql.Client, namespace string, first *int) iter.Seq2[*Tag, error] {
	return nodes(func(after *string) (connection[*Tag], error) {
		answer, err := ListTagsOf(ctx, c, namespace, first, after)
		if err != nil || answer.Namespace == nil {
			return nil, cmp.Or[error](err, &MissingError{"namespace", namespace})
		}
		return answer.Namespace.TagConnection, nil
	})
}

// AssociationsOfType returns the associations of a resource type.
func AssociationsOfType(ctx context.Context, c graphql.Client, resourceType string,
	first *int) iter.Seq2[*Association, error] {
	return nodes(func(after *string) (connection[*Association], error) {
		answer, err := ListAssociationsOfType(ctx, c, resourceType, first, after)
		if err != nil || answer.ResourceType == nil {
			return nil, cmp.Or[error](err, &MissingError{"resource type", resourceType})
		}
		return answer.ResourceType.Associations, nil
	})
}

// ResourceTypes returns the resource types that match a filter, in an order.
func ResourceTypes(ctx context.Context, c graphql.Client, filter *ResourceTypeFilter, order *ResourceTypeOrder,
	first *int) iter.Seq2[*ResourceType, error] {
	return nodes(func(after *string) (connection[*ResourceType], error) {
		answer, err := ListResourceTypes(ctx, c, filter, order, first, after)
		return answer.ResourceTypes, err
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
		switch {
		case answer.ResourceType == nil:
			return page, &MissingError{"resource type", resourceType}
		case answer.ResourceType.Capability == nil:
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
func Resources(ctx context.Context, c graphql.Client, filter *ResourceFilter, order *ResourceOrder, first *int,
	withMetadata bool) iter.Seq2[*ListedResource, error] {
	return nodes(func(after *string) (connection[*ListedResource], error) {
		answer, err := ListResources(ctx, c, filter, order, first, after, withMetadata)
		return answer.Resources, err
	})
}

// MetadataKeys returns the metadata keys of the resources that match a filter.
// A resource type and a string in the key restrict them further; nil does not.
func MetadataKeys(ctx context.Context, c graphql.Client, filter *ResourceFilter, resourceType, search *string,
	first *int) iter.Seq2[*KeyInUse, error] {
	return nodes(func(after *string) (connection[*KeyInUse], error) {
		answer, err := ListMetadataKeys(ctx, c, filter, resourceType, search, first, after)
		return answer.MetadataKeys, err
	})
}

// ResourcesOfOrigins returns the resources of a type with their origins.
func ResourcesOfOrigins(ctx context.Context, c graphql.Client, resourceType string,
	first *int) iter.Seq2[*ResourceOfOrigin, error] {
	return nodes(func(after *string) (connection[*ResourceOfOrigin], error) {
		answer, err := ListOrigins(ctx, c, resourceType, first, after)
		return answer.Resources, err
	})
}

// Providers returns the providers that match a filter, in an order.
func Providers(ctx context.Context, c graphql.Client, filter *ResourceProviderFilter, order *ResourceProviderOrder,
	first *int) iter.Seq2[*Provider, error] {
	return nodes(func(after *string) (connection[*Provider], error) {
		answer, err := ListProviders(ctx, c, filter, order, first, after)
		return answer.ResourceProviders, err
	})
}

// ProviderNames returns the names of the providers that match a filter.
func ProviderNames(ctx context.Context, c graphql.Client, filter *ResourceProviderFilter,
	first *int) iter.Seq2[*ProviderName, error] {
	return nodes(func(after *string) (connection[*ProviderName], error) {
		answer, err := ListProviderNames(ctx, c, filter, first, after)
		return answer.ResourceProviders, err
	})
}

// AllocationsOf returns the allocations on the provider with a uuid.
func AllocationsOf(ctx context.Context, c graphql.Client, provider string, first *int) iter.Seq2[*Allocation, error] {
	return nodes(func(after *string) (connection[*Allocation], error) {
		answer, err := ListAllocationsOf(ctx, c, provider, first, after)
		if err != nil || answer.ResourceProvider == nil {
			return nil, cmp.Or[error](err, &MissingError{"provider", provider})
		}
		return answer.ResourceProvider.Allocations, nil
	})
}

// Consumers returns the consumers that match a filter, in an order.
func Consumers(ctx context.Context, c graphql.Client, filter *ConsumerFilter, order *ConsumerOrder,
	first *int) iter.Seq2[*Consumer, error] {
	return nodes(func(after *string) (connection[*Consumer], error) {
		answer, err := ListConsumers(ctx, c, filter, order, first, after)
		return answer.Consumers, err
	})
}

// usagesPage is the number of groups of consumers in a request.
const usagesPage = 100

// Usages returns the usage of consumers in groups. A project, a user and a
// consumer type restrict them; nil does not.
func Usages(ctx context.Context, c graphql.Client, project, user, consumerType *string,
	groupBy UsageGrouping) iter.Seq2[*Usage, error] {
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
	return nodes(func(after *string) (connection[*Trait], error) {
		answer, err := ListTraits(ctx, c, filter, first, after)
		return answer.Traits, err
	})
}

// ResourceClasses returns the resource classes that match a filter.
func ResourceClasses(ctx context.Context, c graphql.Client, filter *ResourceClassFilter,
	first *int) iter.Seq2[*ResourceClass, error] {
	return nodes(func(after *string) (connection[*ResourceClass], error) {
		answer, err := ListResourceClasses(ctx, c, filter, first, after)
		return answer.ResourceClasses, err
	})
}

// Capacities returns the capacity of the providers that match a filter, in
// groups, for these resource classes, or all for nil.
func Capacities(ctx context.Context, c graphql.Client, filter *ResourceProviderFilter, groupBy CapacityGrouping,
	resourceClasses []string, first *int) iter.Seq2[*Capacity, error] {
	return nodes(func(after *string) (connection[*Capacity], error) {
		answer, err := ListCapacity(ctx, c, filter, groupBy, resourceClasses, first, after)
		return answer.Capacity, err
	})
}

// AuditEvents returns the events of the audit log that match a filter, newest
// first.
func AuditEvents(ctx context.Context, c graphql.Client, filter *AuditFilter, first *int) iter.Seq2[*AuditEvent, error] {
	return nodes(func(after *string) (connection[*AuditEvent], error) {
		answer, err := ListAuditEvents(ctx, c, filter, first, after)
		return answer.AuditEvents, err
	})
}

// Changes returns the changes after a cursor that match a filter, oldest first,
// up to the current newest. With nil it begins with the oldest change in the
// log.
func Changes(ctx context.Context, c graphql.Client, filter *ChangeFilter, cursor *string,
	first *int) iter.Seq2[*Change, error] {
	return nodes(func(after *string) (connection[*Change], error) {
		answer, err := ListChanges(ctx, c, filter, first, cmp.Or(after, cursor))
		return answer.Changes, err
	})
}
