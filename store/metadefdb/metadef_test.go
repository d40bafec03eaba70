package metadefdb_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/defaults"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/metadef/metadeftest"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

func asMemberOf(t testing.TB, project string) context.Context {
	return access.WithViewer(t.Context(),
		access.Viewer{UserID: "mel", ProjectID: project, Roles: []string{access.RoleMember, access.RoleReader}})
}

// realDefinitions returns the definition files of the reference system, from
// the folder in CADASTRE_TEST_DEFINITIONS.
func realDefinitions(t testing.TB) []string {
	t.Helper()
	folder := os.Getenv("CADASTRE_TEST_DEFINITIONS")
	if folder == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("CADASTRE_TEST_DEFINITIONS must name the folder of definition files")
		}
		t.Skip("CADASTRE_TEST_DEFINITIONS is not set")
	}
	if !filepath.IsAbs(folder) { // relative to the repository, not to the package
		folder = filepath.Join("..", folder)
	}
	names, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no definition files in %s: %v", folder, err)
	}
	var texts []string
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	return texts
}

func load(t testing.TB, s *store.Store, want metadef.ImportOutcome,
	request metadef.ImportRequest) []*metadef.ImportReport {
	t.Helper()
	if request.Mode == "" {
		request.Mode = metadef.Skip
	}
	reports, err := s.ImportNamespaces(storetest.AsAdmin(), request)
	if err != nil {
		t.Fatal(err)
	}
	for _, report := range reports {
		if report.Outcome != want {
			t.Errorf("%s: %s, want %s: %q %q", report.Namespace, report.Outcome,
				want, report.Errors, report.Differences)
		}
	}
	return reports
}

func export(t testing.TB, s *store.Store) []string {
	t.Helper()
	texts, err := s.ExportNamespaces(storetest.AsAdmin(), nil, nil, false, metadef.MaxExport)
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// everything is a document with every field and keyword.
const everything = `{"namespace": "Every/thing", "display_name": "Every thing — all", "description": "", "visibility": "private", "protected": true, "owner": "demo",
	"resource_type_associations": [{"name": "B"}, {"name": "A", "prefix": "a:"}, {"name": "A", "prefix": "a_", "properties_target": "x"}],
	"properties": {"z": {"operators": [], "title": "Z", "type": "number", "minimum": 0.5, "maximum": 1e2, "default": 1.50, "enum": [1.50, 2], "description": "", "readonly": true},
		"s": {"title": "S", "type": "string", "minLength": 0, "maxLength": 9, "pattern": "^a", "default": "a"}, "b": {"title": "B", "type": "boolean", "default": false},
		"l": {"title": "L", "type": "array", "items": {"type": "integer", "enum": [1, 18446744073709551616]}, "minItems": 1, "maxItems": 2, "uniqueItems": true, "additionalItems": false, "operators": ["<or>", "<x>"], "default": [1]}},
	"objects": [{"name": "two, words", "required": ["q", "p, p"], "properties": {"p, p": {"title": "P", "type": "string"}, "q": {"title": "Q", "type": "integer", "default": 5}}}, {"name": "empty", "description": "None."}],
	"tags": [{"name": "MySQL", "parent": "databases"}, {"name": "Databases"}, {"name": "MariaDB", "parent": "mysql"}]}`

func TestExportImportsAsTheSame(t *testing.T) {
	t.Parallel()
	documents := append(defaults.Definitions(), strings.Replace(everything, "Every/thing", "Everything", 1))
	if os.Getenv("CADASTRE_TEST_DEFINITIONS") != "" || os.Getenv("CI") == "true" {
		documents = append(documents, realDefinitions(t)...)
	}
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		load(t, s, metadef.ImportCreated, metadef.ImportRequest{Documents: documents})
		load(t, s, metadef.ImportUnchanged, metadef.ImportRequest{Documents: documents})
		exported := export(t, s)
		for _, mode := range []metadef.ImportMode{metadef.Skip, metadef.Merge, metadef.PreferNew, metadef.Overwrite} {
			load(t, s, metadef.ImportUnchanged,
				metadef.ImportRequest{Documents: exported, Mode: mode, IncludeProtected: true})
		}
		other := storetest.Open(t, storetest.SQLite(t))
		for _, report := range load(t, other, metadef.ImportCreated, metadef.ImportRequest{Documents: exported}) {
			if strings.Contains(strings.Join(report.Warnings, " "), "missing") {
				t.Errorf("%s: an export has to be repaired: %q", report.Namespace, report.Warnings)
			}
		}
		again := export(t, other)
		if len(exported) != len(documents) || !slices.Equal(exported, again) {
			t.Fatalf("%d documents became %d and then %d, or differ", len(documents), len(exported), len(again))
		}
		given := map[string]*metadef.Document{}
		for _, text := range documents {
			document, _, _ := metadef.ParseDocument(text)
			given[document.Name] = document
		}
		for _, text := range again {
			got, _, _ := metadef.ParseDocument(text)
			if differences := metadef.Differences(given[got.Name],
				got); !onlyDefaultsAdded(given[got.Name], differences) {
				t.Errorf("%s is not what was given: %q", got.Name, differences)
			}
			if !reflect.DeepEqual(given[got.Name].Properties, got.Properties) ||
				!reflect.DeepEqual(given[got.Name].Objects, got.Objects) {
				t.Errorf("%s: properties or objects differ", got.Name)
			}
		}
	})
}

// onlyDefaultsAdded reports whether the differences are only defaults that a
// file left out.
func onlyDefaultsAdded(given *metadef.Document, differences []string) bool {
	return !slices.ContainsFunc(differences, func(line string) bool {
		return !(given.Owner == nil && strings.HasPrefix(line, "added $.owner")) &&
			!(given.Visibility == nil && line == `added $.visibility: "public"`) &&
			!(given.Protected == nil && line == "added $.protected: false")
	})
}

func TestDefinitionsOfTheRealFiles(t *testing.T) {
	t.Parallel()
	documents := realDefinitions(t)
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		load(t, s, metadef.ImportCreated, metadef.ImportRequest{Documents: documents})
		ctx, statements := store.CountStatements(storetest.AsAdmin())
		applied, err := s.Definitions(ctx, "OS::Glance::Image", nil, "")
		if err != nil || statements() != 0 || len(applied) != 21 {
			t.Fatalf("%d namespaces apply in %d statements, want 21 in none (%v)", len(applied), statements(), err)
		}
		reporting := []string{}
		for _, of := range applied {
			if slices.ContainsFunc(of.Conflicts, func(conflict metadef.DefinitionConflict) bool {
				return conflict.Name == "hw_vif_model"
			}) {
				reporting = append(reporting, of.Namespace.Name)
			}
		}
		slices.Sort(reporting)
		if !slices.Equal(reporting, []string{"OS::Compute::LibvirtImage", "OS::Compute::VMware"}) {
			t.Errorf("the conflict over hw_vif_model is reported by %q", reporting)
		}
		if got := effectiveKeys(t, s, "OS::Glance::Image", nil); got != 106 {
			t.Errorf("an image has %d keys, want 106", got)
		}
		for target, want := range map[string]int{"image": 85, "": 13} {
			if got := effectiveKeys(t, s, "OS::Cinder::Volume", &target); got != want {
				t.Errorf("a volume with target %q has %d keys, want %d", target, got, want)
			}
		}
	})
}

func TestReportsByTheRealFiles(t *testing.T) {
	t.Parallel()
	documents := realDefinitions(t)
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		load(t, s, metadef.ImportCreated, metadef.ImportRequest{Documents: documents})
		validate := func(resourceType string, values ...metadef.KeyValue) (*metadef.MetadataReport, error) {
			return s.ValidateMetadata(storetest.AsAdmin(),
				resource.Validation{ResourceType: &resourceType, Values: values})
		}
		report, err := validate("OS::Glance::Image", metadef.KeyValue{Key: "HW_VIF_MODEL", Value: "virtio"})
		if err != nil || len(report.Items[0].Definitions) != 2 || *report.Items[0].Suggestion != "hw_vif_model" {
			t.Errorf("case 58: want two candidates: %+v (%v)", report, err)
		}
		report, err = validate("OS::Nova::Flavor", metadef.KeyValue{Key: "hw:cpu_sockets", Value: "two"},
			metadef.KeyValue{Key: "hw:cpu_socket", Value: "2"},
			metadef.KeyValue{Key: "capabilities:cpu_info:features", Value: "<all-in> aes vmx"})
		if err != nil {
			t.Fatal(err)
		}
		sockets, typo, features := report.Items[0], report.Items[1], report.Items[2]
		if report.Valid || len(sockets.Violations) != 1 || sockets.Violations[0].Rule != "type" {
			t.Errorf("want a violation of the type: %+v", sockets)
		}
		if !typo.IsCustom || typo.Suggestion == nil || *typo.Suggestion != "hw:cpu_sockets" {
			t.Errorf("want a hint: %+v", typo)
		}
		if !slices.Equal(features.Values, []string{"aes", "vmx"}) || features.Operator == nil ||
			*features.Operator != "<all-in>" || len(features.Violations) > 0 {
			t.Errorf("want two parsed values: %+v", features)
		}
	})
}

func effectiveKeys(t *testing.T, s *store.Store, resourceType string, target *string) int {
	t.Helper()
	applied, err := s.Definitions(storetest.AsAdmin(), resourceType, target, "")
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	for _, of := range applied {
		for _, p := range of.Definitions() {
			keys[p.Name] = true
		}
	}
	return len(keys)
}

// Case 29 of the reference system: under an order by a field that most rows
// lack, the pages must have every row once.
func TestPagesUnderEveryOrderAreComplete(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		for i := range 35 {
			input := metadef.NamespaceInput{Name: fmt.Sprintf("n%02d", i)}
			if i%5 == 0 {
				input.DisplayName = metadeftest.To("Same")
			}
			if _, err := s.CreateNamespace(storetest.AsAdmin(), input); err != nil {
				t.Fatal(err)
			}
		}
		for _, field := range []string{"NAME", "DISPLAY_NAME", "CREATED_AT", "UPDATED_AT"} {
			for _, descending := range []bool{false, true} {
				seen := map[string]int{}
				request, two := page.Request{}, 2
				for request.First = &two; ; {
					page, err := s.Namespaces(storetest.AsAdmin(), metadef.NamespaceFilter{},
						page.Order{Field: field, Descending: descending}, request)
					if err != nil {
						t.Fatal(err)
					}
					for _, of := range page.Items {
						seen[of.Name]++
					}
					if !page.HasMore {
						break
					}
					request.After = &page.Cursors[len(page.Cursors)-1]
				}
				for name, times := range seen {
					if times != 1 {
						t.Errorf("%s: %s comes %d times", field, name, times)
					}
				}
				if len(seen) != 35 {
					t.Errorf("%s: %d rows, want 35", field, len(seen))
				}
			}
		}
	})
}

func TestEveryChangeCountsForItsNamespace(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		var ticks atomic.Int64
		s, err := store.Open(t.Context(), store.Options{URL: url, Now: func() time.Time {
			return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(ticks.Add(1)) * time.Second)
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		ctx := storetest.AsAdmin()
		before, err := s.CreateNamespace(ctx, metadef.NamespaceInput{Name: "N"})
		if err != nil {
			t.Fatal(err)
		}
		property := metadeftest.Property("p", metadef.String)
		var association *metadef.ResourceTypeAssociation
		for _, change := range []struct {
			name string
			make func() error
		}{
			{"create property", func() error {
				_, _, err := s.CreateProperty(ctx, metadef.NewProperty{Namespace: "N", PropertyInput: property})
				return err
			}},
			{"update property", func() error {
				_, _, err := s.UpdateProperty(ctx,
					metadef.PropertyChange{Namespace: "N", Name: "p", NewName: metadeftest.To("q")})
				return err
			}},
			{"delete property", func() error { _, _, err := s.DeleteProperty(ctx, "N", nil, "q", nil); return err }},
			{"create object", func() error {
				_, _, err := s.CreateObject(ctx,
					metadef.NewObject{Namespace: "N", ObjectInput: metadef.ObjectInput{Name: "o"}})
				return err
			}},
			{"update object", func() error {
				_, _, err := s.UpdateObject(ctx,
					metadef.ObjectChange{Namespace: "N", Name: "o", NewName: metadeftest.To("x")})
				return err
			}},
			{"delete object", func() error { _, _, err := s.DeleteObject(ctx, "N", "x", nil); return err }},
			{"set tags", func() error {
				_, _, err := s.SetTags(ctx, metadef.TagsChange{Namespace: "N", Tags: []metadef.TagInput{{Name: "t"}}})
				return err
			}},
			{"update tag", func() error {
				_, _, err := s.UpdateTag(ctx,
					metadef.TagChange{Namespace: "N", Name: "t", NewName: metadeftest.To("u")})
				return err
			}},
			{"delete tag", func() error { _, _, err := s.DeleteTag(ctx, "N", "u", nil); return err }},
			{"associate", func() (err error) {
				association, _, err = s.AssociateResourceType(ctx,
					metadef.NewAssociation{Namespace: "N",
						DocumentAssociation: metadef.DocumentAssociation{ResourceType: "X"}})
				return err
			}},
			{"update association", func() error {
				_, _, err := s.UpdateAssociation(ctx,
					metadef.AssociationChange{Ref: metadef.AssociationRef{UUID: association.UUID},
						Prefix: metadeftest.To("x:")})
				return err
			}},
			{"disassociate", func() error {
				_, _, err := s.DisassociateResourceType(ctx, metadef.AssociationRef{UUID: association.UUID}, nil)
				return err
			}},
			{"share", func() error {
				_, _, err := s.ShareNamespace(ctx, "N", "demo", metadef.Reader, nil)
				return err
			}},
			{"unshare", func() error { _, _, err := s.UnshareNamespace(ctx, "N", "demo", nil); return err }},
			{"update", func() error {
				_, err := s.UpdateNamespace(ctx,
					metadef.NamespaceChange{Name: "N",
						NamespacePatch: metadef.NamespacePatch{Description: metadeftest.To("d")}})
				return err
			}},
		} {
			if err := change.make(); err != nil {
				t.Fatalf("%s: %v", change.name, err)
			}
			after, err := s.NamespaceNamed(ctx, "N")
			if err != nil || after.Revision != before.Revision+1 || !after.UpdatedAt.After(before.UpdatedAt) ||
				!after.CreatedAt.Equal(before.CreatedAt) {
				t.Errorf("%s: revision %d after %d, updated at %s after %s (%v)", change.name, after.Revision,
					before.Revision, after.UpdatedAt, before.UpdatedAt, err)
			}
			before = after
		}
	})
}

func TestWritersThatMeet(t *testing.T) {
	t.Parallel()
	const writers = 8
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx := storetest.AsAdmin()
		one := func(what string, kind error, write func(i int) error) {
			t.Helper()
			done, others := together(writers, write)
			if done != 1 {
				t.Errorf("%s: %d won, want 1", what, done)
			}
			for _, err := range others {
				if !errors.Is(err, kind) {
					t.Errorf("%s: %v, want %v", what, err, kind)
				}
			}
		}
		create := func(name string) error {
			_, err := s.CreateNamespace(ctx,
				metadef.NamespaceInput{Name: name,
					ResourceTypeAssociations: []metadef.DocumentAssociation{{ResourceType: "New " + name},
						{ResourceType: "Shared"}}})
			return err
		}
		one("creating one name", problem.ErrAlreadyExists, func(int) error { return create("N") })
		if done, others := together(writers, func(i int) error { return create(fmt.Sprint("n", i)) }); done != writers {
			t.Errorf("creating many that share a new type: %v", others)
		}
		one("renaming to one name", problem.ErrAlreadyExists, func(i int) error {
			_, err := s.UpdateNamespace(ctx,
				metadef.NamespaceChange{Name: fmt.Sprint("n", i), NewName: metadeftest.To("Renamed")})
			return err
		})
		property := func(name string) error {
			_, _, err := s.CreateProperty(ctx,
				metadef.NewProperty{Namespace: "N", PropertyInput: metadeftest.Property(name, metadef.String)})
			return err
		}
		one("creating one property", problem.ErrAlreadyExists, func(int) error { return property("p") })
		if done, others := together(writers, func(i int) error {
			return property(fmt.Sprint("p", i))
		}); done != writers {
			t.Errorf("creating many properties: %v", others)
		}
		namespace, err := s.NamespaceNamed(ctx, "N")
		if err != nil || namespace.Revision != 2+writers {
			t.Errorf("revision %d, want %d (%v)", namespace.Revision, 2+writers, err)
		}
		one("changing one revision", problem.ErrConcurrentUpdate, func(i int) error {
			_, err := s.UpdateNamespace(ctx, metadef.NamespaceChange{Name: "N", Revision: new(namespace.Revision),
				NamespacePatch: metadef.NamespacePatch{Description: metadeftest.To(fmt.Sprint(i))}})
			return err
		})
		one("appending one tag", problem.ErrAlreadyExists, func(i int) error {
			_, _, err := s.SetTags(ctx, metadef.TagsChange{Namespace: "N", Append: true,
				Tags: []metadef.TagInput{{Name: []string{"Big", "BIG"}[i%2]}}})
			return err
		})
		if done, others := together(writers, func(int) error {
			_, _, err := s.ShareNamespace(ctx, "N", "demo", metadef.Editor, nil)
			return err
		}); done != writers {
			t.Errorf("sharing with one project: %v", others)
		}
		outcomes := make([]metadef.ImportOutcome, writers)
		together(writers, func(i int) error {
			reports, err := s.ImportNamespaces(ctx,
				metadef.ImportRequest{Documents: []string{`{"namespace": "I", "visibility": "public", "tags": [{"name": "t"}]}`}, Mode: metadef.Merge})
			if err == nil {
				outcomes[i] = reports[0].Outcome
			}
			return err
		})
		slices.Sort(outcomes)
		if outcomes[0] != metadef.ImportCreated || outcomes[1] != metadef.ImportUnchanged ||
			outcomes[writers-1] != metadef.ImportUnchanged {
			t.Errorf("importing one document: %v", outcomes)
		}
		one("deleting one namespace", problem.ErrNotFound, func(int) error {
			_, err := s.DeleteNamespace(ctx, "N", nil)
			return err
		})
	})
}
