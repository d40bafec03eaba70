package graph_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// script has the six operations on metadata, and the creation of a resource
// with metadata.
var script = []string{
	`{ resource(uuid: "%[1]s") { metadata { key value userModifiable } } }`,
	`{ resource(uuid: "%[1]s") { metadataItem(key: "key1") { value } none: metadataItem(key: "none") { value } } }`,
	`mutation { setMetadata(input: { resource: "%[1]s", items: [{ key: "key2", value: "new" }, { key: "key.3", value: "v" }] }) { resource { revision metadata { key value } } } }`,
	`mutation { setMetadata(input: { resource: "%[1]s", items: [{ key: "key1", value: "one" }] }) { resource { revision metadata { key value } } } }`,
	`mutation { replaceMetadata(input: { resource: "%[1]s", items: [{ key: "only", value: "v" }] }) { resource { revision metadata { key value } } retained { key } } }`,
	`mutation { deleteMetadata(input: { resource: "%[1]s", keys: ["only"] }) { resource { revision metadata { key value } } } }`,
	`mutation { deleteMetadata(input: { resource: "%[1]s", keys: ["only"] }) { resource { revision } } }`,
	`mutation { deleteMetadata(input: { resource: "%[1]s", keys: ["service"] }) { resource { revision } } }`,
	`{ resources(filter: { uuids: ["%[1]s"], metadata: [{ key: "service", value: "x" }] }) { totalCount nodes { metadata { key value } } } }`,
}

// TestEveryKindTakesTheSameOperations checks that the ten share kinds and hosts
// return the same answers to the script.
func TestEveryKindTakesTheSameOperations(t *testing.T) {
	t.Parallel()
	kinds := []struct{ name, parent string }{
		{"OS::Manila::Share", ""}, {"OS::Manila::ShareGroup", ""}, {"OS::Manila::ShareNetwork", ""},
		{"OS::Manila::SecurityService", ""},
		{"OS::Manila::ShareSnapshot", "OS::Manila::Share"}, {"OS::Manila::ShareExportLocation", "OS::Manila::Share"},
		{"OS::Manila::ShareReplica", "OS::Manila::Share"}, {"OS::Manila::ShareAccessRule", "OS::Manila::Share"},
		{"OS::Manila::ShareGroupSnapshot", "OS::Manila::ShareGroup"},
		{"OS::Manila::ShareNetworkSubnet", "OS::Manila::ShareNetwork"},
		{"physical:host", ""},
	}
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		executor := executorOf(t, s)
		admin := access.WithViewer(t.Context(), viewers["admin"])
		member := access.WithViewer(t.Context(), viewers["member"])
		uuids, project, first := map[string]string{}, "demo", ""
		for i, kind := range kinds {
			input := resource.Input{
				Type: kind.name, Name: "thing", ProjectID: &project,
				UUID:            new(fmt.Sprintf("00000000-0000-4000-8000-%012d", i)),
				Metadata:        []metadef.KeyValue{{Key: "key1", Value: "v1"}, {Key: "key2", Value: "v2"}},
				ServiceMetadata: []metadef.KeyValue{{Key: "service", Value: "x"}},
			}
			if kind.parent != "" {
				input.Parent = new(uuids[kind.parent])
			}
			r, err := s.CreateResource(admin, input)
			if err != nil {
				t.Fatalf("%s: %v", kind.name, err)
			}
			uuids[kind.name] = r.UUID
			var transcript strings.Builder
			for _, operation := range script {
				response := executor.Execute(member, &graphql.RawParams{Query: fmt.Sprintf(operation, r.UUID)})
				text, err := json.Marshal(response)
				if err != nil {
					t.Fatal(err)
				}
				transcript.WriteString(strings.ReplaceAll(string(text), r.UUID, "UUID") + "\n")
			}
			if first == "" {
				first = transcript.String()
			}
			if transcript.String() != first {
				t.Errorf("%s answers\n%s\n%s answers\n%s", kind.name, transcript.String(), kinds[0].name, first)
			}
		}
		if !strings.Contains(first, `"retained":[{"key":"service"}]`) || strings.Count(first, "FORBIDDEN") != 1 ||
			strings.Count(first, "NOT_FOUND") != 1 {
			t.Errorf("the script answers\n%s", first)
		}
	})
}
