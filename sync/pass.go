package sync

import (
	"cmp"
	"context"
	"maps"
	"slices"
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

// maxWritten is the number of things in a page.
const maxWritten = 500

// Run runs the pass. It writes nothing before everything is read. An error of
// reading ends the pass as one that is not complete.
func (p *Pass) Run(ctx context.Context) (Result, error) {
	var result Result
	pass := uuid.NewString()
	things, failure := p.Cloud.read(ctx, p.Kind, p.Progress)
	if failure == nil {
		things = slices.DeleteFunc(things, func(thing Thing) bool {
			if thing.IsUnknown {
				result.Unknown++
			}
			return thing.IsUnknown
		})
		slices.SortFunc(things, func(a, b Thing) int { return cmp.Compare(a.ID, b.ID) })
		things = slices.CompactFunc(things, func(a, b Thing) bool { return a.ID == b.ID })
		result.Seen = len(things)
		if err := p.write(ctx, pass, things, &result); err != nil {
			return result, err
		}
	}
	end := &client.EndSyncInput{Origin: p.Origin, Region: p.Cloud.Region, Kind: p.Kind.Name, Pass: pass, Complete: failure == nil, Seen: result.Seen,
		Unknown: optional.Value(result.Unknown), AllowGone: optional.Value(p.AllowGone)}
	if failure != nil {
		end.Failure = optional.Value(shortened(failure.Error(), origin.MaxFailure))
	}
	ended, err := client.EndSync(ctx, p.Server, end)
	if err == nil {
		result.SyncEnd = *ended.EndSync
	}
	return result, cmp.Or(failure, err)
}

// write writes things, which are sorted, page by page. If all rows are known,
// each page says that it has everything in its range.
func (p *Pass) write(ctx context.Context, pass string, things []Thing, result *Result) error {
	after := ""
	for begin := 0; begin == 0 || begin < len(things); begin += maxWritten {
		rows := things[begin:min(begin+maxWritten, len(things))]
		input := &client.SyncResourcesInput{Origin: p.Origin, Region: p.Cloud.Region, Kind: p.Kind.Name, Pass: pass, ResourceType: p.Kind.ResourceType,
			Resources: []*client.SyncedResourceInput{}}
		for _, thing := range rows {
			input.Resources = append(input.Resources, p.input(thing, &result.LeftOut))
		}
		if result.Unknown == 0 {
			span := client.SyncRangeInput{After: optional.Value(after)}
			if begin+maxWritten < len(things) {
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
