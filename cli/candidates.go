package cli

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/client/optional"
)

type candidatesCommand struct {
	common
	Resources    []string `name:"resource" sep:"none" of:"resource-class" placeholder:"CLASS=AMOUNT" help:"An amount to find; can be given several times. After --group, of that group."`
	Required     []string `sep:"none" of:"trait" placeholder:"TRAITS" help:"Traits: A,B for all, in:A,B for any, !A for without; can be given several times. After --group, of that group."`
	MemberOf     []string `sep:"none" placeholder:"AGGREGATES" help:"Only in one of these aggregates, separated by commas; !A for not in it. After --group, of that group."`
	InTree       []string `sep:"none" ref:"provider" placeholder:"PROVIDER" help:"Only in the tree of this provider. After --group, of that group."`
	Group        []string `sep:"none" placeholder:"SUFFIX" help:"Begins a group, which one provider serves: what follows it is of the group. Can be given several times."`
	GroupPolicy  string   `enum:"none,isolate" default:"none" help:"Whether groups may share a provider: ${enum}."`
	SameSubtree  []string `sep:"none" placeholder:"SUFFIXES" help:"Groups, separated by commas, that providers below one of them serve; can be given several times."`
	RootRequired []string `sep:"none" of:"trait" placeholder:"TRAITS" help:"Traits of the root of the tree: A,B for all, !A for without."`
	Hosts        *string  `at:"hosts" placeholder:"FILTER" help:"Only on hosts that this ResourceFilter of the schema, as JSON or YAML, leaves, such as {requirements: [{key: arch, requirement: x86_64}]}."`
	FromFlavor   string   `ref:"resource" placeholder:"RESOURCE" help:"What the metadata of this flavor, or of another resource, ask for, instead of the flags above."`
	Explain      bool     `help:"Show which condition takes how many providers away, instead of candidates."`
	Limit        int      `default:"20" placeholder:"N" help:"At most so many candidates; 0 is all."`
}

// Run finds where a request fits.
func (c *candidatesCommand) Run(run *session) error {
	if err := run.resolve(c); err != nil {
		return err
	}
	page, err := c.finder(run)
	if err != nil {
		return err
	}
	first, err := page(nil)
	if err != nil {
		return err
	}
	if c.Explain {
		return showExplanation(run, first.explain)
	}
	found, err := client.Collect(client.All(func(after *string) (client.Page[*client.Candidate], error) {
		if after == nil {
			return first.page, nil
		}
		next, err := page(after)
		return next.page, err
	}), c.Limit)
	if err != nil {
		return err
	}
	count := fmt.Sprint(first.count)
	if !first.exact {
		count += " or more"
	}
	run.notef("%d of %s candidates\n", len(found), count)
	return showCandidates(run, found)
}

// candidatePage is a page of an answer.
type candidatePage struct {
	page    client.Page[*client.Candidate]
	count   int
	exact   bool
	explain *client.CandidateExplanation
}

// finder returns what fetches the page after a cursor.
func (c *candidatesCommand) finder(run *session) (func(after *string) (candidatePage, error), error) {
	limit := maxPage
	if c.Limit > 0 {
		limit = min(limit, c.Limit)
	}
	if c.FromFlavor != "" {
		if len(c.Resources)+len(c.Required)+len(c.MemberOf)+len(c.InTree)+len(c.Group)+len(c.SameSubtree)+len(c.RootRequired) > 0 || c.Hosts != nil {
			return nil, usagef("--from-flavor says all of the request: no other condition stands beside it")
		}
		return func(after *string) (candidatePage, error) {
			answer, err := client.FindCandidatesOf(run.ctx, run.api, c.FromFlavor, &limit, after, c.Explain)
			switch {
			case err != nil:
				return candidatePage{}, err
			case answer.Resource == nil:
				return candidatePage{}, missing("resource", c.FromFlavor)
			case answer.Resource.AllocationCandidates == nil:
				return candidatePage{}, inputError{fmt.Errorf("the metadata of %s ask for nothing", c.FromFlavor)}
			}
			return pageOfCandidates(answer.Resource.AllocationCandidates), nil
		}, nil
	}
	request, err := c.request(run)
	if err != nil {
		return nil, err
	}
	return func(after *string) (candidatePage, error) {
		answer, err := client.FindCandidates(run.ctx, run.api, request.resources, request.traits.all, request.traits.anySets, request.traits.forbidden,
			request.memberOf, request.inTree, request.groups, client.GroupPolicy(constant(c.GroupPolicy)), request.sameSubtree,
			request.root.all, request.root.forbidden, request.hosts, &limit, after, c.Explain)
		if err != nil {
			return candidatePage{}, err
		}
		return pageOfCandidates(answer.AllocationCandidates), nil
	}, nil
}

func pageOfCandidates(of *client.Candidates) candidatePage {
	page := candidatePage{page: client.Page[*client.Candidate]{Nodes: of.Nodes}, count: of.TotalCount, exact: of.TotalCountIsExact, explain: of.Explain}
	if of.PageInfo.HasNextPage {
		page.page.Next = of.PageInfo.EndCursor
	}
	return page
}

// candidateRequest is the request that the flags say.
type candidateRequest struct {
	requestGroup
	groups      []*client.RequestGroupInput
	sameSubtree []*client.SubtreeInput
	root        traits
	hosts       *client.ResourceFilter
}

// requestGroup is a part of a request.
type requestGroup struct {
	resources []*client.ResourceAmountInput
	traits    traits
	memberOf  []*client.AggregateFilter
	inTree    *string

	required, members []string // as they are written
}

// request returns the request. A flag belongs to the group before it on the
// command line.
func (c *candidatesCommand) request(run *session) (*candidateRequest, error) {
	request, group := &candidateRequest{}, &requestGroup{}
	groups := []*requestGroup{group}
	next := map[string]int{}
	for _, part := range run.parsed.Path {
		if part.Flag == nil {
			continue
		}
		i := next[part.Flag.Name]
		next[part.Flag.Name]++
		if part.Flag.Name == "group" {
			group = &requestGroup{}
			groups = append(groups, group)
			continue
		}
		if err := c.add(run, group, part.Flag, i, groupPath(len(groups)-2)); err != nil {
			return nil, err
		}
	}
	for i, of := range groups {
		of.traits, of.memberOf = traitsOf(of.required), aggregatesOf(of.members)
		run.tellOf(groupPath(i-1), of.required, of.members)
		if i > 0 {
			run.tell(strings.TrimSuffix(groupPath(i-1), "."), "--group "+c.Group[i-1])
			request.groups = append(request.groups, &client.RequestGroupInput{Suffix: c.Group[i-1], Resources: optional.List(of.resources), InTree: optional.From(of.inTree),
				RequiredAll: optional.List(of.traits.all), RequiredAnySets: optional.List(of.traits.anySets), Forbidden: optional.List(of.traits.forbidden), MemberOf: optional.List(of.memberOf)})
		}
	}
	request.requestGroup = *groups[0]
	for i, text := range c.SameSubtree {
		run.tell(fmt.Sprintf("sameSubtree[%d]", i), "--same-subtree "+text)
		request.sameSubtree = append(request.sameSubtree, &client.SubtreeInput{Suffixes: strings.Split(text, ",")})
	}
	request.root = traitsOf(c.RootRequired)
	if request.root.anySets != nil {
		return nil, usagef("--root-required: the root takes no set of which any is enough")
	}
	run.tell("rootRequired", "--root-required "+strings.Join(c.RootRequired, ","))
	run.tell("rootForbidden", "--root-required "+strings.Join(c.RootRequired, ","))
	if c.Hosts != nil {
		filter, err := inputOf(definitionOf("ResourceFilter"), *c.Hosts)
		if err != nil {
			return nil, usagef("--hosts: %w", err)
		}
		request.hosts = &client.ResourceFilter{}
		if err := into(request.hosts, filter); err != nil {
			return nil, err
		}
	}
	return request, nil
}

// groupPath returns the path of a group in the arguments; a negative one is the
// part without a suffix.
func groupPath(i int) string {
	if i < 0 {
		return ""
	}
	return fmt.Sprintf("groups[%d].", i)
}

// add adds one of the values of a flag to a group.
func (c *candidatesCommand) add(run *session, group *requestGroup, flag *kong.Flag, i int, path string) error {
	switch flag.Name {
	case "resource":
		amount, err := amountOf(c.Resources[i])
		if err != nil {
			return usagef("--resource: %w", err)
		}
		run.tell(fmt.Sprintf("%sresources[%d]", path, len(group.resources)), "--resource "+c.Resources[i])
		group.resources = append(group.resources, amount)
	case "required":
		group.required = append(group.required, c.Required[i])
	case "member-of":
		group.members = append(group.members, c.MemberOf[i])
	case "in-tree":
		run.tell(path+"inTree", "--in-tree")
		group.inTree = &c.InTree[i]
	}
	return nil
}

// showCandidates shows candidates: for people a row for each provider of one.
func showCandidates(run *session, found []*client.Candidate) error {
	if run.out.isData() {
		return list(run, columnsOf("allocations mappings"), found)
	}
	type row struct {
		Candidate int                      `json:"candidate"`
		Provider  *client.ProviderName     `json:"provider"`
		Resources []*client.ResourceAmount `json:"resources"`
		Groups    []string                 `json:"groups"`
	}
	var rows []row
	for i, candidate := range found {
		for _, allocation := range candidate.Allocations {
			of := row{i + 1, allocation.Provider, allocation.Resources, nil}
			for _, mapping := range candidate.Mappings {
				for _, provider := range mapping.Providers {
					if provider.Uuid == allocation.Provider.Uuid && mapping.Suffix != "" {
						of.Groups = append(of.Groups, mapping.Suffix)
					}
				}
			}
			rows = append(rows, of)
		}
	}
	return list(run, columnsOf("candidate provider=provider.name resources groups +uuid=provider.uuid"), rows)
}

// showExplanation shows which condition takes how many providers away, and which
// providers come nearest.
func showExplanation(run *session, of *client.CandidateExplanation) error {
	if run.out.isData() {
		return one(run, columnsOf("considered steps nearest"), of)
	}
	run.notef("%s considered\n", counted(of.Considered, "provider"))
	for _, near := range of.Nearest {
		var lacks []string
		for _, short := range near.Missing {
			lacks = append(lacks, fmt.Sprintf("%d %s", short.Short, short.ResourceClass))
		}
		lacks = append(lacks, near.Traits...)
		run.notef("near: %s lacks %s\n", printable(near.Provider.Name), strings.Join(lacks, ", "))
	}
	return list(run, columnsOf("kind constraint eliminated remaining +path"), of.Steps)
}

// tellOf notes which flags traits and aggregates were given with.
func (s *session) tellOf(prefix string, required, memberOf []string) {
	for _, field := range []string{"requiredAll", "requiredAny", "requiredAnySets", "forbidden"} {
		s.tell(prefix+field, "--required "+strings.Join(required, " --required "))
	}
	s.tell(prefix+"memberOf", "--member-of "+strings.Join(memberOf, " --member-of "))
}
