// Package origin has the rules by which Cadastre follows another system: the
// resource that stands for a thing of that system, and when an absent thing is
// gone.
package origin

import (
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/text"
)

// Thing is a thing as its origin has it.
type Thing struct {
	ForeignID   string
	Name        string
	Description *string
	ProjectID   string
	Visibility  access.Visibility
	Metadata    []metadef.KeyValue
	// Capabilities are the values of its capabilities by name.
	Capabilities []metadef.KeyValue
}

// Range is the foreign ids greater than After, up to and including Through, in
// the order of code points. Nil is no bound.
type Range struct{ After, Through *string }

// Page is a page of things that a pass read. It follows `SyncResourcesInput`.
type Page struct {
	Origin, Region, Kind string
	Pass                 string // a uuid
	ResourceType         string
	Resources            []Thing
	// Range says that the page has all things of the scope in the range.
	Range *Range
	// Absent are the foreign ids of things that the other system says do not exist.
	Absent []string
	// DryRun means that the page only returns its difference.
	DryRun bool
}

// Scope returns the scope that the pass reads.
func (p Page) Scope() Scope { return Scope{p.Origin, p.Region, p.Kind} }

// IsByMembers reports whether members of projects may have written the metadata of
// the things in the other system. Only operators write flavors and volume types.
func (p Page) IsByMembers() bool {
	return p.ResourceType != "OS::Nova::Flavor" && p.ResourceType != "OS::Cinder::VolumeType"
}

// Check adds all problems of the page itself.
func (p Page) Check(problems *problem.Problems) {
	p.Scope().check(problems, "input")
	checkPass(problems, p.Pass)
	text.Check(problems, "input.resourceType", p.ResourceType, 1, text.MaxName)
	if !text.CheckCount(problems, "input.resources", len(p.Resources), maxPage) ||
		!text.CheckCount(problems, "input.absent", len(p.Absent), maxPage) {
		return
	}
	seen := map[string]bool{}
	for i, thing := range p.Resources {
		thing.check(problems, problem.Index("input.resources", i), seen)
	}
	for i, id := range p.Absent {
		at := problem.Index("input.absent", i)
		text.Check(problems, at, id, 1, maxForeignID)
		text.CheckUnique(problems, at, id, seen)
	}
}

func checkPass(problems *problem.Problems, pass string) {
	if resource.IsReservedUUID(pass) {
		problems.Add("input.pass", "must identify a pass: %s identifies nothing", pass)
	}
}

func (t Thing) check(problems *problem.Problems, path string, seen map[string]bool) {
	at := problem.Join(path, "foreignId")
	text.Check(problems, at, t.ForeignID, 1, maxForeignID)
	text.CheckUnique(problems, at, t.ForeignID, seen)
	text.Check(problems, problem.Join(path, "name"), t.Name, 1, resource.MaxName)
	text.CheckOptional(problems, problem.Join(path, "description"), t.Description, 0, resource.MaxDescription)
	text.Check(problems, problem.Join(path, "projectId"), t.ProjectID, 1, resource.MaxProject)
	access.CheckVisibility(problems, problem.Join(path, "visibility"), &t.Visibility)
	if at := problem.Join(path, "metadata"); text.CheckCount(problems, at, len(t.Metadata), maxPage) {
		keys := map[string]bool{}
		for i, item := range t.Metadata {
			at := problem.Index(at, i)
			text.Check(problems, problem.Join(at, "key"), item.Key, 1, metadef.MaxMetadataKey)
			text.CheckUnique(problems, problem.Join(at, "key"), item.Key, keys)
			text.Check(problems, problem.Join(at, "value"), item.Value, 0, metadef.MaxSyncedValue)
		}
	}
	resource.CheckCapabilities(problems, problem.Join(path, "capabilities"), t.Capabilities)
}

// Plan returns the changes that give a resource the metadata of its origin.
// current are the items of the resource, owned the keys that the origin had
// before. An item that users may change belongs to the users, unless the origin
// has its key now. byMembers is the result of Page.IsByMembers: capabilities that an
// earlier sync required as an operator are then written again.
func (t Thing) Plan(current []*resource.MetadataItem, owned []string, byMembers bool) (plan resource.MetadataPlan) {
	there := lists.ByKey(current, func(item *resource.MetadataItem) string { return item.Key })
	has := map[string]bool{}
	for _, item := range t.Metadata {
		has[item.Key] = true
		if is := there[item.Key]; is == nil {
			plan.Set = append(plan.Set, resource.MetadataItem{Key: item.Key, Value: item.Value, ByMembers: byMembers})
		} else if is.Value != item.Value || is.UserModifiable || is.DerivedFrom != 0 ||
			byMembers && is.ByOperator && strings.HasPrefix(item.Key, metadef.CapabilitiesScope) {
			changed := *is
			changed.Value, changed.UserModifiable, changed.DerivedFrom = item.Value, false, 0
			changed.ByMembers = byMembers
			plan.Set = append(plan.Set, changed)
		}
	}
	for _, key := range owned {
		if is := there[key]; is != nil && !has[key] && !is.UserModifiable {
			plan.Delete = append(plan.Delete, *is)
		}
	}
	return plan
}

// PlanCapabilities returns the capabilities of the origin that a resource lacks
// or has with other values. unset are the names in owned that the resource
// still has and the origin no longer has. current are the values of the
// resource by name, owned the names that the origin had before.
func (t Thing) PlanCapabilities(current map[string]string, owned []string) (set []metadef.KeyValue, unset []string) {
	has := map[string]bool{}
	for _, one := range t.Capabilities {
		has[one.Key] = true
		if value, ok := current[one.Key]; !ok || value != one.Value {
			set = append(set, one)
		}
	}
	for _, name := range owned {
		if _, ok := current[name]; ok && !has[name] {
			unset = append(unset, name)
		}
	}
	return set, unset
}

// Counts are the numbers of resources that a page created, changed or left as
// they were, and of things that it found absent.
type Counts struct {
	Created, Updated, Unchanged int
	// Returned counts the things that were gone or absent before. Each also counts
	// as updated or unchanged.
	Returned int
	// Absent counts the things that the page found absent.
	Absent int
	// Difference is the result of a dry run, nil for others.
	Difference *Difference
}

// End ends a pass. It follows `EndSyncInput`.
type End struct {
	Origin, Region, Kind string
	Pass                 string // a uuid
	Reading              Reading
	// Refused counts the absent things, other than resources, that the pass kept
	// because of a limit.
	Refused int
	// Failure says why the reading is not complete.
	Failure *string
	Limits  Limits
	// Delay is the time from being gone to the deletion.
	Delay time.Duration
}

// Scope returns the scope that the pass read.
func (e End) Scope() Scope { return Scope{e.Origin, e.Region, e.Kind} }

// MaxFailure is the maximum length of a failure, in code points.
const MaxFailure = 1023

// Check adds all problems of the end itself.
func (e End) Check(problems *problem.Problems) {
	e.Scope().check(problems, "input")
	checkPass(problems, e.Pass)
	text.CheckOptional(problems, "input.failure", e.Failure, 1, MaxFailure)
	for _, number := range []struct {
		field string
		value int
	}{{"seen", e.Reading.Seen}, {"unknown", e.Reading.Unknown}, {"refused", e.Refused},
		{"maxGone", e.Limits.Number}, {"deleteAfter", int(e.Delay / time.Second)}} {
		if number.value < 0 {
			problems.Add(problem.Join("input", number.field), "must not be negative")
		}
	}
	if !(e.Limits.Share >= 0 && e.Limits.Share <= 1) {
		problems.Add("input.maxGoneShare", "must be between 0 and 1")
	}
}

// Ended is the result of EndSync.
type Ended struct {
	Gone, Refused, Deleted int
}

// Origin says where a resource is from.
type Origin struct {
	Scope
	ForeignID  string
	ObservedAt time.Time
	GoneAt     *time.Time
}

// State is the state of the passes over a scope.
type State struct {
	Scope
	// Running is whether a pass has written in the last minute and has not ended.
	Running     bool
	CompletedAt *time.Time
	// Lag is the number of seconds since CompletedAt.
	Lag      *int
	FailedAt *time.Time
	Failure  *string
	// Failures is the number of passes in a row that were not complete.
	Failures int
	// Refused counts the absent things that the last complete pass kept because of a limit.
	Refused               int
	Present, Absent, Gone int
}

// Limits of a sync, in code points unless noted otherwise.
const (
	maxName      = 128  // of an origin, and of a region
	maxKind      = 64   // of a kind
	maxForeignID = 255  // of the id of a thing
	maxPage      = 1000 // things, or absent ids, of a page; metadata items of a thing
)

// Scope is one kind of things in one region of an origin. A pass reads a scope.
type Scope struct{ Origin, Region, Kind string }

func (s Scope) check(problems *problem.Problems, path string) {
	text.Check(problems, problem.Join(path, "origin"), s.Origin, 1, maxName)
	text.Check(problems, problem.Join(path, "region"), s.Region, 1, maxName)
	text.Check(problems, problem.Join(path, "kind"), s.Kind, 1, maxKind)
}

// Key returns the scope as one string, for the audit log.
func (s Scope) Key() string { return s.Origin + "/" + s.Region + "/" + s.Kind }

// identities is the namespace of the uuids that UUIDs makes.
var identities = uuid.MustParse("7c1b8ab7-3f0c-5b0e-9f0a-1d5a8e6c2f41")

// UUIDs returns the uuids that a resource for a thing may get, the preferred
// one first: the foreign id if it is a uuid, then a uuid of version 5 made of
// the scope and the foreign id.
func (s Scope) UUIDs(foreignID string) []string {
	var name strings.Builder
	for _, part := range []string{s.Origin, s.Region, s.Kind, foreignID} {
		name.WriteString(strconv.Itoa(len(part)) + ":" + part)
	}
	made := uuid.NewSHA1(identities, []byte(name.String())).String()
	if own, err := uuid.Parse(foreignID); err == nil && len(foreignID) == len(made) {
		return []string{own.String(), made}
	}
	return []string{made}
}
