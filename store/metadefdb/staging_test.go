package metadefdb_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
	"github.com/cadastre-dev/cadastre/text"
)

// fullFile returns the definition file of a namespace with as many properties, in
// all, objects, tags and associations, and descriptions of so many bytes.
func fullFile(chance *rand.Rand, name string, count, bytes int) string {
	property := func(i int) metadef.DocumentProperty {
		keywords := fmt.Sprintf(`{"title":"P","type":"string","description":%q}`, strings.Repeat("d", 1+chance.IntN(bytes)))
		return metadef.DocumentProperty{Name: fmt.Sprintf("property %d", i), PropertySchema: metadef.ReadPropertySchema(text.JSON(keywords))}
	}
	public, closed, owner := access.Public, false, "operations"
	document := metadef.Document{Name: name, Visibility: &public, Protected: &closed, Owner: &owner}
	for i := range count {
		document.Tags = append(document.Tags, metadef.DocumentTag{Name: fmt.Sprintf("tag %04d", i)})
		if i%3 > 0 {
			document.Tags[i].Parent = "tag 0000"
		}
		document.Associations = append(document.Associations, metadef.DocumentAssociation{ResourceType: fmt.Sprintf("T::%04d", i/7), Prefix: new(fmt.Sprintf("p%04d:", i))})
		object := metadef.DocumentObject{Name: fmt.Sprintf("object %d", i)}
		if chance.IntN(3) > 0 {
			object.Description = new(strings.Repeat("ö", chance.IntN(bytes/2)))
		}
		document.Objects = append(document.Objects, object)
	}
	document.Tags[0].Parent = ""
	for i := range count {
		if i%2 == 0 {
			document.Properties = append(document.Properties, property(i))
			continue
		}
		at := []int{0, 0, chance.IntN(count)}[chance.IntN(3)] // the first object has most
		object := &document.Objects[at]
		object.Properties = append(object.Properties, property(i))
		if chance.IntN(2) == 0 {
			object.Required = append(object.Required, fmt.Sprintf("property %d", i))
		}
	}
	return document.Text()
}

// exportedParts returns a namespace as it is exported in parts.
func exportedParts(t *testing.T, ctx context.Context, s *store.Store, name string, portable bool) []string {
	t.Helper()
	var parts []string
	var after *string
	for {
		part, err := s.ExportNamespacePart(ctx, name, portable, after)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, part.Text)
		if after = part.Next; after == nil {
			return parts
		}
	}
}

// stageFile stages a file in parts of a size, in any order and some of them twice.
func stageFile(t *testing.T, ctx context.Context, s *store.Store, chance *rand.Rand, upload, file string, size int) metadef.StagedFile {
	t.Helper()
	parts, problems := metadef.SplitDocument(file, size)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	order := chance.Perm(len(parts))
	for _, i := range append(order, order[0]) {
		if _, err := s.StageNamespacePart(ctx, metadef.NewPart{Upload: upload, Part: i, Text: parts[i]}); err != nil {
			t.Fatal(err)
		}
	}
	return metadef.StagedFile{Upload: upload, Parts: len(parts)}
}

// TestWhatIsExportedIsImported fills namespaces to the quotas, exports them in
// parts, and imports the parts into another database: the files are the same.
func TestWhatIsExportedIsImported(t *testing.T) {
	t.Parallel()
	ctx := storetest.AsAdmin()
	storetest.EachURL(t, func(t *testing.T, url string) {
		s, err := store.Open(t.Context(), store.Options{URL: url, Definitions: store.DefinitionOptions{PropertiesPerNamespace: 150, DefinitionSize: 2000}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		chance := rand.New(rand.NewPCG(6, 3))
		elsewhere := storetest.Open(t, storetest.SQLite(t))
		for i, count := range []int{1, 59, 61, 150} {
			name := fmt.Sprintf("Full %d", i)
			file := fullFile(chance, name, count, 1900)
			uploaded := func(s *store.Store, want metadef.ImportOutcome, dryRun bool) {
				t.Helper()
				staged := stageFile(t, ctx, s, chance, storetest.UUID(i), file, 4000+chance.IntN(60_000))
				reports, err := s.ImportNamespaces(ctx, metadef.ImportRequest{Mode: metadef.Overwrite, DryRun: dryRun, Uploads: []metadef.StagedFile{staged}})
				if err != nil || reports[0].Outcome != want || reports[0].Namespace != name || len(reports[0].Errors)+len(reports[0].Warnings) > 0 {
					t.Fatalf("%s: %+v, %v", name, reports, err)
				}
				if dryRun {
					return
				}
				_, err = s.ImportNamespaces(ctx, metadef.ImportRequest{Mode: metadef.Overwrite, Uploads: []metadef.StagedFile{staged}})
				wantRefusal(t, "an upload that was used", err, problem.ErrInvalidInput)
			}
			uploaded(s, metadef.ImportCreated, true)
			uploaded(s, metadef.ImportCreated, false)
			whole, err := s.ExportNamespaces(ctx, []string{name}, nil, false)
			if err != nil || whole[0] != file {
				t.Fatalf("%s is exported as another file: %v", name, err)
			}
			document, warnings, problems := metadef.ParseParts(exportedParts(t, ctx, s, name, false))
			if len(warnings)+len(problems) > 0 || document.Text() != file {
				t.Errorf("the parts of %s are another file: %v %v", name, warnings, problems)
			}
			portable, _, _ := metadef.ParseParts(exportedParts(t, ctx, s, name, true))
			if want, err := s.ExportNamespaces(ctx, []string{name}, nil, true); err != nil || portable.Text() != want[0] {
				t.Errorf("the portable parts of %s are another file: %v", name, err)
			}
			uploaded(elsewhere, metadef.ImportCreated, false)
			uploaded(elsewhere, metadef.ImportUnchanged, false)
		}
	})
}

// TestStagedParts is what is refused of parts and of uploads.
func TestStagedParts(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		now := time.Now()
		s, err := store.Open(t.Context(), store.Options{URL: url, Now: func() time.Time { return now }, Definitions: store.DefinitionOptions{StagedBytes: 1000, OwnerWrites: true}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		ctx, upload := storetest.AsAdmin(), storetest.UUID(1)
		member := asMemberOf(t, "demo")
		stage := func(ctx context.Context, upload string, part int, text string) error {
			_, err := s.StageNamespacePart(ctx, metadef.NewPart{Upload: upload, Part: part, Text: text})
			return err
		}
		load := func(ctx context.Context, files ...metadef.StagedFile) ([]*metadef.ImportReport, error) {
			return s.ImportNamespaces(ctx, metadef.ImportRequest{Mode: metadef.Skip, Uploads: files})
		}
		whole := metadef.StagedFile{Upload: upload, Parts: 2}
		wantRefusal(t, "a number below 0, a text that is no part", stage(ctx, upload, -1, "[]"), problem.ErrInvalidInput)
		wantRefusal(t, "a number that is too large", stage(ctx, upload, metadef.MaxParts, `{"namespace": "N"}`), problem.ErrInvalidInput)
		reader := access.WithViewer(t.Context(), access.Viewer{UserID: "rae", ProjectID: "demo", Roles: []string{access.RoleReader}})
		wantRefusal(t, "a reader", stage(reader, upload, 0, `{"namespace": "N"}`), problem.ErrForbidden)
		if err := errors.Join(stage(ctx, upload, 0, `{"namespace": "N", "tags": [{"name": "a"}]}`), stage(ctx, upload, 1, `{"namespace": "N", "tags": [{"name": "b"}]}`)); err != nil {
			t.Fatal(err)
		}
		for what, file := range map[string]metadef.StagedFile{"no parts": {Upload: upload}, "too many parts": {Upload: upload, Parts: metadef.MaxParts + 1},
			"a part that is missing": {Upload: upload, Parts: 3}, "an unknown upload": {Upload: storetest.UUID(2), Parts: 1}} {
			_, err := load(ctx, file)
			wantRefusal(t, what, err, problem.ErrInvalidInput)
		}
		_, err = load(ctx, whole, whole)
		wantRefusal(t, "one upload twice", err, problem.ErrInvalidInput)
		_, err = load(member, whole)
		wantRefusal(t, "somebody else's upload", err, problem.ErrInvalidInput)
		large := `{"namespace": "N", "description": "` + strings.Repeat("d", 940) + `"}`
		wantRefusal(t, "more than the project may stage", stage(ctx, upload, 2, large), problem.ErrQuotaExceeded)
		if err := stage(member, upload, 2, large); err != nil { // of another project
			t.Error(err)
		}
		now = now.Add(metadef.StagedFor)
		_, err = load(ctx, whole)
		wantRefusal(t, "what expired", err, problem.ErrInvalidInput)
		if err := s.DropExpired(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(stage(ctx, upload, 0, large), stage(ctx, upload, 0, `{"namespace": "N", "tags": [{"name": "a"}]}`), stage(ctx, upload, 1, `{"namespace": "N", "tags": [{"name": "b"}]}`)); err != nil {
			t.Fatal(err)
		}
		reports, err := load(ctx, whole)
		if err != nil || reports[0].Outcome != metadef.ImportCreated {
			t.Fatalf("%+v, %v", reports, err)
		}
		if files, err := s.ExportNamespaces(ctx, []string{"N"}, nil, false); err != nil || !strings.Contains(files[0], `"a"`) || !strings.Contains(files[0], `"b"`) {
			t.Errorf("%q, %v", files, err)
		}
	})
}

// TestPartsOfOneRevision changes a namespace between two parts of an export.
func TestPartsOfOneRevision(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx := storetest.AsAdmin()
		if _, err := s.CreateNamespace(ctx, metadef.NamespaceInput{Name: "N"}); err != nil {
			t.Fatal(err)
		}
		first, err := s.ExportNamespacePart(ctx, "N", false, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.CreateObject(ctx, metadef.NewObject{Namespace: "N", ObjectInput: metadef.ObjectInput{Name: "o"}}); err != nil {
			t.Fatal(err)
		}
		_, err = s.ExportNamespacePart(ctx, "N", false, first.Next)
		wantRefusal(t, "a part of another revision", err, problem.ErrConcurrentUpdate)
		for _, after := range []string{"", "x", *first.Next + "x"} {
			_, err = s.ExportNamespacePart(ctx, "N", false, &after)
			wantRefusal(t, "no cursor", err, problem.ErrInvalidInput)
		}
		_, err = s.ExportNamespacePart(asMemberOf(t, "demo"), "N", false, nil)
		wantRefusal(t, "somebody else's namespace", err, problem.ErrNotFound)
		_, err = s.ExportNamespacePart(ctx, "None", false, nil)
		wantRefusal(t, "no namespace", err, problem.ErrNotFound)
	})
}
