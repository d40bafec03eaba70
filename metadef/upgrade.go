package metadef

import (
	"cmp"
	"slices"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef/internal/jsonvalue"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// PlanUpgrade plans the upgrade of a namespace to a newer shipped document of
// its bundle. base is the document that was last loaded. PlanUpgrade compares
// both sides with it, field by field and keyword by keyword. It applies changes
// that only one side made, and keeps the local value if both sides changed it
// differently. Warnings report every local edit that keeps the namespace from
// equaling the shipped document. Edits have the three values of each.
func PlanUpgrade(base, local, shipped *Document) ImportPlan {
	return (&checker{level: Lenient}).planUpgrade(base, local, shipped)
}

// PlanFollow is PlanUpgrade for a bundle that owns its values. The bundle's
// values replace local edits, and a local deletion is undone. Local additions
// stay, and so do locally edited definitions that the bundle drops.
func PlanFollow(base, local, shipped *Document) ImportPlan {
	return (&checker{level: Lenient, prefersShipped: true}).planUpgrade(base, local, shipped)
}

func (c *checker) planUpgrade(base, local, shipped *Document) ImportPlan {
	known, fresh := withAccessOf(local, base), withAccessOf(local, shipped)
	result := &Document{
		Name: local.Name,
		DisplayName: pick(c, "$.display_name", base.DisplayName, local.DisplayName,
			shipped.DisplayName, jsonvalue.Text),
		Description: pick(c, "$.description", base.Description, local.Description, shipped.Description, jsonvalue.Text),
		Visibility:  pick(c, "$.visibility", known.Visibility, local.Visibility, fresh.Visibility, visibilityText),
		Protected:   pick(c, "$.protected", known.Protected, local.Protected, fresh.Protected, jsonvalue.Boolean),
		Owner:       pick(c, "$.owner", known.Owner, local.Owner, fresh.Owner, jsonvalue.Text),
		Associations: parts[DocumentAssociation]{DocumentAssociation.label, DocumentAssociation.compact, nil}.
			upgrade(c, "$.resource_type_associations", base.Associations, local.Associations, shipped.Associations),
		Properties: propertyParts.upgrade(c, "$.properties", base.Properties, local.Properties, shipped.Properties),
		Objects: parts[DocumentObject]{objectName, DocumentObject.compact, upgradeObject}.
			upgrade(c, "$.objects", base.Objects, local.Objects, shipped.Objects),
		Tags: parts[DocumentTag]{tagKey, DocumentTag.compact, nil}.upgrade(c, "$.tags",
			base.Tags, local.Tags, shipped.Tags),
	}
	c.removeLostParents(result.Tags)
	plan := planChange(local, result)
	plan.Warnings = append(plan.Warnings, c.warned...)
	plan.Edits = c.edited
	return plan
}

// maxEdits is the maximum number of edits that one plan lists.
const maxEdits = 1000

// edit notes a local edit and warns of it. Values that do not exist are "".
func (c *checker) edit(path string, base, here, shipped text.JSON, format string, args ...any) {
	c.warn(path, format, args...)
	c.note(ImportEdit{Path: path, Base: base, Here: here, Shipped: shipped})
}

func (c *checker) note(edits ...ImportEdit) {
	c.edited = append(c.edited, edits[:min(len(edits), maxEdits-len(c.edited))]...)
}

// pick returns the shipped value if the local one was not edited, or if the
// checker prefers shipped values and there is one. Otherwise it returns the
// local one, with a warning if the shipped one differs.
func pick[T any](c *checker, path string, base, local, shipped T, write func(T) text.JSON) T {
	was, here, now := write(base), write(local), write(shipped)
	switch {
	case here == now:
		return local
	case here == was, c.prefersShipped && now != "":
		return shipped
	}
	c.edit(path, was, here, now, "was edited here; the shipped value is %s", Shorten(cmp.Or(string(now), "nothing")))
	return local
}

// parts is a kind of list in a document, with functions for the name and the
// JSON of a member. combine merges three versions of a member with a local edit;
// if it is nil, pick chooses one of them.
type parts[T any] struct {
	nameOf  func(T) string
	write   func(T) text.JSON
	combine func(c *checker, path string, base, local, shipped T) T
}

var (
	propertyParts = parts[DocumentProperty]{propertyName, func(p DocumentProperty) text.JSON {
		return p.Keywords
	}, upgradeProperty}
	keywordParts = parts[jsonvalue.Member]{func(m jsonvalue.Member) string {
		return m.Key
	}, func(m jsonvalue.Member) text.JSON { return m.Value.Raw }, nil}
)

// upgrade merges three versions of a list, member by member.
func (p parts[T]) upgrade(c *checker, path string, base, local, shipped []T) []T {
	was, here, now := lists.ByKey(base, p.nameOf), lists.ByKey(local, p.nameOf), lists.ByKey(shipped, p.nameOf)
	var result []T
	for _, name := range p.orderedNames(base, local, shipped) {
		old, wasThere := was[name]
		mine, isHere := here[name]
		theirs, comes := now[name]
		at, edited := problem.Join(path, name), p.write(mine) != p.write(old)
		switch {
		case isHere && comes && (wasThere || c.prefersShipped):
			result = append(result, p.merge(c, at, old, mine, theirs))
		case isHere && wasThere && !edited: // the product has removed it
		case isHere:
			p.noteEdit(c, at, p.written(old, wasThere), p.write(mine), p.written(theirs, comes))
			result = append(result, mine)
		case wasThere && !c.prefersShipped:
			c.edit(at, p.write(old), "", p.written(theirs, comes), "was removed here; not added again")
		case comes:
			result = append(result, theirs)
		}
	}
	return result
}

// merge merges three versions of a member.
func (p parts[T]) merge(c *checker, path string, base, local, shipped T) T {
	if p.combine != nil && p.write(local) != p.write(base) {
		return p.combine(c, path, base, local, shipped)
	}
	return pick(c, path, base, local, shipped, p.write)
}

// orderedNames returns the names of local and shipped members. They are in the
// local order if that was edited, and in the shipped order otherwise.
func (p parts[T]) orderedNames(base, local, shipped []T) []string {
	localNames, shippedNames := lists.Map(local, p.nameOf), lists.Map(shipped, p.nameOf)
	if sameOrder(lists.Map(base, p.nameOf), localNames) {
		return union(shippedNames, localNames)
	}
	return union(localNames, shippedNames)
}

// written returns the JSON of a member, "" if there is none.
func (p parts[T]) written(thing T, ok bool) text.JSON {
	if !ok {
		return ""
	}
	return p.write(thing)
}

// noteEdit notes a kept local member that the base or the shipped version does
// not have.
func (p parts[T]) noteEdit(c *checker, path string, base, here, shipped text.JSON) {
	switch {
	case base != "":
		c.edit(path, base, here, shipped, "was edited here and is no longer shipped; kept")
	case shipped == "":
		c.edit(path, base, here, shipped, "was added here")
	case here != shipped:
		c.edit(path, base, here, shipped, "was added here; a different one is shipped")
	}
}

// upgradeProperty merges keywords. If the result is not a valid definition,
// such as a new type with the old local default, it keeps the whole local
// definition, or the whole shipped one if the checker prefers it.
func upgradeProperty(c *checker, path string, base, local, shipped DocumentProperty) DocumentProperty {
	members := func(p DocumentProperty) []jsonvalue.Member { return jsonvalue.Of(p.Keywords).Members }
	merged := checker{level: Lenient, prefersShipped: c.prefersShipped}
	keywords := jsonvalue.Map(keywordParts.upgrade(&merged, path, members(base), members(local), members(shipped)))
	schema, warnings, problems := ParsePropertySchema(keywords, local.Name, path, Lenient)
	_, before, _ := ParsePropertySchema(local.Keywords, local.Name, path, Lenient)
	_, after, _ := ParsePropertySchema(shipped.Keywords, shipped.Name, path, Lenient)
	isNew := func(p problem.Problem) bool { return !slices.Contains(before, p) && !slices.Contains(after, p) }
	switch fits := len(problems) == 0 && !slices.ContainsFunc(warnings, isNew); {
	case fits:
	case c.prefersShipped:
		c.warn(path, "was edited here and does not fit the shipped definition; replaced")
		return shipped
	default:
		c.edit(path, base.Keywords, local.Keywords, shipped.Keywords,
			"was edited here and does not fit the shipped definition; kept unchanged")
		return local
	}
	c.warned = append(c.warned, merged.warned...)
	c.note(merged.edited...)
	return DocumentProperty{local.Name, schema}
}

func upgradeObject(c *checker, path string, base, local, shipped DocumentObject) DocumentObject {
	object := DocumentObject{
		Name: local.Name,
		Description: pick(c, problem.Join(path, "description"), base.Description, local.Description,
			shipped.Description, jsonvalue.Text),
		Properties: propertyParts.upgrade(c, problem.Join(path, "properties"), base.Properties,
			local.Properties, shipped.Properties),
	}
	required := pick(c, problem.Join(path, "required"), base.Required, local.Required, shipped.Required, listOfTexts)
	has := lists.ByKey(object.Properties, propertyName)
	for _, name := range required {
		if _, ok := has[name]; ok {
			object.Required = append(object.Required, name)
		}
	}
	return object
}

// removeLostParents clears, with a warning, each parent that no longer exists.
func (c *checker) removeLostParents(tags []DocumentTag) {
	has := lists.ByKey(tags, tagKey)
	for i, tag := range tags {
		if _, ok := has[text.Fold(tag.Parent)]; tag.Parent != "" && !ok {
			c.warn(problem.Join("$.tags", tag.Name), "had the parent %s, which no longer exists; it now has none",
				Shorten(tag.Parent))
			tags[i].Parent = ""
		}
	}
}
