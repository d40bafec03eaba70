package change

import "slices"

// Audience is who sees an object: everyone who may read its kind, or only the
// members of some projects. Viewers who see all objects of the kind always see
// it. A nil Audience means that the object does not exist.
type Audience struct {
	Everyone bool
	Projects []string
}

// ToEveryone returns the audience of a public object.
func ToEveryone() *Audience { return &Audience{Everyone: true} }

// ToProjects returns the audience of an object that only some projects see.
func ToProjects(projects ...string) *Audience { return &Audience{Projects: projects} }

// has reports whether the members of a project belong to the audience.
func (a *Audience) has(project string) bool {
	return a != nil && (a.Everyone || slices.Contains(a.Projects, project))
}

// hasOthers reports whether members of projects outside of a.Projects belong to
// the audience.
func (a *Audience) hasOthers() bool { return a != nil && a.Everyone }

// Readers says who reads a row of the log: an asterisk for everyone, an empty
// string for viewers who see all objects of its kind, otherwise an equals sign
// and a project.
type Readers string

// The readers of a row that are not a project.
const (
	Everyone Readers = "*"
	Whole    Readers = ""
)

// OfProject returns the members of a project as the readers of a row.
func OfProject(project string) Readers { return Readers("=" + project) }

// Row tells some readers about one change of an object.
type Row struct {
	Readers Readers
	What    What
	// Named, if not nil, restricts a row whose Readers are Everyone: the row is
	// not for members of these projects, nor for viewers who see all objects. They
	// have separate rows if they see the change.
	Named []string
}

// RowsOf returns the rows for an object that a transaction changed, by its
// audiences before and after. Each reader of the log gets at most one row. If
// changed is false, only the audience of the object may have changed, and only
// viewers who gain or lose sight of the object get rows.
func RowsOf(before, after *Audience, changed bool) []Row {
	if before == nil && after == nil {
		return nil
	}
	if (before == nil || before.Everyone) && (after == nil || after.Everyone) {
		return rowFor(nil, Row{Readers: Everyone}, before != nil, after != nil, changed)
	}
	rows := rowFor(nil, Row{Readers: Whole}, before != nil, after != nil, changed)
	named := projectsOf(before, after)
	for _, project := range named {
		rows = rowFor(rows, Row{Readers: OfProject(project)}, before.has(project), after.has(project), changed)
	}
	return rowFor(rows, Row{Readers: Everyone, Named: named}, before.hasOthers(), after.hasOthers(), changed)
}

// rowFor adds a row for readers who saw an object before or see it after, if
// the change is visible to them.
func rowFor(rows []Row, row Row, before, after, changed bool) []Row {
	switch {
	case before && after && changed:
		row.What = Updated
	case before && !after:
		row.What = Deleted
	case after && !before:
		row.What = Created
	default:
		return rows
	}
	return append(rows, row)
}

// projectsOf returns the projects of audiences, sorted; it is never nil.
func projectsOf(audiences ...*Audience) []string {
	projects := []string{}
	for _, audience := range audiences {
		if audience != nil {
			projects = append(projects, audience.Projects...)
		}
	}
	slices.Sort(projects)
	return slices.Compact(projects)
}

// Sight says which objects of a kind a reader sees.
type Sight int

// The values of Sight.
const (
	Blind     Sight = iota // none
	OwnAndAll              // public objects, and objects that the reader's project sees
	AllThings              // all
)

// Reader identifies a reader of the log.
type Reader struct {
	Project string
	Sees    map[Kind]Sight
}

// Of returns the values of Row.Readers that include r, for rows about objects
// of a kind. It ignores Row.Named; see Reads.
func (r Reader) Of(kind Kind) []Readers {
	switch r.Sees[kind] {
	case AllThings:
		return []Readers{Everyone, Whole}
	case OwnAndAll:
		return []Readers{Everyone, OfProject(r.Project)}
	}
	return nil
}

// Reads reports whether a reader may see a row about an object of a kind.
func (r Reader) Reads(kind Kind, row Row) bool {
	if !slices.Contains(r.Of(kind), row.Readers) {
		return false
	}
	return row.Readers != Everyone || row.Named == nil ||
		r.Sees[kind] != AllThings && !slices.Contains(row.Named, r.Project)
}
