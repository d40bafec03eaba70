package metadef

import (
	"slices"

	"github.com/cadastre-dev/cadastre/problem"
)

// repairProperty gives a definition from a file the form that the product
// keeps, with a warning for each repair: the key for a missing title, default
// for defaultValue, and no null or repeated name.
func repairProperty(value jsonValue, name, path string, found *findings) jsonValue {
	repaired := slices.Clone(value.members)
	_, hasDefault := value.member("default")
	changed := false
	repaired = slices.DeleteFunc(repaired, func(m jsonMember) bool {
		at := found.keywordPath(path, m.key)
		switch {
		case m.fault != "" || m.repeated || !m.value.sound():
			return false
		case m.key == "name" && m.value.text == name:
			found.warn(at, "repeats the property's key; left out")
		case m.key == "name":
			found.warn(at, "contradicts the property's key %s, which holds; left out", Shorten(name))
		case m.key == "defaultValue" && hasDefault:
			found.warn(at, "is not a keyword and default is there; left out")
		case m.key == "title" && (m.value.kind == jsonNull || m.value.kind == jsonText && m.value.text == ""):
			// The title that is added below brings the warning.
		case m.value.kind == jsonNull && m.key != "type" && keywordRank(m.key) < len(propertyKeywords):
			found.warn(at, "is null, which counts as absent; left out")
		default:
			return false
		}
		changed = true
		return true
	})
	for i, m := range repaired {
		if m.key == "defaultValue" && !m.repeated {
			found.warn(problem.Join(path, m.key), "is not a keyword; read as default")
			repaired[i].key, changed = "default", true
		}
	}
	if !slices.ContainsFunc(repaired, func(m jsonMember) bool { return m.key == "title" }) {
		found.warn(found.keywordPath(path, "title"), "is missing; the key becomes the title")
		title := jsonMember{key: "title", value: jsonValue{kind: jsonText, raw: quote(name), text: name}}
		repaired, changed = append([]jsonMember{title}, repaired...), true
	}
	if changed {
		value.members, value.raw = repaired, writeMembers(repaired)
	}
	return value
}
