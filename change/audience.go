package change

import "slices"

// Audience is who sees a thing: everyone who may read its kind, or only the
// members of some projects, besides those who see all things of the kind. A nil
// Audience is that of a thing that is not there.
type Audience struct {
	Everyone bool
	Projects []string
}

// ToEveryone returns the audience of what is public.
func ToEveryone() *Audience { return &Audience{Everyone: true} }

// ToProjects returns the audience of what only some projects see.
func ToProjects(projects ...string) *Audience { return &Audience{Projects: projects} }

// has reports whether the members of a project are among an audience.
func (a *Audience) has(project string) bool {
	return a != nil && (a.Everyone || slices.Contains(a.Projects, project))
}

// hasOthers reports whether somebody is among an audience for no project of
// theirs.
func (a *Audience) hasOthers() bool { return a != nil && a.Everyone }

// Readers is for whom a row of the log is: an asterisk for everyone, an empty text
// for those who see all things of its kind, else an equals sign and a project.
type Readers string

// The readers of a row who are no project.
const (
	Everyone Readers = "*"
	Whole    Readers = ""
)

// OfProject returns the members of a project as the readers of a row.
func OfProject(project string) Readers { return Readers("=" + project) }

// Row is what the log of changes says to some readers about one change of a thing.
type Row struct {
	Readers Readers
	What    What
	// Named are the projects to which a row for everyone does not speak, and nor
	// does it to those who see all things: the same change has rows of their own
	// for those, or nothing to say to them. It is nil where a row speaks to all.
	Named []string
}

// RowsOf returns what the log says about a thing that a transaction changed, by
// its audiences before and after: at most one row for each who may read the log.
// A thing that was not changed, but may be seen by others than before, has rows
// for those alone.
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

// rowFor adds the row for readers who saw a thing before or see it after, if it
// says anything to them.
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

// projectsOf returns the projects that audiences name, sorted; it is never nil.
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

// Sight is how much of a kind of things somebody sees.
type Sight int

// The sights.
const (
	Blind     Sight = iota // nothing
	OwnAndAll              // what everyone sees, and what their project does
	AllThings              // all
)

// Reader is who reads the log.
type Reader struct {
	Project string
	Sees    map[Kind]Sight
}

// Of returns which rows of a kind speak to a reader, but for those that do not by
// their names; see Reads.
func (r Reader) Of(kind Kind) []Readers {
	switch r.Sees[kind] {
	case AllThings:
		return []Readers{Everyone, Whole}
	case OwnAndAll:
		return []Readers{Everyone, OfProject(r.Project)}
	}
	return nil
}

// Reads reports whether a row about a thing of a kind speaks to a reader.
func (r Reader) Reads(kind Kind, row Row) bool {
	if !slices.Contains(r.Of(kind), row.Readers) {
		return false
	}
	return row.Readers != Everyone || row.Named == nil || r.Sees[kind] != AllThings && !slices.Contains(row.Named, r.Project)
}
