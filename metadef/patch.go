package metadef

import (
	"cmp"
	"slices"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef/internal/jsonvalue"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// Schema returns the schema of a new property, with its keywords in the order
// of the keyword table, and all problems, at paths below path. Problems of the
// name are among them (`input.properties[2].name`).
func (p PropertyInput) Schema(path string) (PropertySchema, problem.Problems) {
	var problems problem.Problems
	text.CheckName(&problems, problem.Join(path, "name"), p.Name)
	keywords, unwritten := p.write("{}", path)
	schema, _, found := ParsePropertySchema(keywords, p.Name, path, p.Level)
	return schema, slices.Concat(problems, unwritten, found)
}

// Apply returns a stored definition as the patch changes it, and the problems
// of the result. Keywords that the patch does not name, or that have no field
// in the API, stay. New keywords are placed in the order of the keyword table.
// Problems that the stored definition has, such as from a file, do not count
// unless the patch sets their field.
func (p PropertyPatch) Apply(current PropertySchema, path string) (PropertySchema, problem.Problems) {
	keywords, unwritten := p.write(current.Keywords, path)
	schema, _, problems := ParsePropertySchema(keywords, "", path, p.Level)
	_, _, before := ParsePropertySchema(current.Keywords, "", path, p.Level)
	problems = slices.DeleteFunc(problems, func(one problem.Problem) bool {
		return slices.Contains(before, one) && !p.sets(one.Field, path)
	})
	return schema, slices.Concat(unwritten, problems)
}

// sets reports whether the patch sets the field at a path, or a field that
// contains the path.
func (p PropertyPatch) sets(field, path string) bool {
	for _, k := range propertyKeywords.walk(path) {
		if k.setBy != nil && isBelow(field, problem.Join(path, k.inAPI())) {
			_, set, _ := k.setBy(&p).json()
			return set
		}
	}
	return false
}

// write writes the patch into the JSON of a definition. It adds a problem for a
// value that is not JSON and leaves it out, so that the rest can still be
// checked.
func (p PropertyPatch) write(keywords text.JSON, path string) (text.JSON, problem.Problems) {
	var problems problem.Problems
	if p.All != "" {
		return p.All, problems
	}
	members, _ := propertyKeywords.write(jsonvalue.Of(keywords).Members, &p, path, &problems)
	return jsonvalue.Map(members), problems
}

// write applies a patch to the members of a map of keywords, and reports
// whether the patch sets any of them.
func (t keywordTable) write(members []jsonvalue.Member, patch *PropertyPatch, path string,
	problems *problem.Problems) (written []jsonvalue.Member, set bool) {
	written = slices.Clone(members)
	for _, k := range t {
		var value text.JSON
		var sets bool
		var err error
		switch {
		case k.members != nil:
			var inner []jsonvalue.Member
			current, _ := jsonvalue.Value{Members: written}.Member(k.word)
			if inner, sets = k.members.write(current.Members, patch, path, problems); len(inner) > 0 {
				value = jsonvalue.Map(inner)
			}
		case k.setBy != nil:
			value, sets, err = k.setBy(patch).json()
		}
		if err != nil {
			problems.Add(problem.Join(path, k.inAPI()), "is not JSON")
		} else if sets {
			written, set = t.with(written, k, value), true
		}
	}
	return written, set
}

// with returns members with a keyword set. An existing keyword keeps its
// position; a new one is placed by the order of the table. An empty value
// removes it.
func (t keywordTable) with(members []jsonvalue.Member, k keyword, value text.JSON) []jsonvalue.Member {
	if k.shape.write != nil {
		value = k.shape.write(value)
	}
	member := jsonvalue.MemberOf(k.word, value)
	i := slices.IndexFunc(members, func(m jsonvalue.Member) bool { return m.Key == k.word })
	switch {
	case value == "" && i >= 0:
		return slices.Delete(members, i, i+1)
	case value == "":
		return members
	case i >= 0:
		members[i] = member
		return members
	}
	at := slices.IndexFunc(members, func(m jsonvalue.Member) bool { return t.index(m.Key) > t.index(k.word) })
	if at < 0 {
		at = len(members)
	}
	return slices.Insert(members, at, member)
}

// Document returns the document of a new namespace and all problems, at paths
// below path (`input.properties[2].enum[1]`).
func (n NamespaceInput) Document(path string) (*Document, problem.Problems) {
	c := checker{level: Strict}
	document := &Document{Name: n.Name}
	n.setOn(document)
	c.validateName(n.Name, problem.Join(path, "name"))
	c.validateFields(document, path)
	document.Properties = c.propertiesOf(n.Properties, problem.Join(path, "properties"))
	document.Objects = c.objectsOf(n.Objects, problem.Join(path, "objects"))
	document.Tags = c.tagsOf(n.Tags, nil, problem.Join(path, "tags"))
	if at := problem.Join(path, "resourceTypeAssociations"); c.few(len(n.ResourceTypeAssociations), at) {
		document.Associations = n.ResourceTypeAssociations
		c.validateAssociations(document.Associations, pathsOf(at, len(document.Associations)))
	}
	return document, c.found
}

// Apply changes the fields of a namespace itself. Fields that the change does
// not name stay.
func (n NamespaceChange) Apply(current *Document, path string) (*Document, problem.Problems) {
	c := checker{level: Strict}
	changed, given := *current, &Document{}
	changed.Name = RenamedAs(&c.found, problem.Join(path, "newName"), current.Name, n.NewName)
	n.setOn(&changed)
	n.setOn(given)
	c.validateFields(given, path)
	if n.Owner.Set && n.Owner.Value == nil {
		c.problem(problem.Join(path, "owner"), "must not be null")
		changed.Owner = current.Owner
	}
	return &changed, c.found
}

// setOn sets the fields that the patch names.
func (p NamespacePatch) setOn(to *Document) {
	if p.DisplayName.Set {
		if to.DisplayName = p.DisplayName.Value; text.OrEmpty(to.DisplayName) == "" {
			to.DisplayName = nil
		}
	}
	if p.Description.Set {
		to.Description = p.Description.Value
	}
	if p.Visibility.Set {
		to.Visibility = cmp.Or(p.Visibility.Value, new(access.Private))
	}
	if p.Protected.Set {
		to.Protected = cmp.Or(p.Protected.Value, new(false))
	}
	if p.Owner.Set {
		to.Owner = p.Owner.Value
	}
}

// Object returns the new object and all of its problems.
func (o ObjectInput) Object(path string) (DocumentObject, problem.Problems) {
	c := checker{level: o.Level}
	object := c.objectOf(o, path)
	return object, c.found
}

// Apply changes an object and keeps the fields that the change does not name.
func (o ObjectChange) Apply(current DocumentObject, path string) (DocumentObject, problem.Problems) {
	c := checker{level: o.Level}
	current.Name = RenamedAs(&c.found, problem.Join(path, "newName"), current.Name, o.NewName)
	object := o.applyTo(current, path, &c)
	return object, c.found
}

// applyTo changes an object. Required names must be properties of the changed
// object.
func (p ObjectPatch) applyTo(object DocumentObject, path string, c *checker) DocumentObject {
	if p.Description.Set {
		object.Description = p.Description.Value
		c.validateText(object.Description, problem.Join(path, "description"), 0, MaxDefinition)
	}
	if p.Properties.Set {
		object.Properties = c.propertiesOf(p.Properties.Value, problem.Join(path, "properties"))
	}
	switch {
	case p.Required.Set:
		at := problem.Join(path, "required")
		object.Required = c.requiredNames(p.Required.Value, func(i int) string {
			return problem.Index(at, i)
		}, object.Properties)
	case p.Properties.Set:
		object.Required = c.requiredNames(object.Required, func(int) string {
			return problem.Join(path, "properties")
		}, object.Properties)
	}
	return object
}

// Patch returns the change that gives a property the keywords of the schema,
// verbatim, and no others. The result is checked as files are.
func (s PropertySchema) Patch() PropertyPatch { return PropertyPatch{Level: Lenient, All: s.Keywords} }

// Input returns the property as a new one.
func (p DocumentProperty) Input() PropertyInput {
	return PropertyInput{Name: p.Name, PropertyPatch: p.Patch()}
}

// Patch returns the change that makes an object equal to o, except for its
// name.
func (o DocumentObject) Patch() ObjectPatch {
	return ObjectPatch{
		Description: Change[*string]{true, o.Description},
		Required:    Change[[]string]{true, o.Required},
		Properties:  Change[[]PropertyInput]{true, lists.Map(o.Properties, DocumentProperty.Input)},
		Level:       Lenient,
	}
}
