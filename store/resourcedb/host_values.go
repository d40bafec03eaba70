package resourcedb

import (
	"context"
	"fmt"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/capabilitymember"
	"github.com/cadastre-dev/cadastre/ent/resourceprovider"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/store/visible"
	"github.com/cadastre-dev/cadastre/text"
)

// maxHostValues is the maximum number of values that HostValues returns.
const maxHostValues = 200_000

// HostValues returns the values of a capability, by the row ids of the visible
// resources that root providers are linked to. For a value that is a list, it
// returns each member. It adds a problem at a path if the viewer may know of no
// such capability, and returns ErrTooComplex beyond maxHostValues.
func (s *ResourceStore) HostValues(ctx context.Context, path, name string,
	problems *problem.Problems) (map[int64][]string, error) {
	before := len(*problems)
	text.Check(problems, path, name, 1, resource.MaxCapabilityName)
	if len(*problems) > before {
		return nil, nil
	}
	known, err := s.knownCapabilities(ctx, []string{name}, nil)
	if err != nil {
		return nil, err
	}
	all, err := s.capabilitiesToSuggest(ctx, known, []string{name}, nil)
	if err != nil {
		return nil, err
	}
	if namesIn(known, all).Check(problems, path, name); len(*problems) > before {
		return nil, nil
	}
	rows, err := s.Ent.CapabilityMember.Query().
		Where(paging.Among(capabilitymember.FieldCapabilityID, known[name]), visible.OfResources(ctx), ofRoots).
		Limit(maxHostValues+1).Select(capabilitymember.FieldResourceID, capabilitymember.FieldValue).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the values of a capability: %w", err)
	}
	if len(rows) > maxHostValues {
		return nil, problem.Refuse(problem.ErrTooComplex,
			"the hosts have more than %d values of the capability", maxHostValues)
	}
	return lists.Group(rows, func(row *ent.CapabilityMember) (int64, string) { return row.ResourceID, row.Value }), nil
}

// ofRoots keeps the members of resources that root providers are linked to.
func ofRoots(s *entsql.Selector) {
	providers := entsql.Dialect(s.Dialect()).Table(resourceprovider.Table)
	s.Where(entsql.In(s.C(capabilitymember.FieldResourceID), entsql.Dialect(s.Dialect()).
		Select(providers.C(resourceprovider.FieldResourceID)).From(providers).
		Where(entsql.And(entsql.NotNull(providers.C(resourceprovider.FieldResourceID)),
			entsql.IsNull(providers.C(resourceprovider.FieldParentID))))))
}
