package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/cadastre-dev/cadastre/bench/local"
	"github.com/cadastre-dev/cadastre/defaults"
)

// minNamespaces is the smallest number of namespaces of a world.
const minNamespaces = 33

// readDefinitions returns the built-in definition files and those in a folder. If
// the name of the folder is empty, it adds generated files instead.
func readDefinitions(folder string) ([]string, error) {
	all := defaults.Definitions()
	if folder == "" {
		return append(all, generatedDefinitions(minNamespaces-len(all))...), nil
	}
	paths, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no *.json file in %s", folder)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		compact, err := json.Marshal(json.RawMessage(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, string(compact))
	}
	return all, nil
}

// generatedDefinitions returns definition files of a usual size.
func generatedDefinitions(count int) (texts []string) {
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
		texts = append(texts, string(text))
	}
	return texts
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
	for texts := range slices.Chunk(w.definitions, importedAtOnce) {
		if err := importDefinitions(ctx, c, texts); err != nil {
			return err
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
func importDefinitions(ctx context.Context, c *local.Client, texts []string) error {
	const document = `mutation($input: ImportNamespacesInput!) { importNamespaces(input: $input) { reports { namespace outcome errors } } }`
	answer, err := c.Insist(ctx, local.Operation(document, object{"input": object{"documents": texts}}), nil)
	if err == nil && bytes.Count(answer, []byte(`"outcome":"CREATED"`)) != len(texts) {
		err = fmt.Errorf("import of namespaces: %s", answer)
	}
	return err
}

// input returns the input that creates a provider with everything but consumers.
func (p provider) input() object {
	all := object{"uuid": p.uuid, "name": p.name, "inventories": p.inventories, "traits": p.traits,
		"aggregates": p.aggregates, "resource": p.resource, "parent": p.parent}
	maps.DeleteFunc(all, func(_ string, value any) bool { return reflect.ValueOf(value).IsZero() })
	return all
}
