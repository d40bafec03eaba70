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
// for the first page, and with Next of the page before for the others. It ends
// with the first error of fetch.
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

// Collect returns the first members of a list, up to most; 0 means all.
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

// The parameter first of an iterator is the size of its pages; nil is the
// server's default. Most iterators are in iterators.generated.go.

// CapabilityValues returns the values in use of a capability, with the number
// of resources for each.
func CapabilityValues(ctx context.Context, c graphql.Client, resourceType, name string) iter.Seq2[*ValueInUse, error] {
	return nodes(func(after *string) (connection[*ValueInUse], error) {
		answer, err := ReadCapability(ctx, c, resourceType, name, after)
		switch {
		case err != nil:
			return nil, err
		case answer.ResourceType == nil:
			return nil, &MissingError{"resource type", resourceType}
		case answer.ResourceType.Capability == nil:
			return nil, &MissingError{"capability", name}
		}
		return answer.ResourceType.Capability.Values, nil
	})
}

// usagesPage is the number of groups of consumers in a request.
const usagesPage = 100

// Usages returns the usage of consumers in groups. It counts only the consumers
// of the project, the user and the consumer type; nil means any.
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

// Changes returns the changes in the log that match a filter, oldest first, up
// to the current newest. It begins after the cursor, or with the oldest change
// if the cursor is nil.
func Changes(ctx context.Context, c graphql.Client, filter *ChangeFilter, cursor *string,
	first *int) iter.Seq2[*Change, error] {
	return nodes(func(after *string) (connection[*Change], error) {
		answer, err := ListChanges(ctx, c, filter, first, cmp.Or(after, cursor))
		return answer.Changes, err
	})
}
