package storetest

import (
	"database/sql"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/store"
)

// Pair is a PostgreSQL server and its standby, without synchronous replication.
type Pair struct {
	// URL is the URL of an empty database on both. The standby comes first, so
	// that connections after its promotion reach it.
	URL string
	// Primary and Standby are the URLs of the two servers. Standby of a
	// PostgresChain is its last server.
	Primary, Standby string
	one, other       *cluster
}

// PostgresPair starts a server and its standby, until the test ends.
func PostgresPair(t testing.TB) *Pair {
	t.Helper()
	return pairOf(t, startChain(t, 2))
}

// PostgresChain is PostgresPair with another standby, which follows the standby.
// Reads of OpenSpread go there.
func PostgresChain(t testing.TB) *Pair {
	t.Helper()
	chain := startChain(t, 3)
	p := pairOf(t, chain)
	p.Standby = chain[2].url
	return p
}

// startChain starts a server, and standbys that follow the one before them.
func startChain(t testing.TB, servers int) []*cluster {
	t.Helper()
	chain := []*cluster{unstarted(t)}
	for len(chain) < servers {
		next, err := chain[0].copied()
		if err != nil {
			t.Fatal(err)
		}
		chain = append(chain, next)
	}
	for i, one := range chain {
		if i > 0 {
			if err := one.follow(chain[i-1].url); err != nil {
				t.Fatal(err)
			}
		}
		one.start(t)
	}
	return chain
}

func pairOf(t testing.TB, chain []*cluster) *Pair {
	t.Helper()
	primary, standby := chain[0], chain[1]
	of, err := url.Parse(primary.url)
	if err != nil {
		t.Fatal(err)
	}
	of.Host = fmt.Sprintf("127.0.0.1:%d,127.0.0.1:%d", standby.port, primary.port)
	return &Pair{URL: of.String(), Primary: primary.url, Standby: standby.url, one: primary, other: standby}
}

// copied returns a cluster with a copy of the data. No server may have run on
// the data yet.
func (c *cluster) copied() (*cluster, error) {
	other, err := inNewFolder(c.programs)
	if err != nil {
		return nil, err
	}
	return other, other.program("cp", "-R", "-p", c.data, other.data)
}

// follow makes the cluster a standby of the server at a URL.
func (c *cluster) follow(url string) error {
	const following = `touch data/standby.signal && echo "primary_conninfo = '$0'" >>data/postgresql.auto.conf`
	return c.program("/bin/sh", "-c", following, url)
}

// Level waits until the standby has everything that the primary has at the call.
func (p *Pair) Level(t testing.TB) {
	t.Helper()
	var position string
	if err := Database(t, p.Primary).QueryRow("SELECT pg_current_wal_lsn()").Scan(&position); err != nil {
		t.Fatal(err)
	}
	standby := Database(t, p.Standby)
	Within(t, 20*time.Second, "the standby is level", func() bool {
		var level bool
		err := standby.QueryRow("SELECT pg_last_wal_replay_lsn() >= $1::pg_lsn", position).Scan(&level)
		return err == nil && level
	})
}

// Part cuts the standby from its primary. Later writes of the primary are not in
// the history of the standby.
func (p *Pair) Part(t testing.TB) {
	t.Helper()
	AlterSystem(t, p.other.url, "primary_conninfo", "")
	standby := Database(t, p.other.url)
	Within(t, 20*time.Second, "the standby receives nothing", func() bool {
		var receivers int
		err := standby.QueryRow("SELECT count(*) FROM pg_stat_wal_receiver").Scan(&receivers)
		return err == nil && receivers == 0
	})
}

// AlterSystem changes a setting of a server, which applies it soon.
func AlterSystem(t testing.TB, url, setting, value string) {
	t.Helper()
	db := Database(t, url)
	for _, statement := range []string{fmt.Sprintf("ALTER SYSTEM SET %s = '%s'", setting, value),
		"SELECT pg_reload_conf()"} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
}

// Promote makes the standby a primary. The old primary still runs.
func (p *Pair) Promote(t testing.TB) {
	t.Helper()
	if err := p.other.control("promote"); err != nil {
		t.Fatal(err)
	}
}

// Promoted returns the database of the server that Promote promotes.
func (p *Pair) Promoted(t testing.TB) *sql.DB { return Database(t, p.other.url) }

// Stop stops the first primary immediately.
func (p *Pair) Stop(t testing.TB) {
	t.Helper()
	if err := p.one.control("stop", "-m", "immediate"); err != nil {
		t.Fatal(err)
	}
}

// OpenSpread opens the database of the primary, with its standby for reads. It
// waits until the standby answers.
func (p *Pair) OpenSpread(t testing.TB, options store.Options) *store.Store {
	t.Helper()
	p.Level(t)
	options.URL, options.ReadURL = p.Primary, p.Standby
	s := openWith(t, options)
	CheckSpread(t, s)
	return s
}

// CheckSpread logs how many reads the standby of a store has answered, and waits
// until it answers one. It does nothing more for a store without a standby.
func CheckSpread(t testing.TB, s *store.Store) {
	t.Helper()
	t.Logf("%+v", s.StandbyReads())
	if len(s.StandbyReads()) == 0 {
		return
	}
	Within(t, 20*time.Second, "the standby answers reads", func() bool {
		ctx, reading := s.WithReading(AsAdmin(), store.AtOnce)
		defer reading.End()
		reading.Spread()
		_, err := s.World(ctx)
		return err == nil && reading.IsSpread()
	})
}

// StopStandby stops the standby immediately.
func (p *Pair) StopStandby(t testing.TB) {
	t.Helper()
	if err := p.other.control("stop", "-m", "immediate"); err != nil {
		t.Error(err)
	}
}
