package resourcedb

import (
	"context"
	"fmt"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/capabilitycount"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/text"
)

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
