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
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/text"
)

// valuesList is the name of the list of a capability's values in its cursors.
const valuesList = "values"

// valuePaging takes a page of the values of each of several capabilities. The
// values of a capability are unique, so a value is its own position.
type valuePaging struct {
	request       page.Request
	startsWith    string
	after, before *page.Position
}

func newValuePaging(startsWith string, request page.Request) (valuePaging, error) {
	p := valuePaging{request: request, startsWith: startsWith}
	var problems problem.Problems
	text.Check(&problems, "startsWith", startsWith, 0, resource.MaxCapabilityValue)
	p.after, p.before = request.Positions(valuesList, func(at page.Position) bool { return at.ID == "" }, &problems)
	return p, problems.Err()
}

// matching keeps the values that begin with the prefix.
func (p valuePaging) matching(s *entsql.Selector) {
	if p.startsWith != "" {
		s.Where(hasPrefix(s.C(capabilitycount.FieldValue), s.C(capabilitycount.FieldValuePrefix), p.startsWith))
	}
}

// beyond keeps the values that compare to the position as the operator says. It
// keeps all values if at is nil.
func beyond(s *entsql.Selector, operator string, at *page.Position) {
	if at != nil {
		s.Where(paging.ComparePart(s, capabilitycount.FieldCapabilityID, operator,
			[]string{capabilitycount.FieldValuePrefix, capabilitycount.FieldValue}, sqldb.PrefixOf(at.Key), at.Key))
	}
}

// within keeps the values between the cursors.
func (p valuePaging) within(s *entsql.Selector) {
	beyond(s, ">", p.after)
	beyond(s, "<", p.before)
}

// behind keeps the value of the cursor at which the page begins, and the values
// on its other side.
func (p valuePaging) behind(s *entsql.Selector) {
	switch {
	case p.request.Backward() && p.before != nil:
		beyond(s, ">=", p.before)
	case !p.request.Backward() && p.after != nil:
		beyond(s, "<=", p.after)
	default:
		s.Where(entsql.False())
	}
}

// sort orders values by code point, in the direction of the page.
func (p valuePaging) sort(s *entsql.Selector) {
	direction := entsql.Asc
	if p.request.Backward() {
		direction = entsql.Desc
	}
	paging.OrderParts(s, capabilitycount.FieldCapabilityID, direction)
	s.OrderBy(direction(s.C(capabilitycount.FieldValuePrefix)), direction(s.C(capabilitycount.FieldValue)))
}

// of makes a page of the rows of one capability, by value.
func (p valuePaging) of(rows []*ent.CapabilityCount) page.Page[*resource.CapabilityValue] {
	out := page.Page[*resource.CapabilityValue]{HasMore: len(rows) > p.request.Limit()}
	switch {
	case out.HasMore && p.request.Backward():
		rows = rows[len(rows)-p.request.Limit():]
	case out.HasMore:
		rows = rows[:p.request.Limit()]
	}
	out.Items = make([]*resource.CapabilityValue, len(rows))
	out.Cursors = make([]string, len(rows))
	for i, row := range rows {
		out.Items[i] = &resource.CapabilityValue{Value: row.Value, ResourceCount: row.ResourceCount}
		out.Cursors[i] = page.Position{List: valuesList, Key: row.Value}.Cursor()
	}
	return out
}

func capabilityOfCount(row *ent.CapabilityCount) int64 { return row.CapabilityID }

// CapabilityValues returns a page of the values in use of each capability that
// begin with a prefix, by value, with the number of resources that have each.
// Writes maintain these numbers, so nothing is counted here.
func (s *ResourceStore) CapabilityValues(ctx context.Context, capabilities []int64, startsWith string, request page.Request) (map[int64]page.Page[*resource.CapabilityValue], error) {
	p, err := newValuePaging(startsWith, request)
	if err != nil {
		return nil, err
	}
	rows, err := s.Ent.CapabilityCount.Query().
		Where(paging.FirstOfEach(capabilitycount.Table, capabilitycount.FieldCapabilityID, capabilities, request.Limit()+1, p.matching, p.within, p.sort)).
		Order(capabilitycount.ByCapabilityID(), capabilitycount.ByValue()).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("list values of capabilities: %w", err)
	}
	of := lists.Group(rows, func(row *ent.CapabilityCount) (int64, *ent.CapabilityCount) {
		return row.CapabilityID, row
	})
	return lists.Index(capabilities, func(capability int64) (int64, page.Page[*resource.CapabilityValue]) {
		return capability, p.of(of[capability])
	}), nil
}

// CapabilityValuesBehind reports which capabilities have values behind the page
// of CapabilityValues: before a page that is read forward, after a page that is
// read backward.
func (s *ResourceStore) CapabilityValuesBehind(ctx context.Context, capabilities []int64, startsWith string, request page.Request) (map[int64]bool, error) {
	p, err := newValuePaging(startsWith, request)
	if err != nil {
		return nil, err
	}
	rows, err := s.Ent.CapabilityCount.Query().
		Where(paging.FirstOfEach(capabilitycount.Table, capabilitycount.FieldCapabilityID, capabilities, 1, p.matching, p.behind, p.sort)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for values of capabilities: %w", err)
	}
	return paging.KeysOf(rows, capabilityOfCount), nil
}

// CountCapabilityValues returns the number of values in use of each capability
// that begin with a prefix.
func (s *ResourceStore) CountCapabilityValues(ctx context.Context, capabilities []int64, startsWith string) (map[int64]int, error) {
	p, err := newValuePaging(startsWith, page.Request{})
	if err != nil {
		return nil, err
	}
	return countTable.CountBy(ctx, s.DB, capabilitycount.FieldCapabilityID, paging.Among(capabilitycount.FieldCapabilityID, capabilities), p.matching)
}
