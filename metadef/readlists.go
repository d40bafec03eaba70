package metadef

import (
	"iter"
	"slices"

	"github.com/cadastre-dev/cadastre/problem"
)

// maps are the maps of a list, each with its path; what else is in it is noted.
func (r documentReader) maps(value jsonValue, at string) iter.Seq2[string, jsonValue] {
	return func(yield func(string, jsonValue) bool) {
		if !expect(value, jsonList, at, r.findings) || !checkFew(len(value.list), at, r.findings) {
			return
		}
		for i, item := range value.list {
			if path := problem.Index(at, i); expect(item, jsonMap, path, r.findings) && !yield(path, item) {
				return
			}
		}
	}
}

func (r documentReader) tags(value jsonValue, at string) []DocumentTag {
	var tags []DocumentTag
	var paths []string
	for path, item := range r.maps(value, at) {
		var tag DocumentTag
		for _, m := range item.members {
			inner := problem.Join(path, m.key)
			switch {
			case m.repeated:
			case m.key == "name":
				tag.Name = r.text(m.value, inner)
			case m.key == "parent" && m.value.kind == jsonNull:
				r.warn(inner, "is null, which counts as absent")
			case m.key == "parent":
				tag.Parent = r.text(m.value, inner)
			default:
				r.leftOut(m.key, inner, tagKeys)
			}
		}
		if r.named(item, path) {
			tags, paths = append(tags, tag), append(paths, path)
		}
	}
	return checkTags(tags, paths, nil, r.findings)
}

func (r documentReader) associations(value jsonValue, at string) []DocumentAssociation {
	var associations []DocumentAssociation
	var paths []string
	for path, item := range r.maps(value, at) {
		var association DocumentAssociation
		for _, m := range item.members {
			inner := problem.Join(path, m.key)
			switch {
			case m.repeated:
			case m.key == "name":
				association.ResourceType = r.text(m.value, inner)
			case slices.Contains(associationKeys, m.key) && (m.value.raw == `""` || m.value.kind == jsonNull):
				r.warn(inner, "is empty, which counts as absent")
			case m.key == "prefix":
				association.Prefix = r.optionalText(m.value, inner)
			case m.key == "properties_target":
				association.PropertiesTarget = r.optionalText(m.value, inner)
			default:
				r.leftOut(m.key, inner, associationKeys)
			}
		}
		if r.named(item, path) {
			checkAssociation(association, path, r.findings)
			associations, paths = append(associations, association), append(paths, path)
		}
	}
	checkAssociationsOnce(associations, paths, r.findings)
	return associations
}
