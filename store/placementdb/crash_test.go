package placementdb_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// victim is the environment variable that turns TestClaimUntilKilled on.
const victim = "CADASTRE_TEST_VICTIM"

func claimOne(provider, consumer string) placement.Claim {
	return placement.Claim{Consumers: []placement.ConsumerClaim{{UUID: consumer, ProjectID: "p", UserID: "u",
		Allocations: []placement.ProviderAllocation{{Provider: provider,
			Resources: []placement.Amount{{ResourceClass: "VCPU", Amount: 1}}}}}}}
}

// allThere checks that every acknowledged consumer has its allocations, and
// that use and world agree with the allocations.
func allThere(t testing.TB, s *store.Store, acknowledged []string) {
	t.Helper()
	found, err := s.ConsumersByUUID(storetest.AsAdmin(), acknowledged)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != len(acknowledged) {
		t.Errorf("%d of %d acknowledged claims are there", len(found), len(acknowledged))
	}
	isCounted(t, s)
	storetest.Within(t, 2*time.Second, "the world of the database", func() bool {
		difference, err := s.WorldDifference(storetest.AsAdmin())
		return err == nil && difference == ""
	})
}

// TestClaimUntilKilled is the process that TestNothingIsLostByKill kills.
func TestClaimUntilKilled(t *testing.T) {
	url := os.Getenv(victim)
	if url == "" {
		t.Skip("runs only as a program to be killed")
	}
	s, err := store.Open(t.Context(), store.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	storetest.RoomyProvider(t, s, storetest.UUID(1))
	for client := range 4 {
		go func() {
			for i := 0; ; i++ {
				consumer := storetest.UUID(1000 + 100_000*client + i)
				if _, err := s.SetAllocations(storetest.AsAdmin(), claimOne(storetest.UUID(1), consumer)); err != nil {
					fmt.Println("error", err)
					return
				}
				fmt.Println("acknowledged", consumer)
			}
		}()
	}
	select {}
}

// TestNothingIsLostByKill kills a process that claims, and checks that no
// acknowledged claim is lost.
func TestNothingIsLostByKill(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		program := exec.Command(os.Args[0], "-test.run=^TestClaimUntilKilled$")
		program.Env = append(os.Environ(), victim+"="+url)
		output, err := program.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := program.Start(); err != nil {
			t.Fatal(err)
		}
		var acknowledged []string
		for lines := bufio.NewScanner(output); lines.Scan(); {
			kind, rest, _ := strings.Cut(lines.Text(), " ")
			switch {
			case kind == "error":
				t.Error(rest)
			case kind == "acknowledged" && strings.Count(rest, "-") == 4 && len(rest) == 36:
				acknowledged = append(acknowledged, rest)
			}
			if len(acknowledged) == 300 {
				if err := program.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = program.Wait() // killed
		if len(acknowledged) < 300 {
			t.Fatalf("the program ended after %d claims", len(acknowledged))
		}
		allThere(t, storetest.Open(t, url), acknowledged)
	})
}

// outcomes are the results that clients got.
type outcomes struct {
	sync.Mutex
	acknowledged []string
	unanswered   int
}

// claimFrom runs eight clients that claim on several servers. It calls ended
// after each claim.
func claimFrom(servers []*store.Store, claims int,
	ended func(client, i int)) (told *outcomes, clients *sync.WaitGroup) {
	told, clients = new(outcomes), new(sync.WaitGroup)
	for client := range 8 {
		clients.Go(func() {
			for i := range claims {
				consumer := storetest.UUID(1000 + 100_000*client + i)
				_, err := servers[client%len(servers)].SetAllocations(storetest.AsAdmin(),
					claimOne(storetest.UUID(1), consumer))
				told.Lock()
				if err == nil {
					told.acknowledged = append(told.acknowledged, consumer)
				} else {
					told.unanswered++
				}
				told.Unlock()
				ended(client, i)
			}
		})
	}
	return told, clients
}

// claimsBetweenCuts is the number of claims, successful or not, between two
// cuts.
const claimsBetweenCuts = 12

// TestNothingIsLostByCutConnections repeatedly cuts all connections of two
// servers while clients claim. Some claims end without an answer. Acknowledged
// claims must be stored, and both worlds must learn the outcome of the others.
func TestNothingIsLostByCutConnections(t *testing.T) {
	t.Parallel()
	url := storetest.PostgresDatabase(t)
	servers := []*store.Store{storetest.Open(t, url), storetest.Open(t, url)}
	storetest.RoomyProvider(t, servers[0], storetest.UUID(1))
	db := storetest.Database(t, url)
	const claims = 60
	ended := make(chan struct{}, 8*claims)
	told, clients := claimFrom(servers, claims, func(int, int) { ended <- struct{}{} })
	for range cap(ended) / claimsBetweenCuts {
		if _, err := db.Exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`); err != nil {
			t.Fatal(err)
		}
		if !patience.Until(t, 30*time.Second, func() bool { return len(ended) >= claimsBetweenCuts }) {
			t.Fatal("the claims come to no end")
		}
		for range claimsBetweenCuts {
			<-ended
		}
	}
	clients.Wait()
	t.Logf("%d claims were acknowledged, %d ended without an answer", len(told.acknowledged), told.unanswered)
	for _, s := range servers {
		storetest.Within(t, 5*time.Second, "reachable again", func() bool {
			return s.Ready(storetest.AsAdmin()) == nil
		})
		allThere(t, s, told.acknowledged)
	}
}

// TestNothingIsLostByARestartOfPostgres crashes and restarts the database
// server while clients claim on two servers. Acknowledged claims must be
// stored, and both worlds must learn the outcome of the others.
func TestNothingIsLostByARestartOfPostgres(t *testing.T) {
	t.Parallel()
	url, crash := storetest.CrashingPostgres(t)
	servers := []*store.Store{storetest.Open(t, url), storetest.Open(t, url)}
	storetest.RoomyProvider(t, servers[0], storetest.UUID(1))
	half := make(chan struct{})
	told, clients := claimFrom(servers, 100, func(client, i int) {
		if client == 0 && i == 20 {
			close(half)
		}
	})
	select {
	case <-half:
	case <-time.After(patience.Of(t, 30*time.Second)):
		t.Fatal("the claims come to no end")
	}
	crash()
	clients.Wait()
	t.Logf("%d claims were acknowledged, %d ended without an answer", len(told.acknowledged), told.unanswered)
	if told.unanswered == 0 {
		t.Error("the restart ended no claim: it tests nothing")
	}
	for _, s := range servers {
		storetest.Within(t, 30*time.Second, "reachable again", func() bool {
			return s.Ready(storetest.AsAdmin()) == nil
		})
		allThere(t, s, told.acknowledged)
	}
}
