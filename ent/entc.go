//go:build ignore

// Entc generates the data model: the migrations of every table, and a client of
// what the stores use. The client has no migrations: these need atlas, which the
// server does not link. Tests plan migrations with package migrate.
package main

import (
	"log"
	"os"
	"slices"

	"entgo.io/ent/entc"
	"entgo.io/ent/entc/gen"
	"entgo.io/ent/entc/load"
)

var (
	// Tables that hand-written SQL alone reads and writes have no client.
	withoutClient = []string{"CapacityBucket", "Change", "Inventory", "PlaceRefusal",
		"ProjectLimit", "ProviderAggregate"}
	// Tables that hand-written SQL alone writes have a client that reads.
	readOnly = []string{"Allocation", "Consumer", "IdempotencyKey", "ProviderTrait",
		"ResourceClass", "ResourceProvider", "SealingKey",
		"Trait"}
	// The client has these edges, by the tables at their ends.
	edges = map[string][]string{
		"Namespace":        {"ResourceTypeAssociation"},
		"ObjectDefinition": {"PropertyDefinition"},
		"ResourceType":     {"ResourceTypeAssociation"},
		"Capability":       {"CapabilityCount", "CapabilityValue"},
		"Resource":         {"CapabilityValue", "MetadataItem"},
	}
)

// defaults replaces ent's template that reads the defaults from the schema when the
// program starts. The server then does not link the builders of schemas: these call
// methods by name, and with such a call the linker keeps every method of every type.
const defaults = `{{ define "runtime/register" }}
import (
	"github.com/google/uuid"
	{{- range $.Nodes }}
	{{ .PackageAlias }} "{{ $.Config.Package }}/{{ .PackageDir }}"
	{{- end }}
)

// newUUID is the default of ent/schema.
func newUUID() string { return uuid.Must(uuid.NewV7()).String() }

// The init function sets the defaults of the schema.
func init() {
	{{- range $n := $.Nodes }}{{ range .Fields }}{{ if .Default }}
	{{ $n.Package }}.{{ .DefaultName }} = {{ if not .DefaultFunc }}{{ printf "%#v" .DefaultValue }}
		{{- else if eq .Name "uuid" }}newUUID{{ else }}{{ fail .Name }}{{ end }}
	{{- end }}{{ end }}{{ end }}
}
{{ end }}`

func main() {
	storage, err := gen.NewStorage("sql")
	check(err)
	config := gen.Config{Storage: storage,
		Features: []gen.Feature{gen.FeatureLock, gen.FeatureModifier, gen.FeatureExecQuery}}
	graph, err := entc.LoadGraph("./schema", &config)
	check(err)
	client, all := gen.Templates, gen.GraphTemplates
	gen.Templates, gen.GraphTemplates = nil, slices.DeleteFunc(slices.Clone(all), func(t gen.GraphTemplate) bool {
		return t.Name != "migrate" && t.Name != "schema"
	})
	storage.SchemaMode = gen.Unique | gen.Indexes | gen.Cascade | gen.Migrate
	check(graph.Gen())
	for _, node := range graph.Nodes {
		if slices.Contains(withoutClient, node.Name) {
			check(os.Remove(node.PackageDir()))
		}
	}
	gen.Templates, gen.GraphTemplates = client, all
	storage.SchemaMode &^= gen.Migrate
	graph.Config.Templates = append(graph.Config.Templates, gen.MustParse(gen.NewTemplate("defaults").Parse(defaults)))
	graph, err = gen.NewGraph(graph.Config, used(graph.Schemas)...)
	check(err)
	check(graph.Gen())
}

// used returns the schemas of the client.
func used(schemas []*load.Schema) []*load.Schema {
	schemas = slices.DeleteFunc(schemas, func(s *load.Schema) bool { return slices.Contains(withoutClient, s.Name) })
	for _, s := range schemas {
		s.View = slices.Contains(readOnly, s.Name)
		s.Edges = slices.DeleteFunc(s.Edges, func(e *load.Edge) bool {
			return !slices.Contains(edges[s.Name], e.Type) && !slices.Contains(edges[e.Type], s.Name)
		})
	}
	return schemas
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
