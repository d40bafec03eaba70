package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/cadastre-dev/cadastre/bench/local"
	"github.com/cadastre-dev/cadastre/defaults"
)

// definitions are definition files of one origin.
type definitions struct {
	origin string // empty for files that belong to no bundle
	texts  []string
}

// minNamespaces is the smallest number of namespaces of a world.
const minNamespaces = 33

// readDefinitions returns the built-in definitions and those in a folder. If
// the name of the folder is empty, it adds generated definitions instead.
func readDefinitions(folder string) ([]definitions, error) {
	all := []definitions{{origin: "cadastre", texts: defaults.Definitions()}}
	if folder == "" {
		return append(all, generatedDefinitions(minNamespaces-len(all[0].texts))), nil
	}
	paths, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no *.json file in %s", folder)
	}
	var own definitions
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, text); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		own.texts = append(own.texts, compact.String())
	}
	return append(all, own), nil
}

// generatedDefinitions returns definition files of a usual size.
func generatedDefinitions(count int) (more definitions) {
	for i := range count {
		properties := object{}
		for j := range 4 + i%8 {
			properties[fmt.Sprintf("bench_%02d_%02d", i, j)] = object{
				"title":       fmt.Sprintf("Property %d of %d", j, i),
				"description": "What a service reads from an image when it places or starts an instance.",
				"type":        "string", "enum": []string{"first", "second", fmt.Sprint("number ", j)},
				"default": "first",
			}
		}
		text, err := json.Marshal(object{
			"namespace":    fmt.Sprintf("Bench::%02d", i),
			"display_name": fmt.Sprintf("Bench %02d", i), "visibility": "public",
			"description": "Definitions of the benchmark.",
			"resource_type_associations": []object{{"name": "OS::Glance::Image", "prefix": "hw_"},
				{"name": "OS::Nova::Flavor", "prefix": "hw:"}},
			"properties": properties,
			"objects": []object{{"name": "Group", "description": "What belongs together.", "required": []string{"kind"},
				"properties": object{"kind": object{"title": "Kind", "type": "string"}}}},
			"tags": []object{{"name": fmt.Sprintf("bench-%02d", i)}, {"name": "tested"}},
		})
		if err != nil {
			panic(err) // strings and lists
		}
		more.texts = append(more.texts, string(text))
	}
	return more
}

// Sizes of the requests that load a world. A request must stay below the
// default limits of a server.
const (
	importedAtOnce = 10
	createdAtOnce  = 500
	claimedAtOnce  = 200
)

// load writes the world into an empty server, many objects in each transaction.
func (w *world) load(ctx context.Context, c *local.Client) error {
	for _, d := range w.definitions {
		for texts := range slices.Chunk(d.texts, importedAtOnce) {
			if err := importDefinitions(ctx, c, d.origin, texts); err != nil {
				return err
			}
		}
	}
	for _, trait := range w.traits {
		if err := c.Ask(ctx, local.Mutation("createTrait", trait), nil); err != nil {
			return err
		}
	}
	if err := c.InChunks(ctx, "createResources", "items", w.resources, createdAtOnce); err != nil {
		return err
	}
	var created [maxDepth][]object // by depth: a parent is created before its children
	var consumers []object
	for _, p := range w.providers {
		created[p.depth] = append(created[p.depth], p.input())
		consumers = append(consumers, p.consumers...)
	}
	for _, inputs := range created {
		if err := c.InChunks(ctx, "createResourceProviders", "items", inputs, createdAtOnce); err != nil {
			return err
		}
	}
	return c.InChunks(ctx, "setAllocations", "consumers", consumers, claimedAtOnce)
}

// importDefinitions imports definition files. All of them must be new.
func importDefinitions(ctx context.Context, c *local.Client, origin string, texts []string) error {
	input := object{"documents": texts}
	if origin != "" {
		input["origin"] = origin
	}
	var answer struct {
		ImportNamespaces struct {
			Reports []struct {
				Namespace, Outcome string
				Errors             []string
			}
		}
	}
	const document = `mutation($input: ImportNamespacesInput!) { importNamespaces(input: $input) { reports { namespace outcome errors } } }`
	if err := c.Ask(ctx, local.Request{Query: document, Variables: object{"input": input}}, &answer); err != nil {
		return err
	}
	for _, report := range answer.ImportNamespaces.Reports {
		if report.Outcome != "CREATED" {
			return fmt.Errorf("import of namespace %q: %s %q", report.Namespace, report.Outcome, report.Errors)
		}
	}
	return nil
}

// input returns the input that creates a provider with everything but consumers.
func (p provider) input() object {
	one := object{"uuid": p.uuid, "name": p.name, "inventories": p.inventories}
	if p.traits != nil {
		one["traits"] = p.traits
	}
	if p.aggregates != nil {
		one["aggregates"] = p.aggregates
	}
	if p.resource != "" {
		one["resource"] = p.resource
	}
	if p.parent != "" {
		one["parent"] = p.parent
	}
	return one
}
