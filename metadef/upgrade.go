package metadef

import (
	"slices"

	"github.com/cadastre-dev/cadastre/metadef/internal/jsonvalue"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// PlanUpgrade decides how a namespace that the product brought takes a newer
// shipped document. Base is the document as it was last loaded; against it both
// sides are compared, field by field and keyword by keyword. What only one side
// changed is changed, local edits are kept, and where both sides changed the
// same thing differently the local one stays. Warnings report the drift: every
// local edit that keeps the namespace from being what is shipped.
func PlanUpgrade(base, local, shipped *Document) ImportPlan {
	drift := &checker{mode: Lenient}
	result := &Document{Name: local.Name}
	result.DisplayName = pick(drift, "$.display_name", base.DisplayName, local.DisplayName, shipped.DisplayName, jsonvalue.Text)
	result.Description = pick(drift, "$.description", base.Description, local.Description, shipped.Description, jsonvalue.Text)
	known, fresh := overwrite(local, base), overwrite(local, shipped)
	result.Visibility = pick(drift, "$.visibility", known.Visibility, local.Visibility, fresh.Visibility, visibilityValue)
	result.Protected = pick(drift, "$.protected", known.Protected, local.Protected, fresh.Protected, jsonvalue.Boolean)
	result.Owner = pick(drift, "$.owner", known.Owner, local.Owner, fresh.Owner, jsonvalue.Text)
	result.Associations = threeWay(drift, "$.resource_type_associations", base.Associations, local.Associations, shipped.Associations,
		DocumentAssociation.label, DocumentAssociation.compact, nil)
	result.Properties = upgradeProperties(drift, "$.properties", base.Properties, local.Properties, shipped.Properties)
	result.Objects = threeWay(drift, "$.objects", base.Objects, local.Objects, shipped.Objects, objectName, DocumentObject.compact,
		func(path string, base, local, shipped DocumentObject) DocumentObject {
			return upgradeObject(drift, path, base, local, shipped)
		})
	result.Tags = threeWay(drift, "$.tags", base.Tags, local.Tags, shipped.Tags, tagKey, DocumentTag.compact, nil)
	result.Tags = withoutLostParents(drift, result.Tags)
	plan := planChange(local, result)
	plan.Warnings = append(plan.Warnings, drift.warnings...)
	return plan
}

// pick is one value of the three.
func pick[T any](drift *checker, path string, base, local, shipped T, text func(T) text.JSON) T {
	was, here, now := text(base), text(local), text(shipped)
	switch {
	case here == now:
		return local
	case here == was:
		return shipped
	}
	drift.warn(path, "was edited here; shipped is %s", shippedText(now))
	return local
}

func shippedText(text text.JSON) string {
	if text == "" {
		return "nothing"
	}
	return Shorten(string(text))
}

// threeWay is one list of the three. Where inner is given it makes one of three
// things that all exist and of which the local one was edited.
func threeWay[T any](drift *checker, path string, base, local, shipped []T, key func(T) string, text func(T) text.JSON,
	inner func(path string, base, local, shipped T) T) []T {
	was, here, now := byKey(base, key), byKey(local, key), byKey(shipped, key)
	localNames, shippedNames := namesOf(local, key), namesOf(shipped, key)
	names := union(localNames, shippedNames)
	if sameOrder(namesOf(base, key), localNames) {
		names = union(shippedNames, localNames)
	}
	var result []T
	for _, name := range names {
		at := problem.Join(path, name)
		old, wasThere := was[name]
		mine, isHere := here[name]
		new, comes := now[name]
		switch {
		case isHere && comes && inner != nil && wasThere && text(mine) != text(old):
			result = append(result, inner(at, old, mine, new))
		case isHere && comes && wasThere:
			result = append(result, pick(drift, at, old, mine, new, text))
		case isHere && comes:
			if text(mine) != text(new) {
				drift.warn(at, "was added here; shipped is another one")
			}
			result = append(result, mine)
		case isHere && wasThere && text(mine) == text(old):
			// Retired by the product, and not edited here.
		case isHere && wasThere:
			drift.warn(at, "was edited here and is no longer shipped; kept")
			result = append(result, mine)
		case isHere:
			drift.warn(at, "was added here")
			result = append(result, mine)
		case comes && wasThere:
			drift.warn(at, "was removed here; not added again")
		case comes:
			result = append(result, new)
		}
	}
	return result
}

func upgradeProperties(drift *checker, path string, base, local, shipped []DocumentProperty) []DocumentProperty {
	text := func(p DocumentProperty) text.JSON { return p.Keywords }
	return threeWay(drift, path, base, local, shipped, propertyName, text,
		func(path string, base, local, shipped DocumentProperty) DocumentProperty {
			return upgradeProperty(drift, path, base, local, shipped)
		})
}

// upgradeProperty merges keywords. A merge that is no sound definition, such as
// a new type with the old local default, is not made: the local definition
// stays whole.
func upgradeProperty(drift *checker, path string, base, local, shipped DocumentProperty) DocumentProperty {
	members := func(p DocumentProperty) []jsonvalue.Member {
		return jsonvalue.Of(p.Keywords).Members
	}
	merged := checker{mode: Lenient}
	keywords := jsonvalue.Map(threeWay(&merged, path, members(base), members(local), members(shipped),
		func(m jsonvalue.Member) string { return m.Key }, func(m jsonvalue.Member) text.JSON { return m.Value.Raw }, nil))
	schema, oddities, problems := ParsePropertySchema(keywords, local.Name, path, Lenient)
	_, before, _ := ParsePropertySchema(local.Keywords, local.Name, path, Lenient)
	_, after, _ := ParsePropertySchema(shipped.Keywords, shipped.Name, path, Lenient)
	newOddity := func(p problem.Problem) bool { return !slices.Contains(before, p) && !slices.Contains(after, p) }
	if len(problems) > 0 || slices.ContainsFunc(oddities, newOddity) {
		drift.warn(path, "was edited here in a way that the shipped definition does not go with; kept as it is")
		return local
	}
	drift.warnings = append(drift.warnings, merged.warnings...)
	return DocumentProperty{local.Name, schema}
}

func upgradeObject(drift *checker, path string, base, local, shipped DocumentObject) DocumentObject {
	object := DocumentObject{Name: local.Name}
	object.Description = pick(drift, problem.Join(path, "description"), base.Description, local.Description, shipped.Description, jsonvalue.Text)
	object.Properties = upgradeProperties(drift, problem.Join(path, "properties"), base.Properties, local.Properties, shipped.Properties)
	object.Required = pick(drift, problem.Join(path, "required"), base.Required, local.Required, shipped.Required, listOfTexts)
	has := byKey(object.Properties, propertyName)
	object.Required = slices.DeleteFunc(slices.Clone(object.Required), func(name string) bool {
		_, there := has[name]
		return !there
	})
	return object
}

// withoutLostParents puts tags whose parent is gone at the top.
func withoutLostParents(drift *checker, tags []DocumentTag) []DocumentTag {
	has := byKey(tags, tagKey)
	for i, tag := range tags {
		if _, there := has[text.Fold(tag.Parent)]; tag.Parent != "" && !there {
			drift.warn(problem.Join("$.tags", tag.Name), "is under %s, which is gone; it has no parent now", Shorten(tag.Parent))
			tags[i].Parent = ""
		}
	}
	return tags
}
