package metadef

import (
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// CheckTags checks the tags of a request: names, each once whatever its case,
// and parents that are among them or among the tags that exist already (nil
// where they are to be replaced). It returns the tags with each parent spelled
// as that tag is. Problems have paths below path (`input.tags[1].parent`).
func CheckTags(inputs []TagInput, existing []string, path string) ([]DocumentTag, problem.Problems) {
	c := checker{mode: Strict}
	tags := c.newTags(inputs, existing, path)
	return tags, c.problems
}

func (c *checker) newTags(inputs []TagInput, existing []string, path string) []DocumentTag {
	if !c.few(len(inputs), path) {
		return nil
	}
	var tags []DocumentTag
	for i, input := range inputs {
		c.text(input.Parent, problem.Join(problem.Index(path, i), "parent"), 1, text.MaxName)
		tags = append(tags, DocumentTag{input.Name, textOf(input.Parent)})
	}
	return c.tags(tags, pathsOf(path, len(tags)), existing)
}

// MakesTagCycle tells whether a tag would become its own ancestor with that
// parent; parents has the parent of every tag of the namespace that has one.
func MakesTagCycle(parents map[int64]int64, tag, parent int64) bool {
	for steps := 0; parent != 0 && steps <= len(parents); steps++ {
		if parent == tag {
			return true
		}
		parent = parents[parent]
	}
	return parent != 0
}

// DescendantsOf are the tags of a list that are below a tag, at any depth, in
// their order.
func DescendantsOf(tag *Tag, tags []*Tag) []*Tag {
	below := map[int64]bool{tag.ID: true}
	for grown := true; grown; {
		grown = false
		for _, other := range tags {
			if other.ParentID != 0 && below[other.ParentID] && !below[other.ID] {
				below[other.ID], grown = true, true
			}
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

// tags checks a list of tags and returns them with each parent spelled as that
// tag is.
func (c *checker) tags(tags []DocumentTag, paths []string, existing []string) []DocumentTag {
	spelled := map[string]string{} // by folded name
	for _, name := range existing {
		spelled[text.Fold(name)] = name
	}
	own := map[string]int{} // by folded name
	for i, tag := range tags {
		at := problem.Join(paths[i], "name")
		text.CheckName(&c.problems, at, tag.Name)
		key := text.Fold(tag.Name)
		if _, repeated := own[key]; repeated {
			c.problem(at, "there is another tag named %s; case makes no difference", Shorten(tag.Name))
			continue
		}
		own[key], spelled[key] = i, tag.Name
	}
	for i, tag := range tags {
		if tag.Parent == "" {
			continue
		}
		name, known := spelled[text.Fold(tag.Parent)]
		if !known {
			c.problem(problem.Join(paths[i], "parent"), "%s is not a tag of the namespace", Shorten(tag.Parent))
			continue
		}
		tags[i].Parent = name
	}
	for _, i := range tagsInCycles(tags, own) {
		c.problem(problem.Join(paths[i], "parent"), "makes %s its own ancestor", Shorten(tags[i].Name))
	}
	return tags
}

// tagsInCycles gives the tags that are among their own ancestors.
func tagsInCycles(tags []DocumentTag, own map[string]int) []int {
	parents := make([]int, len(tags))
	for i, tag := range tags {
		parent, known := own[text.Fold(tag.Parent)]
		if !known || tag.Parent == "" {
			parent = -1
		}
		parents[i] = parent
	}
	var cycles []int
	for i := range tags {
		parent := parents[i]
		for steps := 0; parent >= 0 && parent != i && steps < len(tags); steps++ {
			parent = parents[parent]
		}
		if parent == i {
			cycles = append(cycles, i)
		}
	}
	return cycles
}
