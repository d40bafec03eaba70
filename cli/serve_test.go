package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/metadef"
)

// TestServeNamesAllWrongFlags starts a server with every kind of wrong flag.
// One error must name all of them, including those after the parser's first
// error, together with the program's own error.
func TestServeNamesAllWrongFlags(t *testing.T) {
	t.Setenv("CADASTRE_LIMIT_ALIASES", "many")
	t.Setenv("CADASTRE_LIMIT_DEPTH", "-1")
	program := Program{
		Serve: func(context.Context, ServeOptions) error { t.Error("a server is started"); return nil },
		Check: func(options ServeOptions) (ServeOptions, error) {
			return options, fmt.Errorf("--listen %s: no", options.Listen)
		},
	}
	err := Run(t.Context(), program,
		[]string{"serve", "--database-connections=1", "--listen", "nowhere", "--slow-operation", "x",
			"--log-format=xml", "--no-such-flag", "7", "--profile=shut", "--demo=perhaps", "--audit-retention=1",
			"--definition-bytes", "5"}, io.Discard, io.Discard)
	for _, flag := range []string{"$CADASTRE_LIMIT_DEPTH must be 0 or more", "--listen nowhere: no",
		"--slow-operation: ", "--log-format: must be one of",
		"--database-connections must be 4", "unknown flag --no-such-flag",
		"--profile: must be one of", "--demo: ", "--audit-retention: ",
		"$CADASTRE_LIMIT_ALIASES: ", "--definition-bytes is not a flag: set the key definition-bytes"} {
		if err == nil || strings.Count(err.Error(), flag) != 1 {
			t.Errorf("%v: want %s once", err, flag)
		}
	}
	if ExitStatus(err) != exitUsage {
		t.Errorf("the exit status is %d", ExitStatus(err))
	}
}

// TestServeRefusesNumbersOutOfRange starts a server with numbers out of the
// documented ranges.
func TestServeRefusesNumbersOutOfRange(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"namespaces-per-project: 0":             "namespaces-per-project must be 1 or more, is 0",
		"properties-per-namespace: 1001":        fmt.Sprintf("must be 1 to %d, is 1001", metadef.MaxDefinitions),
		"properties-per-namespace: 1000":        "",
		"definition-bytes: 65537":               fmt.Sprintf("must be 1 to %d, is 65537", metadef.MaxDefinition),
		"definition-bytes: 65536":               "",
		"max-metadata-items: -1":                "must be 0 or more, is -1",
		"max-metadata-items: 0":                 "",
		"audit-retention: -1h":                  "must be 1ms or more, is -1h",
		"keystone: {cache-ttl: 61s}":            "keystone.cache-ttl must be 1ms to 60s, is 1m1s",
		"keystone: {cache-ttl: 0}":              "must be 1ms to 60s, is 0",
		"keystone: {cache-ttl: 60s}":            "",
		"limits: {depth: -1}":                   "limits.depth must be 0 or more, is -1",
		"limits: {depth: 0}":                    "",
		"limits: {address-points: -0.5}":        "limits.address-points must be 0 or more, is -0.5",
		"limits: {address-points: .nan}":        "must be 0 or more, is NaN",
		"limits: {body-bytes: -1}":              "must be 0 or more, is -1",
		"limits: {operation-time: -1s}":         "must be 0 or more, is -1s",
		"limits: {depth: deep}":                 "limits.depth: must be an integer",
		"database-connections: 3":               "database-connections must be 4 or more, is 3",
		"slow-operation: -1s":                   "slow-operation must be 0s or more, is -1s",
		"limits: {depth: 99999999999999999999}": "limits.depth: must be an integer",
	} {
		served := false
		program := Program{Serve: func(context.Context, ServeOptions) error { served = true; return nil }}
		err := Run(t.Context(), program, []string{"serve", "--config", configFile(t, text)}, io.Discard, io.Discard)
		if served != (want == "") || served != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}
