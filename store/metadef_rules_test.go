package store_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/catalog"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// withDefinitions runs a test on a store with options for definitions.
func withDefinitions(t *testing.T, options store.DefinitionOptions, test func(t *testing.T, s *store.Store)) {
	t.Helper()
	storetest.EachURL(t, func(t *testing.T, url string) {
		s, err := store.Open(t.Context(), store.Options{URL: url, Definitions: options, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		test(t, s)
	})
}

func wantRefusal(t *testing.T, what string, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s: got %v, want %v", what, err, kind)
	}
}

func text(of string) catalog.Change[*string] { return catalog.Change[*string]{Set: true, Value: &of} }

func newProperty(namespace, name string) catalog.NewProperty {
	title := "T"
	return catalog.NewProperty{Namespace: namespace, PropertyInput: catalog.PropertyInput{Name: name, Title: &title, Type: catalog.String}}
}

func TestQuotasOfDefinitions(t *testing.T) {
	t.Parallel()
	withDefinitions(t, store.DefinitionOptions{NamespacesPerProject: 2, PropertiesPerNamespace: 3, DefinitionSize: 200}, func(t *testing.T, s *store.Store) {
		ctx, demo := asAdmin(), "demo"
		for _, name := range []string{"A", "B"} {
			if _, err := s.CreateNamespace(ctx, catalog.NamespaceInput{Name: name, Owner: &demo}); err != nil {
				t.Fatal(err)
			}
		}
		_, err := s.CreateNamespace(ctx, catalog.NamespaceInput{Name: "C", Owner: &demo})
		wantRefusal(t, "a third namespace", err, catalog.ErrQuotaExceeded)
		if _, err := s.CreateNamespace(ctx, catalog.NamespaceInput{Name: "C"}); err != nil {
			t.Fatal(err)
		}
		_, err = s.UpdateNamespace(ctx, "C", catalog.NamespacePatch{Owner: text("demo")}, nil)
		wantRefusal(t, "giving a third namespace", err, catalog.ErrQuotaExceeded)
		for i := range 3 {
			if _, _, err := s.CreateProperty(ctx, newProperty("C", fmt.Sprint(i))); err != nil {
				t.Fatal(err)
			}
		}
		_, _, err = s.CreateProperty(ctx, newProperty("C", "more"))
		wantRefusal(t, "a fourth property", err, catalog.ErrQuotaExceeded)
		_, _, err = s.CreateObject(ctx, catalog.NewObject{Namespace: "C", ObjectInput: catalog.ObjectInput{Name: "o", Properties: []catalog.PropertyInput{newProperty("", "p").PropertyInput}}})
		wantRefusal(t, "a fourth property in an object", err, catalog.ErrQuotaExceeded)
		large := newProperty("A", "p")
		description := strings.Repeat("x", 200)
		large.Description = &description
		_, _, err = s.CreateProperty(ctx, large)
		wantRefusal(t, "a large definition", err, catalog.ErrQuotaExceeded)
		_, err = s.CreateNamespace(ctx, catalog.NamespaceInput{Name: "D", Properties: []catalog.PropertyInput{large.PropertyInput}})
		wantRefusal(t, "a namespace with a large definition", err, catalog.ErrQuotaExceeded)
		_, err = s.SetTags(ctx, catalog.TagsChange{Namespace: "A", Tags: []catalog.TagInput{{Name: "1"}, {Name: "2"}, {Name: "3"}, {Name: "4"}}})
		wantRefusal(t, "a fourth tag", err, catalog.ErrQuotaExceeded)
		reports, err := s.ImportNamespaces(ctx, catalog.ImportRequest{Mode: catalog.Merge, Documents: []string{
			`{"namespace": "C", "properties": {"p": {"title": "P", "type": "string"}}}`,
			`{"namespace": "E", "owner": "demo", "visibility": "public"}`,
			`{"namespace": "F", "visibility": "public", "properties": {"p": {"title": "` + description + `", "type": "string"}}}`,
		}})
		if err != nil {
			t.Fatal(err)
		}
		for _, report := range reports {
			if report.Outcome != catalog.ImportFailed || !strings.Contains(strings.Join(report.Errors, ""), "QUOTA_EXCEEDED: ") {
				t.Errorf("%s: %s %q, want it to exceed a quota", report.Namespace, report.Outcome, report.Errors)
			}
		}
	})
}

func TestOwnersWriteWhereTheyMay(t *testing.T) {
	t.Parallel()
	withDefinitions(t, store.DefinitionOptions{OwnerWrites: true}, func(t *testing.T, s *store.Store) {
		demo, other := asMemberOf(t, "demo"), "other"
		own, err := s.CreateNamespace(demo, catalog.NamespaceInput{Name: "Own"})
		if err != nil || own.Owner != "demo" {
			t.Fatalf("%+v %v", own, err)
		}
		_, err = s.CreateNamespace(demo, catalog.NamespaceInput{Name: "Given", Owner: &other})
		wantRefusal(t, "creating for another project", err, catalog.ErrForbidden)
		_, err = s.UpdateNamespace(demo, "Own", catalog.NamespacePatch{Owner: text("other")}, nil)
		wantRefusal(t, "giving away", err, catalog.ErrForbidden)
		if _, _, err := s.CreateProperty(demo, newProperty("Own", "p")); err != nil {
			t.Error(err)
		}
		if _, _, err := s.ShareNamespace(demo, "Own", "other", catalog.Reader, nil); err != nil {
			t.Error(err)
		}
		_, _, err = s.CreateProperty(asMemberOf(t, "other"), newProperty("Own", "q"))
		wantRefusal(t, "a reader defining", err, catalog.ErrForbidden)
		_, err = s.DeleteNamespace(asMemberOf(t, "third"), "Own", nil)
		wantRefusal(t, "a foreigner deleting", err, catalog.ErrNotFound)
		reader := catalog.WithViewer(t.Context(), catalog.Viewer{ProjectID: "demo", Roles: []string{catalog.RoleReader}})
		_, err = s.DeleteNamespace(reader, "Own", nil)
		wantRefusal(t, "a reader of the project deleting", err, catalog.ErrForbidden)
		for document, want := range map[string]string{
			`{"namespace": "Own", "visibility": "private", "tags": [{"name": "t"}]}`:         "UPDATED ",
			`{"namespace": "Mine", "visibility": "private"}`:                                 "CREATED ",
			`{"namespace": "Mine", "owner": "other"}`:                                        "FAILED $: FORBIDDEN: only an administrator may make another project the owner of a namespace",
			`{"namespace": "Theirs", "owner": "other", "visibility": "private"}`:             "FAILED $: FORBIDDEN: only an administrator may make another project the owner of a namespace",
			`{"namespace": "Hidden", "visibility": "public", "properties": {}}`:              `FAILED $.namespace: ALREADY_EXISTS: a namespace "Hidden" exists already`,
			`{"namespace": "Shown", "visibility": "public", "tags": [{"name": "takeover"}]}`: "FAILED $: FORBIDDEN: only an administrator or a member of the owning project may import into this namespace",
		} {
			visible := catalog.Public
			for name, visibility := range map[string]*catalog.Visibility{"Hidden": nil, "Shown": &visible} {
				if _, err := s.CreateNamespace(asAdmin(), catalog.NamespaceInput{Name: name, Visibility: visibility}); err != nil && !errors.Is(err, catalog.ErrAlreadyExists) {
					t.Fatal(err)
				}
			}
			reports, err := s.ImportNamespaces(demo, catalog.ImportRequest{Documents: []string{document}, Mode: catalog.Merge})
			if err != nil {
				t.Fatal(err)
			}
			if got := string(reports[0].Outcome) + " " + strings.Join(reports[0].Errors, " "); got != want && !(strings.Contains(document, "Mine") && got == "UNCHANGED ") {
				t.Errorf("%s: got %q, want %q", document, got, want)
			}
		}
		ours, another := catalog.OwnOrigin, "demo's"
		_, err = s.ImportNamespaces(demo, catalog.ImportRequest{Documents: []string{`{"namespace": "Like the product's"}`}, Mode: catalog.Skip, Origin: &ours})
		wantRefusal(t, "importing as the product", err, catalog.ErrForbidden)
		load(t, s, catalog.ImportUnchanged, catalog.ImportRequest{Documents: []string{`{"namespace": "Mine"}`}, Origin: &another})
		unloaded, err := s.UnloadNamespaces(demo, catalog.UnloadRequest{All: true})
		if err != nil {
			t.Fatal(err)
		}
		outcomes := map[string]catalog.UnloadOutcome{}
		for _, report := range unloaded {
			outcomes[report.Namespace] = report.Outcome
		}
		if outcomes["Own"] != catalog.Unloaded || outcomes["Shown"] != catalog.UnloadFailed || len(outcomes) > 3 {
			t.Errorf("a member unloads %v", outcomes)
		}
	})
}

// TestOwnersWriteNothingUnlessTheyMay is the default.
func TestOwnersWriteNothingUnlessTheyMay(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		_, err := s.CreateNamespace(asMemberOf(t, "demo"), catalog.NamespaceInput{Name: "N"})
		wantRefusal(t, "creating", err, catalog.ErrForbidden)
		_, err = s.ImportNamespaces(asMemberOf(t, "demo"), catalog.ImportRequest{})
		wantRefusal(t, "importing", err, catalog.ErrForbidden)
	})
}

// FuzzImportNamespaces holds that whatever is imported ends in a report, that
// what is stored is exported, and that the export is what is stored.
func FuzzImportNamespaces(f *testing.F) {
	f.Add(strings.Replace(everything, "Every/thing", "Everything", 1))
	f.Add(`{"namespace": "N", "properties": {"p": {"type": "string", "title": "\u0000"}}}`)
	f.Add(`{"namespace": "N", "tags": [{"name": "a", "parent": "b"}, {"name": "B", "parent": "A"}], "objects": {"name": "\ud83d"}}`)
	f.Add(`{"namespace": "N", "resource_type_associations": [{"name": "T", "prefix": "x"}], "properties": {"p": {"title": "P", "type": "array", "items": {"type": "number"}, "default": [1e400]}}}`)
	s := storetest.Open(f, storetest.SQLite(f))
	ctx := asAdmin()
	f.Fuzz(func(t *testing.T, document string) {
		if err := importAndExport(ctx, s, document); err != nil {
			t.Fatal(err)
		}
	})
}

func importAndExport(ctx context.Context, s *store.Store, document string) error {
	for _, mode := range []catalog.ImportMode{catalog.Skip, catalog.Merge, catalog.PreferNew, catalog.Overwrite} {
		request := catalog.ImportRequest{Documents: []string{document}, Mode: mode, IncludeProtected: true}
		reports, err := s.ImportNamespaces(ctx, request)
		if err != nil {
			return fmt.Errorf("%s: %w", mode, err)
		}
		if reports[0].Outcome == catalog.ImportFailed {
			if len(reports[0].Errors) == 0 {
				return fmt.Errorf("%s: failed without a reason", mode)
			}
			continue
		}
		exported, err := s.ExportNamespaces(ctx, []string{reports[0].Namespace}, nil)
		if err != nil {
			return fmt.Errorf("export after %s: %w", mode, err)
		}
		request.Documents, request.Mode = exported, catalog.Overwrite
		again, err := s.ImportNamespaces(ctx, request)
		if err != nil || again[0].Outcome != catalog.ImportUnchanged {
			return fmt.Errorf("after %s the export %s is not what is stored: %+v (%w)", mode, exported, again[0], err)
		}
	}
	return nil
}
