package changedb_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/change"
	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/metadef/metadeftest"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/changedb"
	"github.com/cadastre-dev/cadastre/store/sqldb/changelog"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// as returns the context of a viewer.
func as(t *testing.T, project string, roles ...string) context.Context {
	t.Helper()
	return access.WithViewer(t.Context(), access.Viewer{UserID: "u", ProjectID: project, Roles: roles})
}

// all reads the log from a position on in pages, as a viewer. It returns the
// changes as words.
func all(t *testing.T, ctx context.Context, s *store.Store, after change.Position,
	filter change.Filter) (said []string, end change.Position) {
	t.Helper()
	for {
		changes, more, err := s.Changes(ctx, filter, after, 3)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range changes {
			said = append(said, words(c))
		}
		if after = s.After(after, changes, more); !more {
			return said, after
		}
	}
}

func words(c *change.Change) string { return fmt.Sprintf("%s %s %s", c.Kind, c.Key, c.What) }

// TestEachViewerReadsWhatTheyMaySee shares and hides a namespace.
func TestEachViewerReadsWhatTheyMaySee(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		viewers := map[string]context.Context{"admin": as(t, "", access.RoleAdmin),
			"p1": as(t, "p1", access.RoleMember), "p2": as(t, "p2", access.RoleReader),
			"none": as(t, "p3", access.RoleMember)}
		start := map[string]change.Position{}
		for name, ctx := range viewers {
			_, start[name] = all(t, ctx, s, change.Position{}, change.Filter{})
		}
		admin := viewers["admin"]
		private, public := access.Private, access.Public
		steps := []error{}
		_, err := s.CreateNamespace(admin, metadef.NamespaceInput{Name: "N",
			NamespacePatch: metadef.NamespacePatch{Visibility: metadeftest.To(private), Owner: metadeftest.To("p1")}})
		steps = append(steps, err)
		_, _, err = s.ShareNamespace(admin, "N", "p2", metadef.Reader, nil)
		steps = append(steps, err)
		_, err = s.UpdateNamespace(admin, metadef.NamespaceChange{Name: "N",
			NamespacePatch: metadef.NamespacePatch{Visibility: metadeftest.To(public)}})
		steps = append(steps, err)
		_, _, err = s.UnshareNamespace(admin, "N", "p2", nil)
		steps = append(steps, err)
		_, err = s.UpdateNamespace(admin, metadef.NamespaceChange{Name: "N",
			NamespacePatch: metadef.NamespacePatch{Visibility: metadeftest.To(private)}})
		steps = append(steps, err)
		_, err = s.DeleteNamespace(admin, "N", nil)
		steps = append(steps, err)
		if err := errors.Join(steps...); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{
			"admin": "CREATED UPDATED UPDATED UPDATED UPDATED DELETED",
			"p1":    "CREATED UPDATED UPDATED UPDATED UPDATED DELETED",
			"p2":    "CREATED UPDATED UPDATED DELETED",
			"none":  "CREATED UPDATED DELETED",
		} {
			said, _ := all(t, viewers[name], s, start[name], change.Filter{})
			for i := range said {
				said[i] = strings.TrimPrefix(said[i], "Namespace N ")
			}
			if got := strings.Join(said, " "); got != want {
				t.Errorf("%s reads %s, not %s", name, got, want)
			}
		}
	})
}

// TestAFollowerReadsTheSame follows changes as they happen, and then reads the
// log.
func TestAFollowerReadsTheSame(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx := as(t, "p1", access.RoleMember)
		_, start := all(t, ctx, s, change.Position{}, change.Filter{})
		following := s.Follow(change.Filter{}, start)
		defer following.Stop()
		want := []string{}
		for i := range 25 {
			name := fmt.Sprint("CUSTOM_", i)
			if _, err := s.CreateTrait(storetest.AsAdmin(), name); err != nil {
				t.Fatal(err)
			}
			want = append(want, "Trait "+name+" CREATED")
		}
		within, cancel := context.WithTimeout(ctx, patience.Of(t, 5*time.Second))
		defer cancel()
		var got []string
		for len(got) < len(want) {
			if err := following.Wait(within); err != nil {
				t.Fatalf("%v after %v", err, got)
			}
			changes, err := following.Next(within, 4)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range changes {
				got = append(got, words(c))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("who follows reads %v", got)
		}
		if read, _ := all(t, ctx, s, start, change.Filter{Kinds: []change.Kind{change.Trait}}); !slices.Equal(read,
			want) {
			t.Errorf("the log has %v", read)
		}
		if read, _ := all(t, ctx, s, start, change.Filter{Keys: []string{"CUSTOM_3", "CUSTOM_1"}}); !slices.Equal(read,
			[]string{want[1], want[3]}) {
			t.Errorf("of two keys the log has %v", read)
		}
		latest, err := s.Latest(ctx, change.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		if read, _ := all(t, ctx, s, latest, change.Filter{}); len(read) > 0 {
			t.Errorf("after the latest there are %v", read)
		}
	})
}

// TestTheNewestChangeIsKnown asks a server whose copies in memory cannot be
// updated yet. The position before all changes is no answer.
func TestTheNewestChangeIsKnown(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.SQLite(t))
	lags := func(context.Context, []changelog.TransactionID) error { return errors.New("the copy lags") }
	starting, err := changedb.Open(t.Context(), s.DB, s.Discovers, lags, lags)
	if err != nil {
		t.Fatal(err)
	}
	if latest, err := starting.Latest(storetest.AsAdmin(), change.Filter{}); !errors.Is(err, problem.ErrUnavailable) {
		t.Errorf("the newest change is %+v, %v", latest, err)
	}
}

// TestACursorIsOfThisDatabase checks that foreign cursors and expired cursors
// are refused.
func TestACursorIsOfThisDatabase(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		now := s.Now()
		p := change.Position{ID: 7, At: now}
		if got, err := s.PositionOf(s.Cursor(p)); err != nil || got != p {
			t.Errorf("%v is %v again, %v", p, got, err)
		}
		old := s.Cursor(change.Position{ID: 7, At: now.Add(-s.KeepsChanges() - time.Minute)})
		for _, cursor := range []string{"", "x", old, strings.Repeat("A", len(old))} {
			if _, err := s.PositionOf(cursor); !errors.Is(err, problem.ErrInvalidInput) {
				t.Errorf("%q: %v", cursor, err)
			}
		}
	})
}

// TestAPageReadsNoOtherKinds counts the pages of the database that a page of
// changes of a rare kind reads, while there are many changes of other kinds.
func TestAPageReadsNoOtherKinds(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Postgres(t))
	admin := as(t, "", access.RoleAdmin)
	if _, err := s.CreateTrait(admin, "CUSTOM_ONE"); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		`INSERT INTO changes (created_at, kind, key, audience, what, transaction)
			SELECT created_at, kind, key, audience, what, transaction FROM changes, generate_series(1, 20000)
			WHERE key = 'CUSTOM_ONE'`,
		"VACUUM ANALYZE changes",
	} {
		if _, err := s.Pool.ExecContext(admin, statement); err != nil {
			t.Fatal(err)
		}
	}
	pages := regexp.MustCompile(`Buffers: shared hit=(\d+)(?: read=(\d+))?`)
	counting := store.EachStatement(admin, func(query string, args any) {
		list, _ := args.([]any)
		if !strings.Contains(query, "UNION ALL") {
			return
		}
		first := ""
		err := s.Query(admin, s.Pool, "EXPLAIN (ANALYZE, BUFFERS) "+query, func(rows *sql.Rows) error {
			var line string
			err := rows.Scan(&line)
			if first == "" {
				first = pages.FindString(line)
			}
			return err
		}, list...)
		read := 0
		for _, count := range pages.FindStringSubmatch(first)[1:] {
			n, _ := strconv.Atoi(count)
			read += n
		}
		if err != nil || read > 50 {
			t.Errorf("%v: %s reads %d pages", err, query, read)
		}
	})
	filter := change.Filter{Kinds: []change.Kind{change.Namespace}}
	changes, _, err := s.Changes(counting, filter, change.Position{}, 20)
	if err != nil || len(changes) == 20 {
		t.Errorf("%d changes, %v", len(changes), err)
	}
	if _, err := s.Latest(counting, filter); err != nil {
		t.Error(err)
	}
}
