package graph_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// BenchmarkLists measures lists from the plan to the buffer, including
// statements, with one client per processor.
//
//	CADASTRE_TEST_DEFINITIONS=... go test ./graph -run '^$' -bench Lists -benchtime 3s
func BenchmarkLists(b *testing.B) {
	folder := os.Getenv("CADASTRE_TEST_DEFINITIONS")
	if folder == "" {
		b.Skip("CADASTRE_TEST_DEFINITIONS names no folder of definition files")
	}
	var content store.Content
	files, _ := filepath.Glob(filepath.Join(folder, "*.json"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		content.Definitions = append(content.Definitions, string(text))
	}
	for i := range 200 {
		record := store.ResourceRecord{UUID: storetest.UUID(i + 1), Type: "OS::Nova::Server",
			Name: fmt.Sprintf("server %03d", i), ProjectID: "p1", Visibility: access.Public}
		for k := range 8 {
			record.Metadata = append(record.Metadata,
				resource.MetadataItem{Key: fmt.Sprint("key", k), Value: fmt.Sprint("value", k), UserModifiable: true})
		}
		content.Resources = append(content.Resources, record)
	}
	for _, database := range []struct{ name, url string }{{"sqlite", storetest.SQLite(b)},
		{"postgres", storetest.Postgres(b)}} {
		s := storetest.Open(b, database.url)
		admin := access.WithViewer(b.Context(), viewers["admin"])
		if err := s.FillEmpty(admin, content); err != nil {
			b.Fatal(err)
		}
		executor := executorOf(nil, s)
		for _, list := range []struct{ name, query string }{
			{"flat", `{ namespaces(first: 33) { nodes { name displayName description visibility protected owner } } }`},
			{"properties", `{ namespaces(first: 20) { nodes { name displayName properties { name jsonSchema } } } }`},
			{"lists",
				`{ namespaces(first: 33) { nodes { name displayName properties { name jsonSchema } objects { name description required } tags { name } resourceTypeAssociations { resourceType { name } prefix propertiesTarget } } } }`},
			{"resources",
				`{ resources(first: 100) { nodes { uuid name type { name } projectId visibility metadata { key value userModifiable } } } }`},
		} {
			b.Run(database.name+"/"+list.name, func(b *testing.B) {
				prepared := executor.Preparer(document.DefaultLimits()).
					Prepare(admin, document.Request{Text: list.query})
				if prepared.Refused != nil {
					b.Fatal(prepared.Refused)
				}
				b.ReportAllocs()
				b.SetParallelism(4)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						answer := executor.Run(admin, prepared.Operation, 0)
						if len(answer.Errors) > 0 {
							b.Fatal(answer.Errors)
						}
						executor.Release(answer.Data...)
					}
				})
			})
		}
	}
}
