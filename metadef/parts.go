package metadef

import (
	"slices"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef/internal/jsonvalue"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// A document that is larger than a request goes in parts. A part is a document
// of the same namespace with some of its properties, objects, tags and
// associations; what else there is stands in the first one. An object whose
// properties are in several parts is continued in the later ones: there it has
// `continued`, its name and properties.

const (
	// MaxNamespace is how many bytes a document in parts may have, without white
	// space: what a namespace has at full quotas, with as much for the descriptions
	// of objects as for properties.
	MaxNamespace = 144 << 20
	// MaxParts is how many parts a document may have.
	MaxParts = 4096
	// MaxPart is how many bytes a part has at most that SplitDocument makes: with
	// every quotation mark escaped once more, it fits into a request.
	MaxPart = 512 << 10
)

// The lists of a namespace that parts share out.
var shared = []string{"resource_type_associations", "properties", "objects", "tags"}

// SplitDocument returns the text of a document in parts of about size bytes
// each, a single definition being at least a part of its own. There are problems
// where the text is not a map with the name of a namespace, and where a
// definition is too large for any part.
func SplitDocument(input string, size int) ([]string, problem.Problems) {
	var problems problem.Problems
	value, ok := jsonvalue.Read(input, "$", &problems)
	name, named := value.Member("namespace")
	if ok && (!named || name.Kind != jsonvalue.KindText) {
		problems.Add("$.namespace", "is required")
	}
	if len(problems) > 0 {
		return nil, problems
	}
	s := &splitter{name: name.Raw, size: size, problems: &problems}
	var first []jsonvalue.Member
	for _, member := range value.Members {
		if member.Key != "namespace" && !isShared(member) {
			first = append(first, member)
			s.check(problem.Join("$", member.Key), member.Value.Raw)
		}
	}
	s.begin(first)
	for _, key := range shared {
		if member, ok := value.Member(key); ok && isShared(jsonvalue.Member{Key: key, Value: member}) {
			s.share(key, member)
		}
	}
	s.end()
	return s.parts, problems
}

// isShared reports whether a member of a namespace is one that parts share out.
func isShared(member jsonvalue.Member) bool {
	kind := jsonvalue.KindList
	if member.Key == "properties" {
		kind = jsonvalue.KindMap
	}
	return slices.Contains(shared, member.Key) && member.Value.Kind == kind
}

// splitter fills one part after the other.
type splitter struct {
	name     text.JSON
	size     int
	parts    []string
	problems *problem.Problems

	other []jsonvalue.Member // of the part that is being filled
	lists map[string][]text.JSON
	used  int
}

func (s *splitter) begin(other []jsonvalue.Member) {
	s.other, s.lists, s.used = other, map[string][]text.JSON{}, len(s.name)
	for _, member := range other {
		s.used += len(member.Key) + len(member.Value.Raw)
	}
}

// end ends a part.
func (s *splitter) end() {
	members := append([]jsonvalue.Member{jsonvalue.MemberOf("namespace", s.name)}, s.other...)
	for _, key := range shared {
		items := s.lists[key]
		switch {
		case items == nil:
		case key == "properties":
			members = append(members, jsonvalue.MemberOf(key, mapOf(items)))
		default:
			members = append(members, jsonvalue.MemberOf(key, jsonvalue.List(items)))
		}
	}
	s.parts = append(s.parts, string(jsonvalue.Map(members)))
	s.begin(nil)
}

// mapOf returns the map of members that are written already.
func mapOf(members []text.JSON) text.JSON {
	list := []byte(jsonvalue.List(members))
	list[0], list[len(list)-1] = '{', '}'
	return text.JSON(list)
}

// check adds a problem for what is too large for any part.
func (s *splitter) check(path string, item text.JSON) {
	if len(item) > MaxPart {
		s.problems.Add(path, "has %d bytes, more than the %d that fit into a request", len(item), MaxPart)
	}
}

// add puts an item of a list into the part, or into the next where it is full.
func (s *splitter) add(key, path string, item text.JSON) {
	s.check(path, item)
	if s.used+len(item) > s.size && s.used > len(s.name) {
		s.end()
	}
	s.lists[key] = append(s.lists[key], item)
	s.used += len(item) + 1
}

func (s *splitter) share(key string, value jsonvalue.Value) {
	if len(value.Members)+len(value.List) == 0 {
		s.lists[key] = []text.JSON{}
	}
	for _, property := range value.Members {
		s.add(key, problem.Join("$.properties", property.Key), property.Written())
	}
	for i, item := range value.List {
		path := problem.Index("$."+key, i)
		if key == "objects" && len(item.Raw) > s.size {
			s.shareObject(path, item)
		} else {
			s.add(key, path, item.Raw)
		}
	}
}

// shareObject puts an object into parts, and each of its properties.
func (s *splitter) shareObject(path string, object jsonvalue.Value) {
	properties, ok := object.Member("properties")
	name, named := object.Member("name")
	if !ok || !named || properties.Kind != jsonvalue.KindMap {
		s.add("objects", path, object.Raw)
		return
	}
	s.add("objects", path, jsonvalue.Map(slices.DeleteFunc(slices.Clone(object.Members), func(m jsonvalue.Member) bool { return m.Key == "properties" })))
	var some []text.JSON
	used := 0
	for i, property := range properties.Members {
		some = append(some, property.Written())
		used += len(some[len(some)-1])
		last := i == len(properties.Members)-1
		if last || used+len(properties.Members[i+1].Value.Raw) > s.size/2 {
			s.add("objects", problem.Join(path, "properties"), continuedObject(name.Raw, mapOf(some)))
			some, used = nil, 0
		}
	}
}

func continuedObject(name, properties text.JSON) text.JSON {
	return jsonvalue.MapOf("name", name, "continued", "true", "properties", properties)
}

// ContinuedText returns a part with properties of objects that parts before it
// have begun.
func ContinuedText(namespace string, objects []DocumentObject) string {
	list := jsonvalue.ListOf(objects, func(o DocumentObject) text.JSON {
		return continuedObject(jsonvalue.Quote(o.Name), compactProperties(o.Properties))
	})
	return string(jsonvalue.MapOf("namespace", jsonvalue.Quote(namespace), "objects", list))
}

// CheckPart returns the name of the namespace that a text is a part of, and what
// is wrong with it at path.
func CheckPart(input, path string) (name string, problems problem.Problems) {
	if len(input) > MaxDocument {
		problems.Add(path, "has %d bytes, at most %d are allowed", len(input), MaxDocument)
		return "", problems
	}
	value, ok := jsonvalue.Read(input, path, &problems)
	if !ok {
		return "", problems
	}
	named, _ := value.Member("namespace")
	if named.Kind != jsonvalue.KindText {
		problems.Add(path, "is not a part of a definition file: it must be a map with the name of a namespace")
		return "", problems
	}
	text.CheckName(&problems, problem.Join(path, "namespace"), named.Text)
	return named.Text, problems
}

// ParseParts reads a document in parts, as ParseDocument reads one text.
func ParseParts(parts []string) (document *Document, warnings, problems problem.Problems) {
	c := checker{level: Lenient}
	if value, ok := c.joinParts(parts); ok {
		document = c.documentOf(value, MaxNamespace)
	}
	return document, c.warned, withoutRepeats(c.found)
}

// Check adds what is wrong with a file of which some parts are there.
func (f StagedFile) Check(problems *problem.Problems, path string, there map[int]bool) {
	if f.Parts < 1 || f.Parts > MaxParts {
		problems.Add(problem.Join(path, "parts"), "must be between 1 and %d", MaxParts)
		return
	}
	if len(there) == 0 {
		problems.Add(problem.Join(path, "upload"), "no part of the upload %s is staged", f.Upload)
		return
	}
	for part := range f.Parts {
		if !there[part] {
			problems.Add(problem.Join(path, "parts"), "part %d of the upload %s is not staged, or expired", part, f.Upload)
			return
		}
	}
}

// joinParts returns the map that parts were made of.
func (c *checker) joinParts(parts []string) (jsonvalue.Value, bool) {
	j := &joiner{checker: c, at: map[string]int{}, properties: map[string]bool{}, objects: map[string]int{}}
	for i, part := range parts {
		value, ok := jsonvalue.Read(part, "$", &c.found)
		switch name, _ := value.Member("namespace"); {
		case !ok:
			return jsonvalue.Value{}, false
		case i > 0 && name.Text != j.name:
			c.problem("$.namespace", "is %s in part 0 and %s in part %d", Shorten(j.name), Shorten(name.Text), i)
			return jsonvalue.Value{}, false
		case i == 0:
			j.name = name.Text
		}
		for _, member := range value.Members {
			j.add(member, i)
		}
	}
	return j.value, len(parts) > 0
}

// joiner puts the members of parts together.
type joiner struct {
	*checker
	name       string
	value      jsonvalue.Value
	at         map[string]int  // where the members stand, by their keys
	properties map[string]bool // by name
	objects    map[string]int  // where the objects stand, by name
}

func (j *joiner) add(member jsonvalue.Member, part int) {
	j.value.Kind = jsonvalue.KindMap
	i, there := j.at[member.Key]
	if !there {
		i = len(j.value.Members)
		j.at[member.Key] = i
		begun := jsonvalue.Member{Key: member.Key, Value: member.Value}
		if isShared(member) {
			begun.Value = jsonvalue.Value{Kind: member.Value.Kind}
		}
		j.value.Members = append(j.value.Members, begun)
	}
	into := &j.value.Members[i].Value
	switch {
	case isShared(member) && into.Kind == member.Value.Kind:
		j.members(into, member.Value, "$."+member.Key, j.properties)
		for _, item := range member.Value.List {
			if member.Key == "objects" {
				j.object(into, item)
			} else {
				into.List = append(into.List, item)
			}
		}
	case there && member.Key != "namespace":
		j.problem("$."+member.Key, "appears in several parts, again in part %d", part)
	}
}

// members adds properties to others, of which the names are known.
func (j *joiner) members(into *jsonvalue.Value, more jsonvalue.Value, path string, known map[string]bool) {
	for _, property := range more.Members {
		if known[property.Key] {
			j.problem(problem.Join(path, property.Key), "appears twice")
			continue
		}
		known[property.Key] = true
		into.Members = append(into.Members, property)
	}
}

// object adds an object, or the properties of one that is continued.
func (j *joiner) object(into *jsonvalue.Value, object jsonvalue.Value) {
	name, _ := object.Member("name")
	more, has := object.Member("properties")
	i, begun := j.objects[name.Text]
	if _, continued := object.Member("continued"); !continued || !begun || more.Kind != jsonvalue.KindMap {
		j.objects[name.Text] = len(into.List)
		into.List = append(into.List, object)
		return
	}
	known := into.List[i]
	at := slices.IndexFunc(known.Members, func(m jsonvalue.Member) bool { return m.Key == "properties" })
	if at < 0 {
		into.List[i].Members = append(slices.Clip(known.Members), jsonvalue.Member{Key: "properties", Value: jsonvalue.Value{Kind: jsonvalue.KindMap}})
		at = len(known.Members)
	}
	if !has {
		return
	}
	properties := &into.List[i].Members[at].Value
	names := lists.Set(properties.Members, func(m jsonvalue.Member) string { return m.Key })
	j.members(properties, more, problem.Join(problem.Index("$.objects", i), "properties"), names)
}
