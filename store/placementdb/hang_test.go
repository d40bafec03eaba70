package placementdb_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/internal/pgproxy"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestADatabaseThatHangs stops a database, or drops its packets. Statements
// must end a second after their limit, and the server must not be ready within
// five seconds. When the database continues, everything must work again.
func TestADatabaseThatHangs(t *testing.T) {
	t.Parallel()
	t.Run("stopped", func(t *testing.T) {
		t.Parallel()
		address, hang, goOn := storetest.HangingPostgres(t)
		hangAndGoOn(t, address, hang, goOn)
	})
	t.Run("black hole", func(t *testing.T) {
		t.Parallel()
		at, err := url.Parse(storetest.Postgres(t))
		if err != nil {
			t.Fatal(err)
		}
		proxy := pgproxy.New(t, at.Host)
		at.Host = proxy.Address()
		hangAndGoOn(t, at.String(), func() { proxy.Swallow(true) }, func() { proxy.Swallow(false) })
	})
}

// hangLimit is the statement timeout.
const hangLimit = time.Second

func hangAndGoOn(t *testing.T, address string, hang, goOn func()) {
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	settings := at.Query()
	settings.Set("statement_timeout", fmt.Sprint(patience.Of(t, hangLimit).Milliseconds()))
	at.RawQuery = settings.Encode()
	s := storetest.Open(t, at.String())
	ctx := storetest.AsAdmin()
	if _, _, err := s.CreateResourceProvider(ctx, placement.NewProvider{Name: "before"}); err != nil {
		t.Fatal(err)
	}
	hang()
	var asking sync.WaitGroup
	for range 30 { // more than the number of connections
		asking.Go(func() {
			failsInTime(t, "read", func(ctx context.Context) error {
				_, err := s.NamespaceNamed(ctx, "none")
				return err
			})
		})
	}
	asking.Go(func() {
		failsInTime(t, "write", func(ctx context.Context) error {
			_, _, err := s.CreateResourceProvider(ctx, placement.NewProvider{Name: "meanwhile"})
			return err
		})
	})
	asking.Go(func() {
		began := time.Now()
		if err := s.Ready(ctx); err == nil || time.Since(began) > patience.Of(t, 5*time.Second) {
			t.Errorf("ready after %v: %v", time.Since(began), err)
		}
	})
	asking.Wait()
	goOn()
	storetest.Within(t, 20*time.Second, "ready again", func() bool { return s.Ready(ctx) == nil })
	storetest.Within(t, 20*time.Second, "written again", func() bool {
		_, _, err := s.CreateResourceProvider(ctx, placement.NewProvider{Name: "after"})
		return err == nil || errors.Is(err, problem.ErrAlreadyExists)
	})
	storetest.Within(t, 20*time.Second, "the world of the database", func() bool {
		difference, err := s.WorldDifference(ctx)
		return err == nil && difference == ""
	})
}

// failsInTime runs a request and checks that it is refused as unavailable soon
// after the statement timeout.
func failsInTime(t *testing.T, what string, ask func(context.Context) error) {
	t.Helper()
	limit := patience.Of(t, 2*hangLimit)
	ctx, cancel := context.WithTimeout(storetest.AsAdmin(), limit)
	defer cancel()
	began := time.Now()
	err := ask(ctx)
	if !errors.Is(err, problem.ErrUnavailable) && !errors.Is(err, problem.ErrTimeout) || time.Since(began) > 3*limit {
		t.Errorf("%s after %v: %v", what, time.Since(began), err)
	}
}
