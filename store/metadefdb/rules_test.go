package metadefdb_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/metadef/metadeftest"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// withDefinitions runs a test on a store with options for definitions.
func withDefinitions(t *testing.T, options store.DefinitionOptions, test func(t *testing.T, s *store.Store)) {
	t.Helper()
	storetest.EachURL(t, func(t *testing.T, url string) {
		s, err := store.Open(t.Context(),
			store.Options{URL: url, Definitions: options, Log: slog.New(slog.DiscardHandler)})
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

// ownedBy returns a new namespace of a project.
func ownedBy(owner, name string) metadef.NamespaceInput {
	return metadef.NamespaceInput{Name: name, NamespacePatch: metadef.NamespacePatch{Owner: metadeftest.To(owner)}}
}

// given returns a change of a namespace's owner.
func given(name, owner string) metadef.NamespaceChange {
	return metadef.NamespaceChange{Name: name, NamespacePatch: metadef.NamespacePatch{Owner: metadeftest.To(owner)}}
}

func newProperty(namespace, name string) metadef.NewProperty {
	return metadef.NewProperty{Namespace: namespace, PropertyInput: metadeftest.Property(name, metadef.String)}
}

func TestQuotasOfDefinitions(t *testing.T) {
	t.Parallel()
	withDefinitions(t, store.DefinitionOptions{NamespacesPerProject: 2, PropertiesPerNamespace: 3, DefinitionSize: 200},
		func(t *testing.T, s *store.Store) {
			ctx := storetest.AsAdmin()
			for _, name := range []string{"A", "B"} {
				if _, err := s.CreateNamespace(ctx, ownedBy("demo", name)); err != nil {
					t.Fatal(err)
				}
			}
			_, err := s.CreateNamespace(ctx, ownedBy("demo", "C"))
			wantRefusal(t, "a third namespace", err, problem.ErrQuotaExceeded)
			if _, err := s.CreateNamespace(ctx, metadef.NamespaceInput{Name: "C"}); err != nil {
				t.Fatal(err)
			}
			_, err = s.UpdateNamespace(ctx, given("C", "demo"))
			wantRefusal(t, "giving a third namespace", err, problem.ErrQuotaExceeded)
			for i := range 3 {
				if _, _, err := s.CreateProperty(ctx, newProperty("C", fmt.Sprint(i))); err != nil {
					t.Fatal(err)
				}
			}
			_, _, err = s.CreateProperty(ctx, newProperty("C", "more"))
			wantRefusal(t, "a fourth property", err, problem.ErrQuotaExceeded)
			_, _, err = s.CreateObject(ctx, metadef.NewObject{Namespace: "C",
				ObjectInput: metadeftest.Object("o", metadeftest.Property("p", metadef.String))})
			wantRefusal(t, "a fourth property in an object", err, problem.ErrQuotaExceeded)
			large := newProperty("A", "p")
			description := strings.Repeat("x", 200)
			large.Description = metadeftest.To(description)
			_, _, err = s.CreateProperty(ctx, large)
			wantRefusal(t, "a large definition", err, problem.ErrQuotaExceeded)
			if _, _, err := s.CreateObject(ctx, metadef.NewObject{Namespace: "A",
				ObjectInput: metadeftest.Object("o")}); err != nil {
				t.Fatal(err)
			}
			_, _, err = s.UpdateObject(ctx, metadef.ObjectChange{Namespace: "A", Name: "o",
				ObjectPatch: metadef.ObjectPatch{Description: metadeftest.To(description + "x")}})
			wantRefusal(t, "a large description of an object", err, problem.ErrQuotaExceeded)
			_, err = s.CreateNamespace(ctx,
				metadef.NamespaceInput{Name: "D", Properties: []metadef.PropertyInput{large.PropertyInput}})
			wantRefusal(t, "a namespace with a large definition", err, problem.ErrQuotaExceeded)
			_, _, err = s.SetTags(ctx, metadef.TagsChange{Namespace: "A",
				Tags: []metadef.TagInput{{Name: "1"}, {Name: "2"}, {Name: "3"}, {Name: "4"}}})
			wantRefusal(t, "a fourth tag", err, problem.ErrQuotaExceeded)
			reports, err := s.ImportNamespaces(ctx, metadef.ImportRequest{Mode: metadef.Merge, Documents: []string{
				`{"namespace": "C", "properties": {"p": {"title": "P", "type": "string"}}}`,
				`{"namespace": "E", "owner": "demo", "visibility": "public"}`,
				`{"namespace": "F", "visibility": "public", "properties": {"p": {"title": "` +
					description + `", "type": "string"}}}`,
			}})
			if err != nil {
				t.Fatal(err)
			}
			for _, report := range reports {
				if report.Outcome != metadef.ImportFailed ||
					!strings.Contains(strings.Join(report.Errors, ""), "QUOTA_EXCEEDED: ") {
					t.Errorf("%s: %s %q, want it to exceed a quota", report.Namespace, report.Outcome, report.Errors)
				}
			}
		})
}

func TestOwnersWriteWhereTheyMay(t *testing.T) {
	t.Parallel()
	withDefinitions(t, store.DefinitionOptions{OwnerWrites: true}, func(t *testing.T, s *store.Store) {
		demo := asMemberOf(t, "demo")
		own, err := s.CreateNamespace(demo, metadef.NamespaceInput{Name: "Own"})
		if err != nil || own.Owner != "demo" {
			t.Fatalf("%+v %v", own, err)
		}
		_, err = s.CreateNamespace(demo, ownedBy("other", "Given"))
		wantRefusal(t, "creating for another project", err, problem.ErrForbidden)
		_, err = s.UpdateNamespace(demo, given("Own", "other"))
		wantRefusal(t, "giving away", err, problem.ErrForbidden)
		if _, _, err := s.CreateProperty(demo, newProperty("Own", "p")); err != nil {
			t.Error(err)
		}
		if _, _, err := s.ShareNamespace(demo, "Own", "other", metadef.Reader, nil); err != nil {
			t.Error(err)
		}
		_, _, err = s.CreateProperty(asMemberOf(t, "other"), newProperty("Own", "q"))
		wantRefusal(t, "a reader defining", err, problem.ErrForbidden)
		_, err = s.DeleteNamespace(asMemberOf(t, "third"), "Own", nil)
		wantRefusal(t, "a foreigner deleting", err, problem.ErrNotFound)
		reader := access.WithViewer(t.Context(), access.Viewer{ProjectID: "demo", Roles: []string{access.RoleReader}})
		_, err = s.DeleteNamespace(reader, "Own", nil)
		wantRefusal(t, "a reader of the project deleting", err, problem.ErrForbidden)
	})
}

func TestOwnersImportWhereTheyMay(t *testing.T) {
	t.Parallel()
	withDefinitions(t, store.DefinitionOptions{OwnerWrites: true}, func(t *testing.T, s *store.Store) {
		demo := asMemberOf(t, "demo")
		if _, err := s.CreateNamespace(demo, metadef.NamespaceInput{Name: "Own"}); err != nil {
			t.Fatal(err)
		}
		for name, visibility := range map[string]access.Visibility{"Hidden": access.Private, "Shown": access.Public} {
			if _, err := s.CreateNamespace(storetest.AsAdmin(),
				metadef.NamespaceInput{Name: name,
					NamespacePatch: metadef.NamespacePatch{Visibility: metadeftest.To(visibility)}}); err != nil {
				t.Fatal(err)
			}
		}
		for document, want := range map[string]string{
			`{"namespace": "Own", "visibility": "private", "tags": [{"name": "t"}]}`:         "UPDATED ",
			`{"namespace": "Mine", "visibility": "private"}`:                                 "CREATED ",
			`{"namespace": "Mine", "owner": "other"}`:                                        "FAILED $: FORBIDDEN: making another project the owner of a namespace needs the role admin",
			`{"namespace": "Theirs", "owner": "other", "visibility": "private"}`:             "FAILED $: FORBIDDEN: making another project the owner of a namespace needs the role admin",
			`{"namespace": "Hidden", "visibility": "public", "properties": {}}`:              `FAILED $.namespace: ALREADY_EXISTS: namespace "Hidden" already exists`,
			`{"namespace": "Shown", "visibility": "public", "tags": [{"name": "takeover"}]}`: "FAILED $: FORBIDDEN: importNamespaces needs the role admin, or the role member in the project that owns the namespace, or the role member in a project that the namespace is shared with as EDITOR",
		} {
			reports, err := s.ImportNamespaces(demo,
				metadef.ImportRequest{Documents: []string{document}, Mode: metadef.Merge})
			if err != nil {
				t.Fatal(err)
			}
			if got := string(reports[0].Outcome) + " " + strings.Join(reports[0].Errors, " "); got != want &&
				!(strings.Contains(document, "Mine") && got == "UNCHANGED ") {
				t.Errorf("%s: got %q, want %q", document, got, want)
			}
		}
		another := "demo's"
		for _, origin := range []string{metadef.OwnOrigin, "cloud/one/definitions"} {
			_, err := s.ImportNamespaces(demo, metadef.ImportRequest{
				Documents: []string{`{"namespace": "Like the product's"}`}, Mode: metadef.Skip, Origin: &origin})
			wantRefusal(t, "importing as "+origin, err, problem.ErrForbidden)
		}
		load(t, s, metadef.ImportUnchanged,
			metadef.ImportRequest{Documents: []string{`{"namespace": "Mine"}`}, Origin: &another})
		unloaded, err := s.UnloadNamespaces(demo, metadef.UnloadRequest{All: true})
		if err != nil {
			t.Fatal(err)
		}
		outcomes := map[string]metadef.UnloadOutcome{}
		for _, report := range unloaded {
			outcomes[report.Namespace] = report.Outcome
		}
		if outcomes["Own"] != metadef.Unloaded || outcomes["Shown"] != metadef.UnloadFailed || len(outcomes) > 3 {
			t.Errorf("a member unloads %v", outcomes)
		}
	})
}

// TestOwnersWriteNothingUnlessTheyMay checks the default.
func TestOwnersWriteNothingUnlessTheyMay(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		_, err := s.CreateNamespace(asMemberOf(t, "demo"), metadef.NamespaceInput{Name: "N"})
		wantRefusal(t, "creating", err, problem.ErrForbidden)
		_, err = s.ImportNamespaces(asMemberOf(t, "demo"), metadef.ImportRequest{})
		wantRefusal(t, "importing", err, problem.ErrForbidden)
	})
}

// FuzzImportNamespaces checks that every import ends in a report, and that the
// export of a stored document equals it.
func FuzzImportNamespaces(f *testing.F) {
	f.Add(strings.Replace(everything, "Every/thing", "Everything", 1))
	f.Add(`{"namespace": "N", "properties": {"p": {"type": "string", "title": "\u0000"}}}`)
	f.Add(`{"namespace": "N", "tags": [{"name": "a", "parent": "b"}, {"name": "B", "parent": "A"}], "objects": {"name": "\ud83d"}}`)
	f.Add(`{"namespace": "N", "resource_type_associations": [{"name": "T", "prefix": "x"}], "properties": {"p": {"title": "P", "type": "array", "items": {"type": "number"}, "default": [1e400]}}}`)
	s := storetest.Open(f, storetest.SQLite(f))
	ctx := storetest.AsAdmin()
	f.Fuzz(func(t *testing.T, document string) {
		if err := importAndExport(ctx, s, document); err != nil {
			t.Fatal(err)
		}
	})
}

func importAndExport(ctx context.Context, s *store.Store, document string) error {
	for _, mode := range []metadef.ImportMode{metadef.Skip, metadef.Merge, metadef.PreferNew, metadef.Overwrite} {
		request := metadef.ImportRequest{Documents: []string{document}, Mode: mode, IncludeProtected: true}
		reports, err := s.ImportNamespaces(ctx, request)
		if err != nil {
			return fmt.Errorf("%s: %w", mode, err)
		}
		if reports[0].Outcome == metadef.ImportFailed {
			if len(reports[0].Errors) == 0 {
				return fmt.Errorf("%s: failed without a reason", mode)
			}
			continue
		}
		exported, err := s.ExportNamespaces(ctx, []string{reports[0].Namespace}, nil, false, metadef.MaxExport)
		if err != nil {
			return fmt.Errorf("export after %s: %w", mode, err)
		}
		request.Documents, request.Mode = exported, metadef.Overwrite
		again, err := s.ImportNamespaces(ctx, request)
		if err != nil || again[0].Outcome != metadef.ImportUnchanged {
			return fmt.Errorf("after %s the export %s is not what is stored: %+v (%w)", mode, exported, again[0], err)
		}
	}
	return nil
}
