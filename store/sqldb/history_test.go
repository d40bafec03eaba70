package sqldb_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/storetest"
	"github.com/cadastre-dev/cadastre/store/upkeep"
)

// TestTheWritableOfSeveralHostsIsFound opens a database by a list of hosts: one
// where nothing listens, one that never answers, a standby and the primary.
func TestTheWritableOfSeveralHostsIsFound(t *testing.T) {
	t.Parallel()
	pair := storetest.PostgresPair(t)
	hole, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = hole.Close() }()
	url := strings.Replace(pair.URL, "@", fmt.Sprintf("@127.0.0.1:1,%s,", hole.Addr()), 1)
	s := storetest.Open(t, url)
	if _, err := s.CreateTrait(storetest.AsAdmin(), "CUSTOM_FOUND"); err != nil {
		t.Error(err)
	}
	if err := s.Ready(storetest.AsAdmin()); err != nil {
		t.Error(err)
	}
	if _, err := upkeep.Check(t.Context(), url, func(found upkeep.Finding) error {
		return fmt.Errorf("found %+v", found)
	}); err != nil {
		t.Error(err)
	}
	pair.Stop(t) // a standby is left
	for range 4 {
		if _, err := s.CreateTrait(storetest.AsAdmin(), "CUSTOM_NONE"); !errors.Is(err, problem.ErrUnavailable) {
			t.Errorf("without a primary: %v", err)
		}
	}
}
