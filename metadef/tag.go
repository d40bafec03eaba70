package metadef

import (
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// CheckTags checks the tags of a request. Names must be unique, ignoring case.
// Parents must be among the tags or the existing ones; existing is nil if the
// request replaces them. CheckTags returns the tags, with each parent spelled as
// the parent tag is. Problems have paths below path (`input.tags[1].parent`).
func CheckTags(inputs []TagInput, existing []string, path string) ([]DocumentTag, problem.Problems) {
	c := checker{level: Strict}
	tags := c.tagsOf(inputs, existing, path)
	return tags, c.found
}

func (c *checker) tagsOf(inputs []TagInput, existing []string, path string) []DocumentTag {
	if !c.few(len(inputs), path) {
		return nil
	}
	var tags []DocumentTag
	for i, input := range inputs {
		c.validateText(input.Parent, problem.Join(problem.Index(path, i), "parent"), 1, text.MaxName)
		tags = append(tags, DocumentTag{input.Name, text.OrEmpty(input.Parent)})
	}
	return c.validateTags(tags, pathsOf(path, len(tags)), existing)
}

// MakesTagCycle reports whether parent would make a tag its own ancestor.
// parents has the parents of the tags of the namespace.
func MakesTagCycle(parents map[int64]int64, tag, parent int64) bool {
	return lastAncestor(parents, tag, parent) != 0
}

// lastAncestor follows the parents of a tag and returns where it stops: at the
// zero value above the root, at the tag itself, or in a cycle of other tags.
func lastAncestor[K comparable](parents map[K]K, tag, parent K) K {
	var none K
	for steps := 0; parent != none && parent != tag && steps <= len(parents); steps++ {
		parent = parents[parent]
	}
	return parent
}

// DescendantsOf returns the tags of a list that are descendants of a tag, in
// their order.
func DescendantsOf(tag *Tag, tags []*Tag) []*Tag {
	children := map[int64][]int64{}
	for _, other := range tags {
		children[other.ParentID] = append(children[other.ParentID], other.ID)
	}
	below, next := map[int64]bool{}, children[tag.ID]
	for ; len(next) > 0; next = next[1:] {
		if !below[next[0]] {
			below[next[0]] = true
			next = append(next, children[next[0]]...)
		}
	}
	found := []*Tag{}
	for _, other := range tags {
		if other.ID != tag.ID && below[other.ID] {
			found = append(found, other)
		}
	}
	return found
}

// validateTags checks a list of tags, and returns them with each parent spelled
// as the parent tag is.
func (c *checker) validateTags(tags []DocumentTag, paths []string, existing []string) []DocumentTag {
	spelled, own := map[string]string{}, map[string]bool{} // by folded name
	for _, name := range existing {
		spelled[text.Fold(name)] = name
	}
	for i, tag := range tags {
		at, key := problem.Join(paths[i], "name"), tagKey(tag)
		c.validateName(tag.Name, at)
		if own[key] {
			c.problem(at, "another tag is named %s; case is ignored", Shorten(tag.Name))
			continue
		}
		own[key], spelled[key] = true, tag.Name
	}
	parents := map[string]string{} // by folded name
	for i, tag := range tags {
		parent := text.Fold(tag.Parent)
		if name, ok := spelled[parent]; ok {
			tags[i].Parent, parents[tagKey(tag)] = name, parent
		} else if tag.Parent != "" {
			c.problem(problem.Join(paths[i], "parent"), "%s is not a tag of the namespace", Shorten(tag.Parent))
		}
	}
	for i, tag := range tags {
		if key := tagKey(tag); key != "" && lastAncestor(parents, key, parents[key]) == key {
			c.problem(problem.Join(paths[i], "parent"), "makes %s its own ancestor", Shorten(tag.Name))
		}
	}
	return tags
}
