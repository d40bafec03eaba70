package metadefdb_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/metadef/metadeftest"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/metadefdb"
	"github.com/cadastre-dev/cadastre/store/resourcedb"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// reader is a store with definitions in memory, and another one on the same
// connections without.
type reader struct{ kept, read *store.Store }

func newReader(s *store.Store) reader {
	read := *s
	read.MetadefStore = metadefdb.New(s.DB, store.DefinitionOptions{ResidentBytes: -1})
	read.ResourceStore = resourcedb.New(s.DB, read.MetadefStore, store.ResourceOptions{})
	return reader{s, &read}
}

// difference compares the answers of both stores at one instant. It returns ""
// if they are equal.
func (r reader) difference(t *testing.T, viewer access.Viewer, resourceType string) string {
	t.Helper()
	return r.differenceOn(t, viewer, resourceType, true)
}

// differenceOn is difference on a standby, or on the primary.
func (r reader) differenceOn(t *testing.T, viewer access.Viewer, resourceType string, spread bool) string {
	t.Helper()
	ctx, reading := r.kept.WithReading(access.WithViewer(t.Context(), viewer), store.AtOnce)
	defer reading.End()
	if spread {
		reading.Spread()
	}
	var said []string
	for _, s := range []*store.Store{r.kept, r.read} {
		applied, err := s.Definitions(ctx, resourceType, nil, "")
		report, reportErr := s.ValidateMetadata(ctx, resource.Validation{ResourceType: &resourceType,
			Values: []metadef.KeyValue{{Key: "size", Value: "5"}, {Key: "p1", Value: "x"}, {Key: "szie", Value: "1"}}})
		text, marshalErr := json.Marshal(map[string]any{"applied": applied, "report": report})
		if marshalErr != nil {
			t.Fatal(marshalErr)
		}
		said = append(said, fmt.Sprint(withoutIn.ReplaceAllString(string(text), ""), err, reportErr))
	}
	if said[0] == said[1] {
		return ""
	}
	return "from memory\n" + said[0] + "\nfrom the database\n" + said[1]
}

// withoutIn matches the namespaces that may or may not come with definitions.
var withoutIn = regexp.MustCompile(`,"In":(?:null|\{[^{}]*\})`)

// writeDefinitions makes a random change of a few definitions.
func writeDefinitions(ctx context.Context, s *store.Store, chance *rand.Rand, n int) error {
	space, of := string(rune('A'+chance.IntN(4))), []string{"physical:host", "X::One", "X::Two"}[chance.IntN(3)]
	title, prefix := fmt.Sprint("t", n), fmt.Sprintf("p%d:", chance.IntN(3))
	visibility := []access.Visibility{access.Private, access.Public}[chance.IntN(2)]
	size := metadeftest.Property("size", metadef.Integer)
	var err error
	switch chance.IntN(9) {
	case 0, 1:
		_, err = s.CreateNamespace(ctx, metadef.NamespaceInput{Name: space, NamespacePatch: metadef.NamespacePatch{
			Visibility: metadeftest.To(visibility), Owner: metadeftest.To("a"), Description: metadeftest.To(title)},
			Properties: []metadef.PropertyInput{size},
			ResourceTypeAssociations: []metadef.DocumentAssociation{{ResourceType: of, Prefix: &prefix},
				{ResourceType: "physical:host"}}})
	case 2:
		_, err = s.DeleteNamespace(ctx, space, nil)
	case 3:
		_, err = s.UpdateNamespace(ctx,
			metadef.NamespaceChange{Name: space,
				NamespacePatch: metadef.NamespacePatch{Visibility: metadeftest.To(visibility),
					Description: metadeftest.To(title)}})
	case 4:
		_, _, err = s.CreateProperty(ctx, newProperty(space, fmt.Sprint("p", chance.IntN(3))))
	case 5:
		_, _, err = s.ShareNamespace(ctx, space, []string{"b", metadef.EveryProject}[chance.IntN(2)], metadef.Reader,
			nil)
	case 6:
		_, _, err = s.UnshareNamespace(ctx, space, []string{"b", metadef.EveryProject}[chance.IntN(2)], nil)
	case 7:
		_, _, err = s.AssociateResourceType(ctx,
			metadef.NewAssociation{Namespace: space,
				DocumentAssociation: metadef.DocumentAssociation{ResourceType: of, Prefix: &prefix}})
	default:
		_, err = s.UpdateResourceType(ctx,
			metadef.ResourceTypeChange{Name: of, Strict: metadeftest.To(chance.IntN(2) == 0)})
	}
	return err
}

// isRefused reports whether a write succeeded or was refused due to a
// concurrent change.
func isRefused(err error) bool {
	refusal, invalid := new(problem.Refusal), new(problem.InvalidInput)
	return err == nil || errors.As(err, &refusal) || errors.As(err, &invalid)
}

// instantsRead is the number of instants that the test reads from each server.
const instantsRead = 120

// TestDefinitionsOfAnInstantAreTheDatabases compares the definitions in memory
// and in the database at one instant, while several clients write to one server
// or to two. The second one reads on a standby.
func TestDefinitionsOfAnInstantAreTheDatabases(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		servers := []reader{newReader(storetest.Open(t, url))}
		if servers[0].kept.Postgres() {
			pair := storetest.PostgresPair(t)
			servers = []reader{newReader(storetest.Open(t, pair.Primary)),
				newReader(pair.OpenSpread(t, store.Options{}))}
		}
		ctx, stop := context.WithCancel(storetest.AsAdmin())
		var writers, readers sync.WaitGroup
		for client := range 2 {
			writers.Go(func() {
				chance := rand.New(rand.NewPCG(uint64(client), 15))
				for n := 0; ctx.Err() == nil; n++ {
					if err := writeDefinitions(ctx, servers[client%len(servers)].kept, chance, n); ctx.Err() == nil &&
						!isRefused(err) {
						t.Errorf("a write: %v", err)
					}
				}
			})
		}
		for i, server := range servers {
			readers.Go(func() {
				chance := rand.New(rand.NewPCG(uint64(i), 16))
				for n := range instantsRead {
					viewer := access.Viewer{ProjectID: []string{"a", "b", "c", ""}[chance.IntN(4)],
						Roles: []string{[]string{access.RoleReader,
							access.RoleReader, access.RoleAdmin}[chance.IntN(3)]}}
					if found := server.difference(t, viewer,
						[]string{"physical:host", "X::One", "X::Two"}[chance.IntN(3)]); found != "" {
						t.Errorf("instant %d of %+v: %s", n, viewer, found)
						return
					}
				}
			})
		}
		readers.Wait()
		stop()
		writers.Wait()
		storetest.CheckSpread(t, servers[len(servers)-1].kept)
	})
}

// TestAStandbyIsNotRemembered lets a commit wait for a standby that does not
// exist. Another standby shows it before the primary does. Memory then has it on
// that standby alone.
func TestAStandbyIsNotRemembered(t *testing.T) {
	t.Parallel()
	pair := storetest.PostgresPair(t)
	other := storetest.Open(t, pair.Primary)
	r := newReader(pair.OpenSpread(t, store.Options{}))
	create := func(name string) error {
		_, err := other.CreateNamespace(storetest.AsAdmin(),
			metadef.NamespaceInput{Name: name,
				ResourceTypeAssociations: []metadef.DocumentAssociation{{ResourceType: "physical:host"}}})
		return err
	}
	storetest.AlterSystem(t, pair.Primary, "synchronous_standby_names", "nobody")
	var waiting sync.WaitGroup
	count := func(url string) (rows int) {
		if err := storetest.Database(t, url).QueryRow("SELECT count(*) FROM namespaces WHERE name LIKE 'WAITS%'").
			Scan(&rows); err != nil {
			t.Fatal(err)
		}
		return rows
	}
	tries := 0
	storetest.Within(t, 20*time.Second, "a commit waits", func() bool {
		name := fmt.Sprint("WAITS", tries)
		waiting.Go(func() { _ = create(name) })
		tries++
		time.Sleep(200 * time.Millisecond)
		return count(pair.Primary) < count(pair.Standby)
	})
	for range 6 {
		if difference := r.difference(t, access.ViewerFrom(storetest.AsAdmin()), "physical:host"); difference != "" {
			t.Error(difference)
		}
		if difference := r.differenceOn(t, access.ViewerFrom(storetest.AsAdmin()),
			"physical:host", false); difference != "" {
			t.Error("on the primary: " + difference)
		}
	}
	storetest.AlterSystem(t, pair.Primary, "synchronous_standby_names", "")
	waiting.Wait()
	storetest.CheckSpread(t, r.kept)
}

// TestDefinitionsThatAreBehindAreFound checks that the comparison finds a
// server that takes old definitions for current ones. Catch ups run between the
// comparisons.
func TestDefinitionsThatAreBehindAreFound(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r, chance := newReader(s), rand.New(rand.NewPCG(3, 3))
		ctx, stop := context.WithCancel(storetest.AsAdmin())
		var following sync.WaitGroup
		following.Go(func() {
			for ctx.Err() == nil {
				if err := s.FollowDefinitions(ctx); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
		found := 0
		for n := range 60 {
			before := s.Memory()
			if err := writeDefinitions(storetest.AsAdmin(), s, chance, n); err != nil || s.IsMemory(before) {
				continue
			}
			s.WithoutCatchUps(t, func() {
				now := s.Memory()
				s.Remember(before)
				for _, of := range []string{"physical:host", "X::One", "X::Two"} {
					if difference := r.difference(t, access.ViewerFrom(storetest.AsAdmin()), of); difference != "" {
						t.Errorf("definitions that are known to be old are taken for those of the instant: %s",
							difference)
					}
				}
				s.Mistake(before)
				if r.difference(t, access.ViewerFrom(storetest.AsAdmin()), "physical:host") != "" {
					found++
				}
				s.Remember(now)
			})
		}
		stop()
		following.Wait()
		if found < 10 {
			t.Errorf("%d times a server that was behind was found", found)
		}
	})
}

// TestAStrictWriteIsJudgedByTheDatabase has a server with outdated definitions
// check writes. The definitions that the transaction of the write sees must
// decide.
func TestAStrictWriteIsJudgedByTheDatabase(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx := storetest.AsAdmin()
		size := metadeftest.Property("size", metadef.Integer)
		size.Maximum = metadeftest.To(10.0)
		if _, err := s.CreateNamespace(ctx, metadef.NamespaceInput{Name: "N",
			NamespacePatch:           metadef.NamespacePatch{Visibility: metadeftest.To(access.Public)},
			Properties:               []metadef.PropertyInput{size},
			ResourceTypeAssociations: []metadef.DocumentAssociation{{ResourceType: "X"}}}); err != nil {
			t.Fatal(err)
		}
		made, err := s.CreateResource(ctx, resource.Input{Type: "X", Name: "r"})
		if err != nil {
			t.Fatal(err)
		}
		set := func(value string) (int, error) {
			ctx, statements := store.CountStatements(ctx)
			_, _, err := s.ChangeMetadata(ctx,
				resource.MetadataChange{Resource: made.UUID, Items: []metadef.KeyValue{{Key: "size", Value: value}}})
			return statements(), err
		}
		advice := s.Memory()
		if _, err := s.UpdateResourceType(ctx,
			metadef.ResourceTypeChange{Name: "X", Strict: metadeftest.To(true)}); err != nil {
			t.Fatal(err)
		}
		fresh, err := set("9")
		if err != nil {
			t.Fatal(err)
		}
		s.Remember(advice)
		if _, err := set("11"); !isInvalid(err) {
			t.Errorf("a write to what has become strict: %v", err)
		}
		ofTen := s.Memory()
		if _, _, err := s.UpdateProperty(ctx, metadef.PropertyChange{Namespace: "N", Name: "size",
			PropertyPatch: metadef.PropertyPatch{Maximum: metadeftest.To(5.0)}}); err != nil {
			t.Fatal(err)
		}
		ofFive := s.Memory()
		var behind int
		s.WithoutCatchUps(t, func() {
			s.Remember(ofTen)
			behind, err = set("8")
		})
		if !isInvalid(err) {
			t.Errorf("8 of at most 5, as a server that knows of at most 10: %v", err)
		}
		s.Remember(ofFive)
		if _, err := set("8"); !isInvalid(err) {
			t.Errorf("8 of at most 5: %v", err)
		}
		if again, err := set("4"); err != nil || again != fresh {
			t.Errorf("4 of at most 5 in %d statements, at first in %d: %v", again, fresh, err)
		}
		if behind <= fresh-2 {
			t.Errorf("a server that is behind judges in %d statements, another one in %d", behind, fresh)
		}
	})
}

func isInvalid(err error) bool {
	invalid := new(problem.InvalidInput)
	return errors.As(err, &invalid)
}

// TestManyDefinitionsAreNotKept checks that definitions that need too much
// memory are read from the database, with the same answers.
func TestManyDefinitionsAreNotKept(t *testing.T) {
	t.Parallel()
	withDefinitions(t, store.DefinitionOptions{ResidentBytes: 13_000}, func(t *testing.T, s *store.Store) {
		ctx := storetest.AsAdmin()
		for i := range 8 {
			property := metadeftest.Property("size", metadef.String)
			property.Description = metadeftest.To(strings.Repeat("d", 200))
			if _, err := s.CreateNamespace(ctx,
				metadef.NamespaceInput{Name: fmt.Sprint("N", i), Properties: []metadef.PropertyInput{property},
					ResourceTypeAssociations: []metadef.DocumentAssociation{{ResourceType: "X"}}}); err != nil {
				t.Fatal(err)
			}
			if kept := s.KeepsDefinitions(); kept && i > 4 || !kept && i < 3 {
				t.Errorf("definitions are kept with %d namespaces: %v", i+1, kept)
			}
			counted, statements := store.CountStatements(ctx)
			applied, err := s.Definitions(counted, "X", nil, "")
			if err != nil || len(applied) != i+1 || (statements() == 0) != s.KeepsDefinitions() {
				t.Errorf("%d of %d namespaces in %d statements: %v", len(applied), i+1, statements(), err)
			}
		}
	})
}

// BenchmarkDefinitionsInMemory measures the memory of definitions.
func BenchmarkDefinitionsInMemory(b *testing.B) {
	s := storetest.Open(b, storetest.SQLite(b))
	ctx := storetest.AsAdmin()
	for i := range 200 {
		var properties []metadef.PropertyInput
		for k := range 50 {
			property := metadeftest.Property(fmt.Sprintf("property_%d_%d", i, k), metadef.String)
			property.Description = metadeftest.To(strings.Repeat("what it is for ", 8) + fmt.Sprint(i, k))
			properties = append(properties, property)
		}
		if _, err := s.CreateNamespace(ctx, metadef.NamespaceInput{Name: fmt.Sprint("N", i), Properties: properties,
			ResourceTypeAssociations: []metadef.DocumentAssociation{{ResourceType: fmt.Sprint("X",
				i%10)}}}); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		used, supposed, properties := s.MeasureDefinitions(b)
		b.ReportMetric(float64(used)/float64(properties), "B/property")
		b.ReportMetric(float64(supposed)/float64(properties), "supposed-B/property")
	}
}

// TestOneCatchUpServesAllThatWait has many goroutines write definitions while
// catch-ups are held. They must all wait for the same catch-up, which shows the
// last write. Afterwards they must not read the change log, which the test
// locks.
func TestOneCatchUpServesAllThatWait(t *testing.T) {
	t.Parallel()
	url := storetest.Postgres(t)
	s, beside := storetest.Open(t, url), storetest.Open(t, url)
	const writers = 20
	// the others' commits may take long
	ctx, cancel := context.WithTimeout(storetest.AsAdmin(), patience.Of(t, 10*time.Minute))
	defer cancel()
	catchUp := s.HoldCatchUps(t)
	var writing sync.WaitGroup
	for i := range writers {
		writing.Go(func() {
			if _, err := s.CreateNamespace(ctx, metadef.NamespaceInput{Name: fmt.Sprint("N", i)}); err != nil {
				t.Error(err)
			}
		})
	}
	committed := func() bool {
		found, err := sqldb.Column[int](t.Context(), beside.DB, beside.Pool, `SELECT count(*) FROM namespaces`)
		if err != nil {
			t.Fatal(err)
		}
		return found[0] == writers
	}
	if !patience.Until(t, time.Minute, committed) {
		t.Error("the writers did not commit")
	}
	locking, err := sql.Open("postgres", url)
	if err != nil {
		t.Fatal(err)
	}
	defer locking.Close() // releases the lock, too
	catchUp(func() {
		if tx, err := locking.BeginTx(t.Context(), nil); err != nil {
			t.Error(err)
		} else if _, err := tx.ExecContext(t.Context(), "LOCK TABLE changes"); err != nil {
			t.Error(err)
		}
	})
	writing.Wait()
}
