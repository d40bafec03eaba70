package sync

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/Khan/genqlient/graphql"
	"github.com/google/uuid"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/client/optional"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/internal/pause"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/origin"
	"github.com/cadastre-dev/cadastre/resource"
)

// Pass reads one kind of things and writes them.
type Pass struct {
	Cloud  *Cloud
	Server graphql.Client
	// Origin is the name of the cloud.
	Origin string
	Kind   Kind
	// Project owns the things that have no project.
	Project string
	// Limits bound the things that the pass may declare gone; the zero value is
	// 1,000 things and a fifth of all.
	Limits origin.Limits
	// DryRun means that the pass only returns its difference, and writes nothing.
	DryRun bool
	// Progress gets the number of things that were read since the last call. Several
	// goroutines call it.
	Progress func(things int)
	holdTime time.Duration // 0 is the default
	before   memory
	turn     origin.Turn // of a follower
}

// Result has the effects of a pass.
type Result struct {
	client.SyncCounts
	client.SyncEnd
	Seen, Unknown int
	// LeftOut are parts of things that the pass did not write, such as metadata with
	// a long key or value.
	LeftOut []LeftOut
	// Changes is the difference, with at most 1,000 absent things of each page. It
	// lacks changes of resources unless the pass is a dry run. Unlisted counts the
	// gone, refused and deleted things that are too many for it.
	Changes  []origin.Change
	Unlisted int
	kept     int // absent things, not resources, that the pass kept because of a limit
}

// Changed reports whether the pass changed a thing or found one absent.
func (r Result) Changed() bool {
	return r.Created+r.Updated+r.Returned+r.SyncCounts.Absent+r.Gone+r.Refused+r.Deleted > 0
}

// note adds a change to the difference.
func (r *Result) note(effect origin.Effect, id, name string, changed ...string) {
	r.Changes = append(r.Changes, origin.Change{Effect: effect, ForeignID: id, Name: name, Changed: changed})
}

// LeftOut is a part of a thing that the pass did not write. Key is a metadata
// key or a capability. If it is empty, Why says which part is left out, and why.
type LeftOut struct{ ID, Key, Why string }

// The limits of a page: a server accepts bodies of 1 MiB, and operations with
// 10,000 objects.
const (
	maxWritten = 500     // things
	maxObjects = 5000    // things, items of metadata and capabilities
	maxText    = 1 << 18 // bytes of names, descriptions, metadata and capabilities, or of inputs, as JSON
	maxItems   = 1000    // of the metadata of a thing, and of its capabilities
	maxThing   = 3 << 18 // bytes of the metadata and capabilities of a thing, as JSON
)

// jsonSize returns the number of bytes that strings take in a request.
func jsonSize(texts ...string) int {
	text, _ := json.Marshal(texts) // strings can be JSON
	return len(text)
}

// fitting returns how many of the first things a page can have: at least one,
// or 0 for no things.
func fitting(things []Thing) int {
	objects, size := 0, 0
	for i, thing := range things {
		objects += 1 + len(thing.Metadata) + len(thing.Capabilities)
		size += jsonSize(thing.Name, thing.Description)
		for _, items := range []map[string]string{thing.Metadata, thing.Capabilities} {
			for key, value := range items {
				size += jsonSize(key, value)
			}
		}
		if i > 0 && (i == maxWritten || objects > maxObjects || size > maxText) {
			return i
		}
	}
	return len(things)
}

// pages divides inputs into pages that fit into requests: each has at most most
// inputs.
func pages[T any](inputs []T, most int) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		first, size := 0, 0
		for i, one := range inputs {
			text, _ := json.Marshal(one) // inputs can be JSON
			if size += len(text); i > first && (i-first == most || size > maxText) {
				if !yield(inputs[first:i]) {
					return
				}
				first, size = i, len(text)
			}
		}
		if first < len(inputs) {
			yield(inputs[first:])
		}
	}
}

const (
	// endTime is the time limit of requests that outlast the context of the pass.
	endTime = 10 * time.Second
	// holdTime is the time between two requests that keep other passes away.
	// Each does so for at least 30 seconds.
	holdTime = 20 * time.Second
)

// Run runs the pass, and keeps other passes away from the kind meanwhile. It
// writes nothing before the lists are read. After an error or the end of the
// context, the pass counts as incomplete. A dry run writes nothing at all, and
// does not keep other passes away.
func (p *Pass) Run(ctx context.Context) (Result, error) {
	var result Result
	pass := uuid.NewString()
	follow := p.Kind.follow
	if follow == nil {
		follow = (*Pass).followThings
	}
	if p.DryRun {
		err := follow(p, ctx, pass, &result)
		return result, err
	}
	if err := p.hold(ctx, pass); err != nil {
		return result, err
	}
	failure := p.holding(ctx, pass, func(ctx context.Context) error { return follow(p, ctx, pass, &result) })
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	end := &client.EndSyncInput{Origin: p.Origin, Region: p.Cloud.At.Region, Kind: p.Kind.Name, Pass: pass,
		Complete: failure == nil, Seen: result.Seen,
		Unknown: optional.Value(result.Unknown), MaxGone: optional.Value(p.goneLimits().Number),
		MaxGoneShare: optional.Value(p.goneLimits().Share),
		AllowGone:    optional.Value(p.goneLimits().Allow)}
	if result.kept > 0 {
		end.Refused = optional.Value(result.kept)
	}
	if failure != nil {
		end.Failure = optional.Value(shortened(failure.Error(), origin.MaxFailure))
	}
	ended, err := client.EndSync(ctx, p.Server, end)
	if err == nil {
		result.Gone, result.Refused, result.Deleted = ended.EndSync.Gone,
			result.Refused-result.kept+ended.EndSync.Refused, result.Deleted+ended.EndSync.Deleted
	}
	if result.Refused > 0 { // a refused server that returns need not have a new time
		p.before.all = 0
	}
	return result, cmp.Or(failure, err)
}

// goneLimits returns the limits on the things that the pass may declare gone.
func (p *Pass) goneLimits() origin.Limits {
	if p.Kind.allEnd {
		return origin.Limits{Number: 1000, Share: 1, Allow: true}
	}
	if p.Limits == (origin.Limits{}) {
		return origin.Limits{Number: 1000, Share: 0.2} // the defaults of the server
	}
	return p.Limits
}

// Beyond returns the changes of a dry run that are refused because of a limit.
func (r Result) Beyond() []origin.Change {
	return slices.DeleteFunc(slices.Clone(r.Changes), func(of origin.Change) bool {
		return of.Effect != origin.Refused
	})
}

// Allow lets the pass declare as many things gone as its dry run refused.
func (p *Pass) Allow(dry Result) {
	p.Limits = origin.Limits{Number: dry.Refused, Share: 1, Allow: dry.Seen == 0}
}

// hold keeps other passes away from the kind: it sends an empty page. It
// returns a takenError if another pass is running.
func (p *Pass) hold(ctx context.Context, pass string) error {
	_, err := client.SyncResources(ctx, p.Server,
		&client.SyncResourcesInput{Origin: p.Origin, Region: p.Cloud.At.Region, Kind: p.Kind.Name, Pass: pass,
			ResourceType: p.Kind.ResourceType, Resources: []*client.SyncedResourceInput{}})
	if client.Code(err) == client.ConcurrentUpdate {
		return takenError{err}
	}
	return err
}

// takenError means that another pass is running over the kind.
type takenError struct{ error }

// Unwrap returns the error of the server.
func (e takenError) Unwrap() error { return e.error }

// holdOn is hold, but it finishes even if the context ends. Otherwise the
// request could reach the server after the end of the pass, and keep others
// away for up to a minute.
func (p *Pass) holdOn(ctx context.Context, pass string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	return p.hold(ctx, pass)
}

// holding runs a function, and keeps other passes away meanwhile. If that
// fails, it ends the context of the function. If the function then fails, too,
// holding returns the error of keeping others away instead.
func (p *Pass) holding(ctx context.Context, pass string, run func(ctx context.Context) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	var holder sync.WaitGroup
	holder.Go(func() {
		for pause.For(ctx, cmp.Or(p.holdTime, holdTime)) {
			if err := p.holdOn(ctx, pass); err != nil {
				stop(err)
			}
		}
	})
	err := run(ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	stop(nil)
	holder.Wait()
	return err
}

// changesOverlap is how far a pass reads back before the newest change that it
// has written, because a change can appear later than its time, and the clocks of
// hosts differ. A time after the beginning of the pass is of a wrong clock, and
// never the newest.
const changesOverlap = 5 * time.Minute

// followThings reads things, and writes their resources.
func (p *Pass) followThings(ctx context.Context, pass string, result *Result) error {
	began := time.Now()
	read, err := p.readThings(ctx)
	if err != nil {
		return err
	}
	things := read.things
	if err := p.addTraits(ctx, things); err != nil {
		return err
	}
	slices.SortFunc(things, func(a, b Thing) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), b.updated.Compare(a.updated))
	})
	things = slices.CompactFunc(things, func(a, b Thing) bool { return a.ID == b.ID })
	result.Seen, result.Unknown = len(things), read.unknown
	newest := p.before.newest
	var deleted []string
	for _, thing := range things {
		if thing.updated.After(newest) && thing.updated.Before(began) {
			newest = thing.updated
		}
		if thing.isDeleted {
			deleted = append(deleted, thing.ID)
		}
	}
	things = slices.DeleteFunc(things, func(thing Thing) bool { return thing.isDeleted })
	if err := p.register(ctx, things); err != nil {
		return err
	}
	err = p.write(ctx, pass, things, deleted, read.isWhole && read.unknown == 0, result)
	if err != nil || read.unknown > 0 { // the cell that is down may have older changes
		return err
	}
	p.before.runs++
	p.before.newest = newest
	if read.isWhole {
		p.before.all = result.Seen
		if read.pages < 2 || result.SyncCounts.Absent > 0 { // the next run checks whether they are still absent
			p.before.all = 0
		}
	}
	return nil
}

// reading is the things that a run read.
type reading struct {
	things  []Thing
	unknown int  // rows that the service could not read
	isWhole bool // whether these are all things
	pages   int  // number of pages with all things; 0 unless isWhole
}

// readThings reads all things, or the things that have changed since earlier
// runs. It reads all in a dry run and in every 60th run, and if no thing or at
// least half of them seem to have changed: the service may ignore the
// parameter.
func (p *Pass) readThings(ctx context.Context) (read reading, err error) {
	if p.Kind.since != "" && !p.DryRun && p.before.all > 0 && p.before.runs%rounds != 0 &&
		!p.before.newest.IsZero() {
		changes := p.Kind
		changes.lists = lists.Map(changes.lists, func(list string) string {
			return list + "&" + changes.since + "=" +
				p.before.newest.Add(-changesOverlap).UTC().Format(time.RFC3339)
		})
		read.things, read.unknown, err = p.Cloud.read(ctx, changes, p.Progress)
		if some := len(read.things); err == nil && some > 0 && 2*some < p.before.all {
			return read, nil
		}
		if err != nil && !errors.Is(err, errChanged) {
			return read, err
		}
	}
	var pages atomic.Int64
	read.isWhole = true
	read.things, read.unknown, err = p.Cloud.read(ctx, p.Kind, func(things int) { pages.Add(1); p.Progress(things) })
	read.pages = int(pages.Load())
	return read, err
}

// write writes things, sorted by id, and the ids of deleted things page by
// page, or compares them in a dry run. If isWhole, each page says that it has
// all things of its range, and the ranges cover all ids.
func (p *Pass) write(ctx context.Context, pass string, things []Thing, deleted []string, isWhole bool,
	result *Result) error {
	var end client.SyncDifference
	after := ""
	for isFirst := true; isFirst || len(things)+len(deleted) > 0; isFirst = false {
		rows, absent := things[:fitting(things)], deleted[:min(len(deleted), maxWritten)]
		things, deleted = things[len(rows):], deleted[len(absent):]
		input := &client.SyncResourcesInput{Origin: p.Origin, Region: p.Cloud.At.Region, Kind: p.Kind.Name,
			Pass: pass, ResourceType: p.Kind.ResourceType,
			Resources: []*client.SyncedResourceInput{}, Absent: optional.List(absent)}
		for _, thing := range rows {
			input.Resources = append(input.Resources, p.input(thing, &result.LeftOut))
		}
		if isWhole {
			span := client.SyncRangeInput{After: optional.Value(after)}
			if len(things) > 0 {
				after = rows[len(rows)-1].ID
				span.Through = optional.Value(after)
			}
			input.Range, isWhole = optional.Value(span), len(things) > 0
		}
		counts, err := p.send(ctx, input, &end, result)
		if err != nil {
			return err
		}
		result.Created += counts.Created
		result.Updated += counts.Updated
		result.Unchanged += counts.Unchanged
		result.Returned += counts.Returned
		result.SyncCounts.Absent += counts.Absent
	}
	if p.DryRun {
		p.endDry(end, result)
	}
	return nil
}

// send sends a page and returns its counts. In a dry run it also adds the
// numbers of the page's difference to end, and the changes to the result.
func (p *Pass) send(ctx context.Context, input *client.SyncResourcesInput, end *client.SyncDifference,
	result *Result) (counts client.SyncCounts, err error) {
	if !p.DryRun {
		written, err := client.SyncResources(ctx, p.Server, input)
		if err != nil {
			return counts, err
		}
		return *written.SyncResources, nil
	}
	input.DryRun = optional.Value(true)
	compared, err := client.CompareSync(ctx, p.Server, input)
	if err != nil {
		return counts, err
	}
	page := compared.SyncResources
	end.Present += page.Difference.Present
	end.Gone += page.Difference.Gone
	end.Deleted += page.Difference.Deleted
	for _, change := range page.Difference.Changes {
		result.note(origin.Effect(change.Effect), change.ForeignId, change.Name, change.Changed...)
	}
	return client.SyncCounts{Created: page.Created, Updated: page.Updated, Unchanged: page.Unchanged,
		Returned: page.Returned, Absent: page.Absent}, nil
}

// endDry sets the numbers of gone, refused, deleted and unlisted things of a dry
// run. If a limit is exceeded, it replaces the effect Gone by Refused.
func (p *Pass) endDry(end client.SyncDifference, result *Result) {
	reading := origin.Reading{Complete: true, Seen: result.Seen, Unknown: result.Unknown}
	result.Gone = reading.Gone(end.Present, end.Gone, p.goneLimits())
	result.Refused, result.Deleted = end.Gone-result.Gone, min(end.Deleted, origin.MaxDeleted)
	result.Unlisted = end.Gone + end.Deleted
	for i := range result.Changes {
		of := &result.Changes[i]
		if of.Effect == origin.Gone || of.Effect == origin.Deleted {
			result.Unlisted--
		}
		if of.Effect == origin.Gone && result.Refused > 0 {
			of.Effect = origin.Refused
		}
	}
}

// input returns the input of a thing. It leaves out metadata and capabilities
// that exceed the limits of resources or requests, and notes their keys.
func (p *Pass) input(thing Thing, leftOut *[]LeftOut) *client.SyncedResourceInput {
	input := &client.SyncedResourceInput{ForeignId: thing.ID,
		Name:        shortened(cmp.Or(thing.Name, thing.ID), resource.MaxName),
		Description: optional.Value(shortened(thing.Description, resource.MaxDescription)),
		ProjectId:   cmp.Or(thing.Project, p.Project), Visibility: client.VisibilityPrivate}
	if thing.IsPublic {
		input.Visibility = client.VisibilityPublic
	}
	size, asJSON := 0, 0
	items := func(all map[string]string, maxKey, maxValue int) (items []*client.KeyValueInput) {
		for _, key := range slices.Sorted(maps.Keys(all)) {
			value := all[key]
			item := jsonSize(key, value)
			if key == "" || strings.Contains(key, "\x00") || utf8.RuneCountInString(key) > maxKey ||
				utf8.RuneCountInString(value) > maxValue || len(items) == maxItems ||
				size+len(value) > maxText || asJSON+item > maxThing {
				*leftOut = append(*leftOut, LeftOut{ID: thing.ID, Key: key})
				continue
			}
			size += len(value)
			asJSON += item
			items = append(items, &client.KeyValueInput{Key: key, Value: value})
		}
		return items
	}
	input.Metadata = optional.Value(items(thing.Metadata, metadef.MaxMetadataKey, metadef.MaxSyncedValue))
	if capabilities := items(thing.Capabilities, resource.MaxCapabilityName,
		resource.MaxCapabilityValue); len(capabilities) > 0 {
		input.Capabilities = optional.Value(capabilities)
	}
	return input
}

// shortened returns the first characters of a string, at most limit.
func shortened(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit])
}
