package placement

import (
	"context"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/rest"
	"github.com/cadastre-dev/cadastre/rest/placement/search"
)

func showUsages(_ *rest.Request, provider *placement.Provider) rest.Answer {
	used := map[string]int64{}
	for _, one := range provider.Inventories {
		used[one.ResourceClass] = one.Used
	}
	return rest.Computed(rest.Object{"usages": used, "resource_provider_generation": provider.Generation})
}

// allTypes asks for one sum over the consumers of all types.
const allTypes = "all"

func (d *door) usages(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	typeOrWord := *name
	typeOrWord.Pattern += "|^all|^unknown$"
	schema := rest.Members(r.Version, rest.Must(0, "project_id", owner), rest.May(0, "user_id", owner),
		rest.May(38, "consumer_type", &typeOrWord))
	if err := search.CheckQuery(r, schema, d.compat); err != nil {
		return rest.Answer{}, err
	}
	project, _ := r.Last("project_id")
	viewer := access.ViewerFrom(ctx)
	if project != viewer.ProjectID && !viewer.May(access.RuleConsumersReadAny) &&
		!viewer.May(access.RulePlacementWrite) {
		return rest.Answer{}, problem.Refuse(problem.ErrForbidden, "the usages of another project need %s",
			viewer.RolesThatMay(access.RuleConsumersReadAny))
	}
	filter := placement.UsageFilter{ProjectID: &project, By: placement.UsagesByType}
	if user, ok := r.Last("user_id"); ok {
		filter.UserID = &user
	}
	wanted, ofType := r.Last("consumer_type")
	if ofType && wanted != allTypes && wanted != unknownType {
		filter.ConsumerType = &wanted
	}
	groups, err := d.usagesOf(ctx, filter)
	if err != nil {
		return rest.Answer{}, err
	}
	sums := sumsOf(r, groups, wanted)
	switch {
	case r.Since(38):
		return rest.Computed(rest.Object{"usages": sums}), nil
	case sums[allTypes] == nil:
		return rest.Computed(rest.Object{"usages": rest.Object{}}), nil
	}
	return rest.Computed(rest.Object{"usages": sums[allTypes]}), nil
}

// sumsOf returns the sums of groups by consumer type and class. Before 1.38, or
// if allTypes is wanted, the only type is allTypes. If unknownType is wanted,
// the only type is unknownType. Since 1.38, each sum has the number of
// consumers as consumer_count.
func sumsOf(r *rest.Request, groups []*placement.UsageGroup, wanted string) map[string]map[string]int64 {
	sums := map[string]map[string]int64{}
	for _, group := range groups {
		key := typeOf(group.ConsumerType)
		if wanted == unknownType && key != unknownType {
			continue
		}
		if !r.Since(38) || wanted == allTypes {
			key = allTypes
		}
		if sums[key] == nil {
			sums[key] = map[string]int64{}
		}
		for _, usage := range group.Usages {
			sums[key][usage.ResourceClass] += usage.Used
		}
		if r.Since(38) {
			sums[key]["consumer_count"] += int64(group.ConsumerCount)
		}
	}
	return sums
}

func (d *door) usagesOf(ctx context.Context, filter placement.UsageFilter) (all []*placement.UsageGroup, err error) {
	for {
		groups, err := d.Usages(ctx, filter, new(page.MaxSize))
		if err != nil || len(groups) == 0 {
			return all, err
		}
		if all = append(all, groups...); len(groups) < page.MaxSize {
			return all, nil
		}
		filter.After = new("")
		if last := groups[len(groups)-1]; last.ConsumerType != nil {
			filter.After = last.ConsumerType
		}
	}
}
