package metadef

import (
	"bytes"
	"encoding/json"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef/internal/jsonvalue"
	"github.com/cadastre-dev/cadastre/text"
)

// Text returns the definition file of the document, indented by four spaces,
// with a newline at the end. The keys of each map are in a fixed order. Lists
// and properties keep the document's order. The keywords of properties are
// verbatim. Equal documents have equal files, and parsing the file returns the
// document again.
func (d *Document) Text() string {
	var text bytes.Buffer
	if err := json.Indent(&text, []byte(d.compact()), "", "    "); err != nil {
		return ""
	}
	text.WriteByte('\n')
	return text.String()
}

// MaxExport is the maximum number of bytes of definitions that exportNamespaces
// returns. Definitions of that size fit into an answer even if every byte is
// escaped.
const MaxExport = 8 << 20

// Portable returns the document without its owner, whom other clouds do not
// know. An import makes the importer's project the owner of a new namespace,
// and keeps the owner of an existing one.
func (d *Document) Portable() *Document {
	portable := *d
	portable.Owner = nil
	return &portable
}

// compact returns the file without white space.
func (d *Document) compact() text.JSON {
	return jsonvalue.MapOf(
		"namespace", jsonvalue.Quote(d.Name),
		"display_name", jsonvalue.Text(d.DisplayName),
		"description", jsonvalue.Text(d.Description),
		"visibility", visibilityText(d.Visibility),
		"protected", jsonvalue.Boolean(d.Protected),
		"owner", jsonvalue.Text(d.Owner),
		"resource_type_associations", jsonvalue.ListOf(d.Associations, DocumentAssociation.compact),
		"properties", compactProperties(d.Properties),
		"objects", jsonvalue.ListOf(d.Objects, DocumentObject.compact),
		"tags", jsonvalue.ListOf(d.Tags, DocumentTag.compact))
}

func compactProperties(properties []DocumentProperty) text.JSON {
	if len(properties) == 0 {
		return ""
	}
	members := lists.Map(properties, func(p DocumentProperty) jsonvalue.Member {
		return jsonvalue.MemberOf(p.Name, p.Keywords)
	})
	return jsonvalue.Map(members)
}

func (a DocumentAssociation) compact() text.JSON {
	return jsonvalue.MapOf("name", jsonvalue.Quote(a.ResourceType), "prefix", jsonvalue.Text(a.Prefix),
		"properties_target", jsonvalue.Text(a.PropertiesTarget))
}

func (o DocumentObject) compact() text.JSON {
	return jsonvalue.MapOf("name", jsonvalue.Quote(o.Name), "description", jsonvalue.Text(o.Description),
		"required", jsonvalue.ListOf(o.Required, jsonvalue.Quote), "properties", compactProperties(o.Properties))
}

func (t DocumentTag) compact() text.JSON {
	if t.Parent == "" {
		return jsonvalue.MapOf("name", jsonvalue.Quote(t.Name))
	}
	return jsonvalue.MapOf("name", jsonvalue.Quote(t.Name), "parent", jsonvalue.Quote(t.Parent))
}
