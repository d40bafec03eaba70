package metadefdb_test

import (
	"github.com/cadastre-dev/cadastre/store/storetest"

	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store"
)

// together runs writers concurrently and returns how many succeeded, with the
// errors of the others.
func together(writers int, write func(i int) error) (done int, others []error) {
	var mu sync.Mutex
	var running sync.WaitGroup
	for i := range writers {
		running.Go(func() {
			err := write(i)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				done++
			} else {
				others = append(others, err)
			}
		})
	}
	running.Wait()
	return done, others
}

// TestQuotasHoldWhenWritersMeet starts more concurrent writers than a quota
// allows, also in a project without any namespaces. Exactly as many must
// succeed as the quota allows.
func TestQuotasHoldWhenWritersMeet(t *testing.T) {
	t.Parallel()
	const writers = 12
	withDefinitions(t, store.DefinitionOptions{NamespacesPerProject: 1, PropertiesPerNamespace: 3},
		func(t *testing.T, s *store.Store) {
			ctx := storetest.AsAdmin()
			exactly := func(what string, want int, write func(i int) error) {
				t.Helper()
				done, others := together(writers, write)
				if done != want {
					t.Errorf("%s: %d won, want %d", what, done, want)
				}
				for _, err := range others {
					wantRefusal(t, what, err, problem.ErrQuotaExceeded)
				}
			}
			for round := range 5 {
				exactly("creating for one project", 1, func(i int) error {
					_, err := s.CreateNamespace(ctx,
						ownedBy(fmt.Sprint("project", round), fmt.Sprint("N", round, "-", i)))
					return err
				})
			}
			exactly("importing for one project", 1, func(i int) error {
				reports, err := s.ImportNamespaces(ctx,
					metadef.ImportRequest{Mode: metadef.Skip,
						Documents: []string{fmt.Sprintf(`{"namespace": "I%d", "owner": "importer"}`, i)}})
				if err == nil && reports[0].Outcome == metadef.ImportFailed {
					return problem.Refuse(problem.ErrQuotaExceeded, "%s", reports[0].Errors)
				}
				return err
			})
			for i := range writers {
				if _, err := s.CreateNamespace(ctx, ownedBy(fmt.Sprint("giver", i), fmt.Sprint("G", i))); err != nil {
					t.Fatal(err)
				}
			}
			exactly("giving to one project", 1, func(i int) error {
				_, err := s.UpdateNamespace(ctx, given(fmt.Sprint("G", i), "taker"))
				return err
			})
			exactly("defining properties", 3, func(i int) error {
				_, _, err := s.CreateProperty(ctx, newProperty("G0", fmt.Sprint(i)))
				return err
			})
			exactly("defining objects", 3, func(i int) error {
				_, _, err := s.CreateObject(ctx,
					metadef.NewObject{Namespace: "G1", ObjectInput: metadef.ObjectInput{Name: fmt.Sprint(i)}})
				return err
			})
			exactly("appending tags", 3, func(i int) error {
				_, _, err := s.SetTags(ctx,
					metadef.TagsChange{Namespace: "G2", Append: true, Tags: []metadef.TagInput{{Name: fmt.Sprint(i)}}})
				return err
			})
			exactly("associating types", 3, func(i int) error {
				_, _, err := s.AssociateResourceType(ctx,
					metadef.NewAssociation{Namespace: "G3",
						DocumentAssociation: metadef.DocumentAssociation{ResourceType: fmt.Sprint("T", i)}})
				return err
			})
			exactly("merging properties", 3, func(i int) error {
				reports, err := s.ImportNamespaces(ctx, metadef.ImportRequest{Mode: metadef.Merge, Documents: []string{
					fmt.Sprintf(`{"namespace": "G4", "properties": {"p%d": {"title": "P", "type": "string"}}}`, i)}})
				if err == nil && reports[0].Outcome == metadef.ImportFailed {
					return problem.Refuse(problem.ErrQuotaExceeded, "%s", reports[0].Errors)
				}
				return err
			})
		})
}

// TestAssociationsWithOneTypeAreFew checks each way to associate a namespace
// with one type: every association has all definitions again.
func TestAssociationsWithOneTypeAreFew(t *testing.T) {
	t.Parallel()
	withDefinitions(t, store.DefinitionOptions{}, func(t *testing.T, s *store.Store) {
		ctx := storetest.AsAdmin()
		with := func(name string, count int) metadef.NamespaceInput {
			input := ownedBy("project", name)
			for i := range count {
				prefix := fmt.Sprintf("p%d_", i)
				input.ResourceTypeAssociations = append(input.ResourceTypeAssociations,
					metadef.DocumentAssociation{ResourceType: "T", Prefix: &prefix})
			}
			return input
		}
		if _, err := s.CreateNamespace(ctx, with("A", 16)); err != nil {
			t.Fatal(err)
		}
		_, err := s.CreateNamespace(ctx, with("B", 17))
		wantRefusal(t, "creating", err, problem.ErrQuotaExceeded)
		for resourceType, want := range map[string]error{"T": problem.ErrQuotaExceeded, "U": nil} {
			_, _, err := s.AssociateResourceType(ctx, metadef.NewAssociation{Namespace: "A",
				DocumentAssociation: metadef.DocumentAssociation{ResourceType: resourceType}})
			if !errors.Is(err, want) {
				t.Errorf("associating with %s: %v, want %v", resourceType, err, want)
			}
		}
		var associations []string
		for i := range 17 {
			associations = append(associations, fmt.Sprintf(`{"name": "T", "prefix": "p%d_"}`, i))
		}
		reports, err := s.ImportNamespaces(ctx, metadef.ImportRequest{Documents: []string{
			`{"namespace": "C", "resource_type_associations": [` + strings.Join(associations, ", ") + `]}`}})
		if err != nil || reports[0].Outcome != metadef.ImportFailed {
			t.Errorf("importing: %v, %v", reports[0], err)
		}
	})
}

// TestQuotaOfNamespacesHoldsForImports checks imports that give a namespace
// another owner, also in a dry run.
func TestQuotaOfNamespacesHoldsForImports(t *testing.T) {
	t.Parallel()
	withDefinitions(t, store.DefinitionOptions{NamespacesPerProject: 1}, func(t *testing.T, s *store.Store) {
		ctx := storetest.AsAdmin()
		for name, owner := range map[string]string{"A": "full", "B": "free"} {
			if _, err := s.CreateNamespace(ctx, ownedBy(owner, name)); err != nil {
				t.Fatal(err)
			}
		}
		for _, dry := range []bool{true, false} {
			for _, document := range []string{`{"namespace": "B", "owner": "full"}`,
				`{"namespace": "C", "owner": "full", "visibility": "public"}`} {
				reports, err := s.ImportNamespaces(ctx,
					metadef.ImportRequest{Mode: metadef.PreferNew, DryRun: dry, Documents: []string{document}})
				if err != nil {
					t.Fatal(err)
				}
				want := `$: QUOTA_EXCEEDED: project "full" owns 1 namespaces, at most 1 are allowed`
				if reports[0].Outcome != metadef.ImportFailed ||
					len(reports[0].Errors) != 1 || reports[0].Errors[0] != want {
					t.Errorf("%s (dry run: %t): %s %q, want %q", document, dry,
						reports[0].Outcome, reports[0].Errors, want)
				}
			}
		}
		if _, err := s.NamespaceNamed(ctx, "C"); !errors.Is(err, problem.ErrNotFound) {
			t.Errorf("a namespace over the quota: %v", err)
		}
	})
}
