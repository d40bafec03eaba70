package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/cli"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestAServerRecordsTheCapacity waits for the first sample of a server.
func TestAServerRecordsTheCapacity(t *testing.T) {
	t.Parallel()
	server, _ := boot(t, "--demo", "--database", storetest.EmptySQLite(t),
		configured(t, "history-flavors: [n1.large, none]\n"))
	const query = `{
		classes: capacityHistory(bucket: FIVE_MINUTES, filter: {resourceClasses: ["VCPU"]}, last: 1) { nodes { used { max } } }
		projects: capacityHistory(groupBy: PROJECT, filter: {projectIds: ["web-shop"], resourceClasses: ["VCPU"]}, last: 1) { nodes { used { max } } }
		flavors: capacityHistory(groupBy: FLAVOR, bucket: DAY, last: 1) { nodes { flavor fitsAtLeast { max } } }
	}`
	const want = `{"classes":{"nodes":[{"used":{"max":114}}]},"projects":{"nodes":[{"used":{"max":30}}]},"flavors":{"nodes":[{"flavor":"n1.large","fitsAtLeast":{"max":92}}]}}`
	got := ""
	defer func() {
		if t.Failed() {
			t.Log(got)
		}
	}()
	storetest.Within(t, time.Minute, "the first sample", func() bool {
		time.Sleep(500 * time.Millisecond) // each look takes points
		got = answerOf(t, server.address, query)
		return got == want
	})
}

func TestFlavorsOfTheHistoryAreChecked(t *testing.T) {
	t.Parallel()
	for _, of := range []struct {
		flavors []string
		want    string
	}{
		{nil, ""},
		{make([]string, maxCloudFlavor+1), fmt.Sprintf("has %d names, at most %d", maxCloudFlavor+1, maxCloudFlavor)},
		{[]string{"a", ""}, "has an empty name"},
	} {
		err := checkHistory(cli.ServeOptions{HistoryFlavors: of.flavors})
		if (err == nil) != (of.want == "") || err != nil && !strings.Contains(err.Error(), of.want) {
			t.Errorf("%d flavors: %v", len(of.flavors), err)
		}
	}
}
