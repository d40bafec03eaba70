package sync

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/client/optional"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/origin"
)

// provider is a resource provider of Placement.
type provider struct {
	uuid, name, parent string // parent is "" for a root
	inventories        map[string]inventory
	traits, aggregates []string // sorted
}

type inventory struct {
	total, reserved, minUnit, maxUnit, stepSize int
	ratio                                       float64
}

// copy returns a copy whose inventories and traits can be changed.
func (p provider) copy() provider {
	p.inventories, p.traits = maps.Clone(p.inventories), slices.Clone(p.traits)
	return p
}

// number returns a field that is a whole number, 0 for any other.
func (r row) number(field string) int {
	number, _ := r[field].(json.Number)
	value, _ := number.Int64() // 0 for none
	return int(value)
}

// list returns the strings in a field that is a list, sorted. It returns none
// for any other field.
func (r row) list(field string) []string {
	list, _ := r[field].([]any)
	texts := make([]string, 0, len(list))
	for _, one := range list {
		if text, ok := one.(string); ok {
			texts = append(texts, text)
		}
	}
	slices.Sort(texts)
	return texts
}

// memory keeps the results of earlier runs of a pass.
type memory struct {
	runs int
	// newest is the time of the last change that runs have written, zero for none.
	// all is the number of things in the last whole reading. It is 0 if the
	// next run must read all: before the first run, after a run in which a limit
	// kept things, and after a whole reading that had fewer than two pages or
	// found a thing absent.
	newest time.Time
	all    int
	// providers has the allocations of each provider as last read, by uuid.
	providers map[string]*readProvider
	// foreign are the units in use that no known consumer has, by project and class.
	foreign map[string]map[string]int
	// rewritten are the servers and migrations with a new generation whose own
	// pages are not read and written yet: their users may differ.
	rewritten map[string]bool
}

// readProvider is a provider as read at a generation: either its content, or
// its allocations, as amounts by consumer and class, with the generations of
// the consumers. The generation of a provider grows with each change of its
// content and each claim. It does not grow with releases, nor with changes of
// aggregates by clients that use a microversion before 1.19.
type readProvider struct {
	generation string
	run        int // that read the allocations
	provider
	allocations map[string]map[string]int
	generations map[string]int
}

// rounds is the number of runs in which everything is read at least once, even
// without a visible change: an hour with one run a minute.
const rounds = 60

// readProviders returns all providers of a list, parents before children. It
// calls read, concurrently, for each provider that is not known at its
// generation or whose turn is in the run. It leaves out providers that were
// deleted meanwhile.
func (p *Pass) readProviders(ctx context.Context, service *endpoint, list Kind, known map[string]*readProvider,
	run int, read func(ctx context.Context, of *readProvider) error) ([]*readProvider, error) {
	rows, err := readList(ctx, service, list, list.lists[0], func(int) {})
	if err != nil {
		return nil, fmt.Errorf("list the resource providers for a pass over %s: %w", p.Kind.Name, err)
	}
	rows = inTrees(rows)
	found := make([]*readProvider, len(rows))
	err = each(ctx, rows, func(ctx context.Context, i int, one row) error {
		of := readProvider{generation: one.text("generation"), provider: provider{uuid: one.text("uuid")}}
		if is := known[of.uuid]; is != nil && is.generation == of.generation && !isTurn(of.uuid, run) {
			of = *is
		} else if err := read(ctx, &of); gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
			return nil // deleted meanwhile
		} else if err != nil {
			return fmt.Errorf("read provider %s for a pass over %s: %w", of.uuid, p.Kind.Name, err)
		}
		of.name, of.parent = one.text("name"), one.text("parent_provider_uuid")
		found[i] = &of
		p.Progress(1)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(one *readProvider) bool { return one == nil }), nil
}

// byUUID returns providers by their uuids.
func byUUID(providers []*readProvider) map[string]*readProvider {
	return lists.ByKey(providers, func(one *readProvider) string { return one.uuid })
}

// readContents is readProviders with the contents of the providers.
func (p *Pass) readContents(ctx context.Context, list Kind, run int) ([]*readProvider, error) {
	service, err := p.Cloud.serviceOf(ctx, list)
	if err != nil {
		return nil, err
	}
	found, err := p.readProviders(ctx, service, list, p.Cloud.contents, run,
		func(ctx context.Context, of *readProvider) error { return readContent(ctx, service, of) })
	if err == nil {
		p.Cloud.contents = byUUID(found)
	}
	return found, err
}

// addTraits adds the traits of its provider to the capabilities of each thing, as
// a list, if the kind has traits and no other capability has that name. A thing
// without traits gets none.
func (p *Pass) addTraits(ctx context.Context, things []Thing) error {
	if p.Kind.traits == nil || !p.Cloud.offers(*p.Kind.traits) {
		return nil
	}
	if _, err := p.readContents(ctx, *p.Kind.traits, noTurn); err != nil {
		return err
	}
	for _, thing := range things {
		_, isNamed := thing.Capabilities["traits"]
		if of := p.Cloud.contents[thing.ID]; of != nil && len(of.traits) > 0 && !isNamed {
			thing.Capabilities["traits"] = asList(of.traits)
		}
	}
	return nil
}

// noTurn is a run in which no provider has its turn.
const noTurn = -1

// isTurn reports whether a run reads a provider even without a change.
func isTurn(uuid string, run int) bool {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(uuid))
	return hash.Sum32()%rounds == uint32(run%rounds)
}

// readContent reads the inventories, traits and aggregates of a provider.
func readContent(ctx context.Context, service *endpoint, p *readProvider) error {
	answers := map[string]row{}
	for _, part := range []string{"inventories", "traits", "aggregates"} {
		answer, err := get(ctx, service, service.ServiceURL("resource_providers", p.uuid, part), part)
		if err != nil {
			return err
		}
		answers[part] = answer
	}
	p.traits, p.aggregates = answers["traits"].list("traits"), answers["aggregates"].list("aggregates")
	p.inventories = map[string]inventory{}
	for class, of := range answers["inventories"].objects("inventories") {
		ratio, _ := of["allocation_ratio"].(json.Number)
		share, _ := ratio.Float64() // 0 for none, which the server refuses
		p.inventories[class] = inventory{of.number("total"), of.number("reserved"), of.number("min_unit"),
			of.number("max_unit"), of.number("step_size"), share}
	}
	return nil
}

// inTrees sorts rows of providers, parents before children, and returns them.
func inTrees(rows []row) []row {
	parents := map[string]string{}
	for _, one := range rows {
		parents[one.text("uuid")] = one.text("parent_provider_uuid")
	}
	depth := func(uuid string) (levels int) {
		for uuid = parents[uuid]; uuid != "" && levels <= len(rows); uuid = parents[uuid] {
			levels++
		}
		return levels
	}
	depths := map[string]int{}
	for uuid := range parents {
		depths[uuid] = depth(uuid)
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(depths[a.text("uuid")]-depths[b.text("uuid")], cmp.Compare(a.text("uuid"), b.text("uuid")))
	})
	return rows
}

// linked is the resource of a thing.
type linked struct {
	resource, name, project string
	provider                string // the uuid of its provider, "" for none
	keeper                  string // another region with a host that has this provider, "" for none
}

// origins returns the resources of a kind in the region of the pass, by foreign
// id. completed has the end of the last complete pass over the kind, by region.
// A region keeps no provider for a host that was absent from that pass.
func (p *Pass) origins(ctx context.Context, kind Kind, completed map[string]time.Time) (map[string]linked, error) {
	found, keepers, isFirst := map[string]linked{}, map[string]string{}, true
	for node, err := range client.ResourcesOfOrigins(ctx, p.Server, kind.ResourceType, new(1000)) {
		if isFirst && client.Code(err) == client.BadUserInput {
			return found, nil // the first pass over the kind makes the type
		}
		if isFirst = false; err != nil {
			return nil, err
		}
		from := node.Origin
		if from == nil || from.Origin != p.Origin || from.Kind != kind.Name {
			continue
		}
		one := linked{resource: node.Uuid, name: node.Name, project: node.ProjectId}
		if node.Provider != nil {
			one.provider = node.Provider.Uuid
		}
		if from.Region == p.Cloud.At.Region {
			found[from.ForeignId] = one
		} else if isAbsent := from.ObservedAt.Before(completed[from.Region]); one.provider != "" && !isAbsent {
			keepers[one.provider] = from.Region
		}
	}
	for id, region := range keepers {
		if one, ok := found[id]; ok {
			one.keeper = region
			found[id] = one
		}
	}
	return found, nil
}

// free returns the uuid of the resource, or "" if it has a provider or another
// region keeps its provider.
func (l linked) free() string {
	if l.provider != "" || l.keeper != "" {
		return ""
	}
	return l.resource
}

// completed returns the end of the last complete pass over a kind, by region.
func (p *Pass) completed(ctx context.Context, kind Kind) (map[string]time.Time, error) {
	syncs, err := client.ListSyncs(ctx, p.Server)
	if err != nil {
		return nil, err
	}
	completed := map[string]time.Time{}
	for _, of := range syncs.Syncs {
		if of.Origin == p.Origin && of.Kind == kind.Name && of.CompletedAt != nil {
			completed[of.Region] = *of.CompletedAt
		}
	}
	return completed, nil
}

// refuses reports whether all absent things must stay, because they exceed the
// limits or the pass read nothing. If so, it counts them as refused in the
// result. present is the number of stored things, including absent ones.
func (p *Pass) refuses(result *Result, present int) bool {
	absent := result.SyncCounts.Absent
	reading := origin.Reading{Complete: true, Seen: result.Seen}
	if reading.Gone(present, absent, p.goneLimits()) == absent {
		return false
	}
	result.Refused, result.kept = absent, absent
	return true
}

// followProviders reads the providers, and writes the changed ones. From the
// trees of the cloud's hosts it deletes the stored providers that no longer
// exist, within the limits and unless they have allocations or children.
func (p *Pass) followProviders(ctx context.Context, _ string, result *Result) error {
	p.before.runs++
	read, err := p.readContents(ctx, p.Kind, p.before.runs)
	if err != nil {
		return err
	}
	providers := lists.Map(read, func(one *readProvider) provider { return one.copy() })
	result.Seen = len(providers)
	completed, err := p.completed(ctx, hypervisors) // read before the hosts: no host seen meanwhile looks absent
	if err != nil {
		return err
	}
	hosts, err := p.origins(ctx, hypervisors, completed)
	if err != nil {
		return err
	}
	for _, one := range providers {
		if region := hosts[one.uuid].keeper; region != "" {
			result.LeftOut = append(result.LeftOut,
				LeftOut{ID: one.uuid, Why: "the host of the region " + region + " has this provider, and keeps it"})
		}
	}
	stored := map[string]*client.Provider{}
	for one, err := range client.Providers(ctx, p.Server, nil, nil, new(1000)) {
		if err != nil {
			return err
		}
		stored[one.Uuid] = one
	}
	if err := p.ensureNames(ctx, providers, result); err != nil {
		return err
	}
	absent, present := absentProviders(providers, stored, hosts)
	return errors.Join(p.writeProviders(ctx, providers, stored, absent, hosts, result),
		p.deleteProviders(ctx, providers, stored, absent, present, result))
}

// ensureNames creates missing custom traits and classes, except in a dry run.
// It removes standard names that the server does not know from the providers,
// and notes them as left out.
func (p *Pass) ensureNames(ctx context.Context, providers []provider, result *Result) error {
	traits, err := names(client.Traits(ctx, p.Server, nil, new(1000)), func(one *client.Trait) string {
		return one.Name
	})
	if err != nil {
		return err
	}
	classes, err := names(client.ResourceClasses(ctx, p.Server, nil, new(1000)),
		func(one *client.ResourceClass) string { return one.Name })
	if err != nil {
		return err
	}
	var newTraits, newClasses []string
	for i := range providers {
		one := &providers[i]
		leave := func(kind, name string, known map[string]bool, missing *[]string) bool {
			if !known[name] && strings.HasPrefix(name, "CUSTOM_") {
				known[name] = true
				*missing = append(*missing, name)
			}
			if !known[name] {
				why := fmt.Sprintf("the server does not know the %s %s", kind, name)
				result.LeftOut = append(result.LeftOut, LeftOut{ID: one.uuid, Why: why})
			}
			return !known[name]
		}
		one.traits = slices.DeleteFunc(one.traits, func(name string) bool {
			return leave("trait", name, traits, &newTraits)
		})
		maps.DeleteFunc(one.inventories, func(name string, _ inventory) bool {
			return leave("resource class", name, classes, &newClasses)
		})
	}
	if p.DryRun {
		return nil
	}
	for names := range slices.Chunk(newTraits, 1000) {
		if _, err := client.EnsureTraits(ctx, p.Server, &client.EnsureTraitsInput{Names: names}); err != nil {
			return err
		}
	}
	for _, name := range newClasses {
		_, err := client.CreateResourceClass(ctx, p.Server, &client.CreateResourceClassInput{Name: name})
		if err != nil && client.Code(err) != client.AlreadyExists {
			return err
		}
	}
	return nil
}

func names[T any](list iter.Seq2[T, error], name func(T) string) (map[string]bool, error) {
	all := map[string]bool{}
	for one, err := range list {
		if err != nil {
			return nil, err
		}
		all[name(one)] = true
	}
	return all, nil
}

// maxProviders is the maximum number of providers in one request.
const maxProviders = 100

// writeProviders creates providers, and updates the changed ones. A dry run
// only counts them. The error names the providers that the server refuses. They
// do not stop the others.
func (p *Pass) writeProviders(ctx context.Context, providers []provider, stored map[string]*client.Provider,
	absent []*client.Provider, hosts map[string]linked, result *Result) error {
	var created []*client.CreateResourceProviderInput
	var moved []*client.UpdateResourceProviderInput
	var set []*client.SetOnResourceProviderInput
	nameOf := map[string]string{}
	for _, one := range providers {
		nameOf[one.uuid] = one.name
		is := stored[one.uuid]
		if is == nil {
			created = append(created, one.input(hosts[one.uuid].free()))
			result.note(origin.Created, one.uuid, one.name)
			continue
		}
		move, content := one.move(is, hosts[one.uuid]), one.content(is)
		if move != nil {
			moved = append(moved, move)
		}
		if content != nil {
			set = append(set, content)
		}
		if move == nil && content == nil {
			result.Unchanged++
		} else {
			result.Updated++
			result.note(origin.Updated, one.uuid, one.name, changed(move, content)...)
		}
	}
	if p.DryRun {
		result.Created = len(created)
		return nil
	}
	p.freeNames(ctx, moved, stored, absent, nameOf)
	refused, err := p.createProviders(ctx, created)
	if err != nil {
		return err
	}
	result.Created = len(created) - len(refused)
	for _, one := range moved { // after their parents were created
		if _, err := client.UpdateResourceProvider(ctx, p.Server, one); err != nil {
			refused = append(refused, fmt.Errorf("provider %s: %w", nameOf[one.Provider], err))
		}
	}
	for items := range pages(set, maxProviders) {
		answer, err := client.SetOnResourceProviders(ctx, p.Server,
			&client.SetOnResourceProvidersInput{Items: items, Atomic: optional.Value(false)})
		if err != nil {
			return err
		}
		for i, one := range answer.SetOnResourceProviders.Results {
			if len(one.Errors) > 0 {
				uuid, _ := items[i].Provider.Get()
				refused = append(refused, fmt.Errorf("provider %s: %s", nameOf[uuid], one.Errors[0].Message))
			}
		}
	}
	return errors.Join(refused...)
}

// freeNames renames each absent or renamed provider whose stored name another
// provider gets: its uuid becomes its name. If that fails, the server refuses
// the other provider.
func (p *Pass) freeNames(ctx context.Context, moved []*client.UpdateResourceProviderInput,
	stored map[string]*client.Provider, absent []*client.Provider, nameOf map[string]string) {
	isWanted := lists.Set(slices.Collect(maps.Values(nameOf)), lists.Itself)
	for _, one := range moved {
		if len(one.NewName) > 0 {
			absent = append(absent, stored[one.Provider])
		}
	}
	for _, one := range absent {
		if isWanted[one.Name] {
			_, _ = client.UpdateResourceProvider(ctx, p.Server, &client.UpdateResourceProviderInput{
				Provider: one.Uuid, NewName: optional.Value(one.Uuid)})
		}
	}
}

// changed returns the names of the fields that inputs change, sorted. Both can be
// nil.
func changed(move *client.UpdateResourceProviderInput, content *client.SetOnResourceProviderInput) (names []string) {
	move, content = cmp.Or(move, new(client.UpdateResourceProviderInput)),
		cmp.Or(content, new(client.SetOnResourceProviderInput))
	for _, field := range []struct {
		name  string
		isSet bool
	}{{"aggregates", len(content.Aggregates) > 0}, {"inventories", len(content.Inventories) > 0},
		{"name", len(move.NewName) > 0}, {"parent", len(move.Parent) > 0},
		{"resource", len(move.Resource) > 0}, {"traits", len(content.Traits) > 0}} {
		if field.isSet {
			names = append(names, field.name)
		}
	}
	return names
}

// createProviders creates providers. refused has an error for each provider
// that the server refuses.
func (p *Pass) createProviders(ctx context.Context,
	providers []*client.CreateResourceProviderInput) (refused []error, err error) {
	for items := range pages(providers, maxProviders) {
		answer, err := client.CreateResourceProviders(ctx, p.Server,
			&client.CreateResourceProvidersInput{Items: items, Atomic: optional.Value(false)})
		if err != nil {
			return nil, err
		}
		for i, one := range answer.CreateResourceProviders.Results {
			if len(one.Errors) > 0 {
				refused = append(refused, fmt.Errorf("provider %s: %s", items[i].Name, one.Errors[0].Message))
			}
		}
	}
	return refused, nil
}

// input returns the input that creates a provider. resource is the uuid of the
// provider's resource, "" for none.
func (p provider) input(resource string) *client.CreateResourceProviderInput {
	input := &client.CreateResourceProviderInput{Name: p.name, Uuid: optional.Value(p.uuid),
		Inventories: optional.Value(p.inventoryInputs()),
		Traits:      optional.Value(p.traits), Aggregates: optional.Value(p.aggregates)}
	if p.parent != "" {
		input.Parent = optional.Value(p.parent)
	}
	if resource != "" {
		input.Resource = optional.Value(resource)
	}
	return input
}

func (p provider) inventoryInputs() []*client.InventoryInput {
	inputs := make([]*client.InventoryInput, 0, len(p.inventories))
	for _, class := range slices.Sorted(maps.Keys(p.inventories)) {
		of := p.inventories[class]
		inputs = append(inputs, &client.InventoryInput{ResourceClass: class, Total: of.total,
			Reserved: optional.Value(of.reserved), MinUnit: optional.Value(of.minUnit),
			MaxUnit: optional.Value(of.maxUnit), StepSize: optional.Value(of.stepSize),
			AllocationRatio: optional.Value(of.ratio)})
	}
	return inputs
}

// move returns the input that gives a stored provider the name and parent of p,
// or nil if nothing changes. It also links the provider to its host, if the host
// is free.
func (p provider) move(is *client.Provider, own linked) *client.UpdateResourceProviderInput {
	input, isChanged := &client.UpdateResourceProviderInput{Provider: p.uuid}, false
	if p.name != is.Name {
		input.NewName, isChanged = optional.Value(p.name), true
	}
	parent := ""
	if is.Parent != nil {
		parent = is.Parent.Uuid
	}
	if p.parent != parent {
		input.Parent, isChanged = optional.Value(p.parent), true
		if p.parent == "" {
			input.Parent = optional.Null[string]()
		}
	}
	if to := own.free(); to != "" {
		input.Resource, isChanged = optional.Value(to), true
	}
	if !isChanged {
		return nil
	}
	return input
}

// content returns the input that gives a stored provider the inventories,
// traits and aggregates of p, or nil if nothing changes.
func (p provider) content(is *client.Provider) *client.SetOnResourceProviderInput {
	input, isChanged := &client.SetOnResourceProviderInput{Provider: optional.Value(p.uuid)}, false
	has := map[string]inventory{}
	for _, one := range is.Inventories {
		has[one.ResourceClass] = inventory{one.Total, one.Reserved, one.MinUnit,
			one.MaxUnit, one.StepSize, one.AllocationRatio}
	}
	if !maps.Equal(p.inventories, has) {
		input.Inventories, isChanged = optional.Value(p.inventoryInputs()), true
	}
	if !slices.Equal(p.traits, slices.Sorted(slices.Values(is.Traits))) {
		input.Traits, isChanged = optional.Value(p.traits), true
	}
	if !slices.Equal(p.aggregates, slices.Sorted(slices.Values(is.Aggregates))) {
		input.Aggregates, isChanged = optional.Value(p.aggregates), true
	}
	if !isChanged {
		return nil
	}
	return input
}

// absentProviders returns the stored providers that are in the trees of the
// cloud's hosts but not among providers, sorted by uuid. present is the number
// of all stored providers in these trees. The root of a host's tree has the
// host's uuid; another provider that a person linked to the host is not one.
func absentProviders(providers []provider, stored map[string]*client.Provider,
	hosts map[string]linked) (absent []*client.Provider, present int) {
	roots := map[string]bool{}
	for uuid, one := range hosts {
		roots[uuid] = one.provider == uuid
	}
	there := lists.Set(providers, func(one provider) string { return one.uuid })
	for _, one := range stored {
		if !roots[one.Root.Uuid] {
			continue
		}
		if present++; !there[one.Uuid] {
			absent = append(absent, one)
		}
	}
	slices.SortFunc(absent, func(a, b *client.Provider) int { return cmp.Compare(a.Uuid, b.Uuid) })
	return absent, present
}

// deleteProviders deletes the absent providers, unless they exceed the limits.
// A provider that exists after all, or has allocations or children, stays.
// present is the number of stored providers, including absent ones.
func (p *Pass) deleteProviders(ctx context.Context, providers []provider, stored map[string]*client.Provider,
	absent []*client.Provider, present int, result *Result) error {
	if result.SyncCounts.Absent = len(absent); p.refuses(result, present) {
		for _, one := range absent {
			result.note(origin.Refused, one.Uuid, one.Name)
		}
		return nil
	}
	return p.deleteAbsent(ctx, absent, childrenOf(stored, providers), result)
}

// childrenOf returns the number of children of each provider once the cloud's
// providers are written.
func childrenOf(stored map[string]*client.Provider, providers []provider) map[string]int {
	children, isMoved := map[string]int{}, map[string]bool{}
	for _, one := range providers {
		children[one.parent]++
		isMoved[one.uuid] = true
	}
	for _, one := range stored {
		if one.Parent != nil && !isMoved[one.Uuid] {
			children[one.Parent.Uuid]++
		}
	}
	return children
}

// deleteAbsent deletes the absent providers that Placement still does not have,
// children before parents. It counts the ones in use as refused. left has the
// number of children of each provider, and shrinks with each deletion.
func (p *Pass) deleteAbsent(ctx context.Context, absent []*client.Provider, left map[string]int, result *Result) error {
	service, err := p.Cloud.serviceOf(ctx, p.Kind)
	if err != nil {
		return err
	}
	children := map[string]int{}
	for _, one := range absent {
		if one.Parent != nil {
			children[one.Parent.Uuid]++
		}
	}
	for len(absent) > 0 {
		i := slices.IndexFunc(absent, func(one *client.Provider) bool { return children[one.Uuid] == 0 })
		if i < 0 {
			return nil // impossible in a forest
		}
		one := absent[i]
		absent = slices.Delete(absent, i, i+1)
		if one.Parent != nil {
			children[one.Parent.Uuid]--
		}
		_, err := get(ctx, service, service.ServiceURL("resource_providers", one.Uuid), "uuid")
		if !gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
			if err != nil {
				return err
			}
			continue // it exists again
		}
		err = p.deleteProvider(ctx, one, left)
		switch client.Code(err) {
		case client.InUse:
			result.Refused++
			result.note(origin.Absent, one.Uuid, one.Name)
		case client.NotFound:
		default:
			if err != nil {
				return err
			}
			result.Deleted++
			result.note(origin.Deleted, one.Uuid, one.Name)
			if one.Parent != nil {
				left[one.Parent.Uuid]--
			}
		}
	}
	return nil
}

// deleteProvider deletes a provider. In a dry run it deletes nothing, but
// returns the error InUse for a provider with allocations or children. children
// has the number of children of each provider.
func (p *Pass) deleteProvider(ctx context.Context, one *client.Provider, children map[string]int) error {
	if !p.DryRun {
		_, err := client.DeleteResourceProvider(ctx, p.Server, &client.DeleteResourceProviderInput{Provider: one.Uuid})
		return err
	}
	if children[one.Uuid] > 0 ||
		slices.ContainsFunc(one.Inventories, func(of *client.Inventory) bool { return of.Used > 0 }) {
		return &client.Errors{List: []*client.Error{{Code: client.InUse}}}
	}
	return nil
}
