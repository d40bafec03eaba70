package cli

import (
	"context"
	"io"
	"strings"
	"testing"
)

// TestServeRefusesWhatItsFlagsDoNotTake starts a server with numbers beyond what
// the help says.
func TestServeRefusesWhatItsFlagsDoNotTake(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]string{
		"--namespaces-per-project=0":      "must be 1 or more, is 0",
		"--properties-per-namespace=1001": "must be 1 to 1000, is 1001",
		"--definition-bytes=65537":        "must be 1 to 65536, is 65537",
		"--max-metadata-items=-1":         "must be 0 or more, is -1",
		"--write-rate=-1":                 "must be 0 or more, is -1",
		"--write-burst=0":                 "must be 1 or more, is 0",
		"--audit-retention=-1h":           "must be more than 0s, is -1h",
		"--keystone-cache-ttl=61s":        "at most 60s, is 1m1s",
		"--limit-depth=-1":                "no --limit can be negative",
		"--limit-address-points=-0.5":     "no --limit can be negative",
		"--limit-operation-time=-1s":      "no --limit can be negative",
	} {
		served := false
		program := Program{Serve: func(context.Context, ServeOptions) error { served = true; return nil }}
		err := Run(t.Context(), program, []string{"serve", flag}, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) || served {
			t.Errorf("serve %s: got %v, want %q", flag, err, want)
		}
	}
}
