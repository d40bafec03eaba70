package placementdb_test

import (
	"net/url"
	"testing"

	"github.com/cadastre-dev/cadastre/internal/pgproxy"
	"github.com/cadastre-dev/cadastre/internal/soak"
	"github.com/cadastre-dev/cadastre/store/placementdb"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestWorldReplay runs schedules of the model on two servers of one PostgreSQL
// database, each behind a proxy that delays, drops and cuts. It checks the same
// invariants for every world of either server. The database server sometimes
// crashes. CADASTRE_SOAK_REPLAYS sets the number of schedules,
// CADASTRE_SOAK_SEED the first seed.
func TestWorldReplay(t *testing.T) {
	t.Parallel()
	address, crash := storetest.CrashingPostgres(t)
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	var proxies []*pgproxy.Proxy
	var stores []*placementdb.PlacementStore
	for range 2 {
		proxy := pgproxy.New(t, at.Host)
		through := *at
		through.Host = proxy.Address()
		proxies = append(proxies, proxy)
		stores = append(stores, storetest.Open(t, through.String()).PlacementStore)
	}
	run := placementdb.NewReplay(t, storetest.Database(t, address), crash, stores, proxies)
	seed, replays := soak.Seed(t), uint64(soak.Count(t, "CADASTRE_SOAK_REPLAYS", 20))
	for i := range replays {
		run.Run(t, seed+i)
	}
	run.Log(t)
}
