package sync

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/Khan/genqlient/graphql"
	"github.com/google/uuid"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/client/optional"
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
	// AllowGone lifts the limits of things that are gone.
	AllowGone bool
	// Progress is told how many more things were read.
	Progress func(things int)
}

// Result is what a pass did.
type Result struct {
	client.SyncCounts
	client.SyncEnd
	Seen, Unknown int
	// LeftOut are metadata that no resource can have: empty and long values.
	LeftOut []LeftOut
}

// LeftOut is a key of a thing.
type LeftOut struct{ ID, Key string }

// The limits of a page: a server accepts bodies of 1 MiB, and operations with
// 10,000 objects.
const (
	maxWritten = 500     // things
	maxObjects = 5000    // things and items of metadata
	maxText    = 1 << 18 // bytes of names and metadata
)

// fitting returns how many of the first things a page can have, at least one.
func fitting(things []Thing) int {
	objects, size := 0, 0
	for i, thing := range things {
		objects += 1 + len(thing.Metadata)
		size += len(thing.Name) + len(thing.Description)
		for key, value := range thing.Metadata {
			size += len(key) + len(value)
		}
		if i > 0 && (i == maxWritten || objects > maxObjects || size > maxText) {
			return i
		}
	}
	return len(things)
}

// endTime is the time for the end of a pass, after the context of the pass.
const endTime = 10 * time.Second

// Run runs the pass. It writes nothing before everything is read. An error, or
// the end of the context, ends the pass as one that is not complete.
func (p *Pass) Run(ctx context.Context) (Result, error) {
	var result Result
	pass := uuid.NewString()
	follow := p.Kind.follow
	if follow == nil {
		follow = (*Pass).followThings
	}
	failure := follow(p, ctx, pass, &result)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	end := &client.EndSyncInput{Origin: p.Origin, Region: p.Cloud.At.Region, Kind: p.Kind.Name, Pass: pass, Complete: failure == nil, Seen: result.Seen,
		Unknown: optional.Value(result.Unknown), AllowGone: optional.Value(p.AllowGone)}
	if failure != nil {
		end.Failure = optional.Value(shortened(failure.Error(), origin.MaxFailure))
	}
	ended, err := client.EndSync(ctx, p.Server, end)
	if err == nil {
		result.Gone, result.Refused, result.Deleted = ended.EndSync.Gone, result.Refused+ended.EndSync.Refused, result.Deleted+ended.EndSync.Deleted
	}
	return result, cmp.Or(failure, err)
}

// followThings reads things, and writes their resources.
func (p *Pass) followThings(ctx context.Context, pass string, result *Result) error {
	things, unknown, err := p.Cloud.read(ctx, p.Kind, p.Progress)
	if err != nil {
		return err
	}
	slices.SortFunc(things, func(a, b Thing) int { return cmp.Compare(a.ID, b.ID) })
	things = slices.CompactFunc(things, func(a, b Thing) bool { return a.ID == b.ID })
	result.Seen, result.Unknown = len(things), unknown
	return p.write(ctx, pass, things, result)
}

// write writes things, which are sorted, page by page. If all rows are known,
// each page says that it has everything in its range.
func (p *Pass) write(ctx context.Context, pass string, things []Thing, result *Result) error {
	after := ""
	for isFirst := true; isFirst || len(things) > 0; isFirst = false {
		rows := things[:fitting(things)]
		things = things[len(rows):]
		input := &client.SyncResourcesInput{Origin: p.Origin, Region: p.Cloud.At.Region, Kind: p.Kind.Name, Pass: pass, ResourceType: p.Kind.ResourceType,
			Resources: []*client.SyncedResourceInput{}}
		for _, thing := range rows {
			input.Resources = append(input.Resources, p.input(thing, &result.LeftOut))
		}
		if result.Unknown == 0 {
			span := client.SyncRangeInput{After: optional.Value(after)}
			if len(things) > 0 {
				after = rows[len(rows)-1].ID
				span.Through = optional.Value(after)
			}
			input.Range = optional.Value(span)
		}
		written, err := client.SyncResources(ctx, p.Server, input)
		if err != nil {
			return err
		}
		counts := written.SyncResources
		result.Created += counts.Created
		result.Updated += counts.Updated
		result.Unchanged += counts.Unchanged
		result.Returned += counts.Returned
		result.SyncCounts.Absent += counts.Absent
	}
	return nil
}

// input returns the input of a thing. It leaves out metadata that no resource
// can have, and notes the keys.
func (p *Pass) input(thing Thing, leftOut *[]LeftOut) *client.SyncedResourceInput {
	input := &client.SyncedResourceInput{ForeignId: thing.ID, Name: shortened(cmp.Or(thing.Name, thing.ID), resource.MaxName),
		Description: optional.Value(shortened(thing.Description, resource.MaxDescription)), ProjectId: cmp.Or(thing.Project, p.Project), Visibility: client.VisibilityPrivate}
	if thing.IsPublic {
		input.Visibility = client.VisibilityPublic
	}
	var items []*client.KeyValueInput
	for _, key := range slices.Sorted(maps.Keys(thing.Metadata)) {
		value := thing.Metadata[key]
		if key == "" || value == "" || utf8.RuneCountInString(key) > metadef.MaxMetadataKey || utf8.RuneCountInString(value) > metadef.MaxMetadataValue {
			*leftOut = append(*leftOut, LeftOut{thing.ID, key})
			continue
		}
		items = append(items, &client.KeyValueInput{Key: key, Value: value})
	}
	input.Metadata = optional.Value(items)
	return input
}

// shortened returns the first characters of a text.
func shortened(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit])
}
