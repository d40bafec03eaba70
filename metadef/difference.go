package metadef

import (
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef/internal/jsonvalue"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// maxDifferences is the maximum number of differences that one plan lists.
const maxDifferences = 1000

// Differences returns the changes from one document to another, one per line:
// `added $.properties.x`, `removed $.tags.x`, `changed $.properties.x.default:
// 5 -> 6`. Paths use names. The order of tags and of associations does not
// count. Equal documents have no differences. After maxDifferences lines, the
// last one is `and more`.
func Differences(before, after *Document) []string {
	var d differenceList
	d.addText("$.display_name", before.DisplayName, after.DisplayName)
	d.addText("$.description", before.Description, after.Description)
	d.addValue("$.visibility", visibilityText(before.Visibility), visibilityText(after.Visibility))
	d.addValue("$.protected", jsonvalue.Boolean(before.Protected), jsonvalue.Boolean(after.Protected))
	d.addText("$.owner", before.Owner, after.Owner)
	compare(&d, "$.resource_type_associations", before.Associations, after.Associations, DocumentAssociation.label, nil)
	d.addProperties("$.properties", before.Properties, after.Properties)
	compare(&d, "$.objects", before.Objects, after.Objects, objectName, func(path string, a, b DocumentObject) {
		d.addText(problem.Join(path, "description"), a.Description, b.Description)
		d.addValue(problem.Join(path, "required"), listOfTexts(a.Required), listOfTexts(b.Required))
		d.addProperties(problem.Join(path, "properties"), a.Properties, b.Properties)
	})
	d.addOrder("$.objects", lists.Map(before.Objects, objectName), lists.Map(after.Objects, objectName))
	compare(&d, "$.tags", before.Tags, after.Tags, tagKey, func(path string, a, b DocumentTag) {
		d.addValue(problem.Join(path, "name"), jsonvalue.Quote(a.Name), jsonvalue.Quote(b.Name))
		d.addValue(problem.Join(path, "parent"), jsonvalue.Quote(a.Parent), jsonvalue.Quote(b.Parent))
	})
	return d.lines
}

func propertyName(p DocumentProperty) string { return p.Name }
func objectName(o DocumentObject) string     { return o.Name }
func tagKey(t DocumentTag) string            { return text.Fold(t.Name) }

// label returns a name for an association, made from its type, target and
// prefix. Names with a comma or a quotation mark are quoted, so that different
// associations have different labels.
func (a DocumentAssociation) label() string {
	quoted := func(name string) string {
		if strings.ContainsAny(name, `,"`) {
			return string(jsonvalue.Quote(name))
		}
		return name
	}
	text := quoted(a.ResourceType)
	if a.Prefix != nil {
		text += ", prefix " + quoted(*a.Prefix)
	}
	if a.PropertiesTarget != nil {
		text += ", target " + quoted(*a.PropertiesTarget)
	}
	return text
}

func visibilityText(visibility *access.Visibility) text.JSON {
	if visibility == nil {
		return ""
	}
	return jsonvalue.Quote(strings.ToLower(string(*visibility)))
}

type differenceList struct{ lines []string }

func (d *differenceList) add(line string) {
	switch {
	case len(d.lines) < maxDifferences:
		d.lines = append(d.lines, line)
	case len(d.lines) == maxDifferences:
		d.lines = append(d.lines, "and more")
	}
}

func (d *differenceList) addText(path string, before, after *string) {
	d.addValue(path, jsonvalue.Text(before), jsonvalue.Text(after))
}

func (d *differenceList) addValue(path string, before, after text.JSON) {
	switch {
	case before == after:
	case before == "":
		d.add("added " + path + ": " + Shorten(string(after)))
	case after == "":
		d.add("removed " + path + ": " + Shorten(string(before)))
	default:
		d.add("changed " + path + ": " + Shorten(string(before)) + " -> " + Shorten(string(after)))
	}
}

func (d *differenceList) addProperties(path string, before, after []DocumentProperty) {
	compare(d, path, before, after, propertyName, func(at string, a, b DocumentProperty) {
		if a.Keywords == b.Keywords {
			return
		}
		old, now := jsonvalue.Of(a.Keywords), jsonvalue.Of(b.Keywords)
		key := func(m jsonvalue.Member) string { return m.Key }
		for _, name := range union(lists.Map(old.Members, key), lists.Map(now.Members, key)) {
			x, _ := old.Member(name)
			y, _ := now.Member(name)
			d.addValue(problem.Join(at, name), x.Raw, y.Raw)
		}
		d.addOrder(at, lists.Map(old.Members, key), lists.Map(now.Members, key))
	})
	d.addOrder(path, lists.Map(before, propertyName), lists.Map(after, propertyName))
}

// addOrder adds a difference if the common names are in another order.
func (d *differenceList) addOrder(path string, before, after []string) {
	if !sameOrder(before, after) {
		d.add("reordered " + path)
	}
}

// compare adds the members that only one of two lists has and, if inner is not
// nil, the differences in common members.
func compare[T any](d *differenceList, path string, before, after []T,
	key func(T) string, inner func(path string, a, b T)) {
	old := lists.ByKey(before, key)
	for _, item := range after {
		at := problem.Join(path, key(item))
		if other, ok := old[key(item)]; !ok {
			d.add("added " + at)
		} else if inner != nil {
			inner(at, other, item)
		}
	}
	now := lists.ByKey(after, key)
	for _, item := range before {
		if _, ok := now[key(item)]; !ok {
			d.add("removed " + problem.Join(path, key(item)))
		}
	}
}

// union returns the names of the first list, and the ones that only the second
// list has. These come after the common name that they follow in the second.
func union(first, second []string) []string {
	has := lists.Set(first, lists.Itself)
	follows := map[string][]string{} // names only in the second list, by the name that they follow
	last := ""
	for _, name := range second {
		if has[name] {
			last = name
		} else {
			follows[last] = append(follows[last], name)
		}
	}
	// Names at the start of the second list come first; "" is no name.
	all := slices.Clone(follows[""])
	for _, name := range first {
		all = append(all, name)
		if name != "" {
			all = append(all, follows[name]...)
		}
	}
	return all
}

// sameOrder reports whether the common names of both lists are in the same
// order.
func sameOrder(first, second []string) bool {
	common := func(names, others []string) []string {
		has := lists.Set(others, lists.Itself)
		return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !has[name] })
	}
	return slices.Equal(common(first, second), common(second, first))
}
