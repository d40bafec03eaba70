package changelog

import (
	"encoding/json"
	"slices"

	"github.com/cadastre-dev/cadastre/change"
)

// Changes are the things that a transaction changes, each once, in the order of
// the first note.
type Changes struct {
	list []*notedThing
	of   map[thing]*notedThing
}

// thing identifies a thing of the API.
type thing struct{ kind, key string }

// notedThing is a thing that the transaction changed, or one with a new
// audience, with its audiences before and after.
type notedThing struct {
	thing
	changed, affected       bool
	before, after           *change.Audience
	knowsBefore, knowsAfter bool
}

// DefaultAudience returns the audience of a thing of a kind whose audiences no
// domain reads. Providers, traits and resource classes are visible to everyone
// who may read their kind. Other kinds have an empty audience.
func DefaultAudience(kind string) *change.Audience {
	switch change.Kind(kind) {
	case change.ResourceProvider, change.Trait, change.ResourceClass:
		return change.ToEveryone()
	}
	return change.ToProjects()
}

// Changed notes things that the transaction creates, changes or deletes, by
// name or uuid. Kind is a type name of the API. A caller may note a thing
// without knowing whether it changes. At its end the transaction reads the new
// audience, unless SeenBy has set it. The old audience counts as the same, or as
// DefaultAudience if the thing is gone, unless SawBefore or Was has set it.
func (c *Changes) Changed(kind string, keys ...string) {
	for _, key := range keys {
		c.at(thing{kind, key}).changed = true
	}
}

// Created is Changed for new things.
func (c *Changes) Created(kind string, keys ...string) {
	for _, key := range keys {
		c.SawBefore(kind, key, nil)
	}
	c.Changed(kind, keys...)
}

// Deleted is Changed for deleted things.
func (c *Changes) Deleted(kind string, keys ...string) {
	for _, key := range keys {
		c.SeenBy(kind, key, nil)
	}
	c.Changed(kind, keys...)
}

// SawBefore sets the audience of a thing before the transaction, nil if the
// thing did not exist. The first call wins.
func (c *Changes) SawBefore(kind, key string, audience *change.Audience) {
	if noted := c.at(thing{kind, key}); !noted.knowsBefore {
		noted.before, noted.knowsBefore = audience, true
	}
}

// SeenBy sets the audience of a thing after the transaction, nil if the thing
// is gone. The last call wins.
func (c *Changes) SeenBy(kind, key string, audience *change.Audience) {
	noted := c.at(thing{kind, key})
	noted.after, noted.knowsAfter = audience, true
}

// at returns the entry of a thing, and adds it if missing.
func (c *Changes) at(of thing) *notedThing {
	noted := c.of[of]
	if noted != nil {
		return noted
	}
	if c.of == nil {
		c.of = map[thing]*notedThing{}
	}
	noted = &notedThing{thing: of}
	c.of[of] = noted
	c.list = append(c.list, noted)
	return noted
}

// IsUnchanged reports whether no thing is noted as changed. A new audience alone
// is no change.
func (c *Changes) IsUnchanged() bool {
	return !slices.ContainsFunc(c.list, func(noted *notedThing) bool { return noted.changed })
}

// Concerns reports whether a thing of one of the kinds is noted as changed.
func (c *Changes) Concerns(kinds []string) bool {
	return slices.ContainsFunc(c.list, func(noted *notedThing) bool {
		return noted.changed && slices.Contains(kinds, noted.kind)
	})
}

// KnowsBefore reports whether the audience of a thing before the transaction is
// set.
func (c *Changes) KnowsBefore(kind, key string) bool { return c.at(thing{kind, key}).knowsBefore }

// Affected notes things that stay the same while their audience changes.
func (c *Changes) Affected(kind string, keys ...string) {
	for _, key := range keys {
		c.at(thing{kind, key}).affected = true
	}
}

// ChangedOf returns the keys of the things of a kind that were created, changed
// or deleted, in the order of the first note.
func (c *Changes) ChangedOf(kind string) (keys []string) {
	for _, noted := range c.list {
		if noted.changed && noted.kind == kind {
			keys = append(keys, noted.key)
		}
	}
	return keys
}

// Add notes the changed things of other, without their audiences.
func (c *Changes) Add(other *Changes) {
	for _, noted := range other.list {
		if noted.changed {
			c.at(noted.thing).changed = true
		}
	}
}

// Row is a row of the log of changes. A silent row has no audience: only
// in-memory copies read it.
type Row struct {
	thing
	change.Row
	silent bool
}

// Values returns the kind, key, audience, event and named readers of a row.
func (r Row) Values() []any {
	if r.silent {
		return []any{r.kind, r.key, nil, nil, nil}
	}
	var named any
	if r.Named != nil {
		named = jsonOf(r.Named)
	}
	return []any{r.kind, r.key, string(r.Readers), string(r.What), named}
}

// jsonOf returns the named projects and users of a row as JSON.
func jsonOf(named any) string {
	text, err := json.Marshal(named)
	if err != nil {
		panic(err) // strings always have JSON
	}
	return string(text)
}

// WithoutAudience returns the keys of noted things whose audience after the
// transaction is not set, by kind.
func (c *Changes) WithoutAudience() map[string][]string {
	unknown := map[string][]string{}
	for _, noted := range c.list {
		if (noted.changed || noted.affected) && !noted.knowsAfter {
			unknown[noted.kind] = append(unknown[noted.kind], noted.key)
		}
	}
	return unknown
}

// Rows returns the rows for everything noted. The audiences after the
// transaction must be set.
func (c *Changes) Rows() (rows []Row) {
	for _, noted := range c.list {
		if !noted.changed && !noted.affected {
			continue
		}
		before := noted.after
		switch {
		case noted.knowsBefore:
			before = noted.before
		case before == nil:
			before = DefaultAudience(noted.kind)
		}
		said := change.RowsOf(before, noted.after, noted.changed)
		for _, row := range said {
			rows = append(rows, Row{thing: noted.thing, Row: row})
		}
		if len(said) == 0 && noted.changed {
			rows = append(rows, Row{thing: noted.thing, silent: true})
		}
	}
	return rows
}
