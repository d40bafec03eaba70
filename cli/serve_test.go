package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/metadef"
)

// TestServeNamesAllWrongFlags starts a server with flags that are wrong in every
// way: one error names all of them, whatever stops the parser, and that of the
// program itself with them.
func TestServeNamesAllWrongFlags(t *testing.T) {
	t.Setenv("CADASTRE_LIMIT_ALIASES", "many")
	program := Program{
		Serve: func(context.Context, ServeOptions) error { t.Error("a server is started"); return nil },
		Check: func(options ServeOptions) error { return fmt.Errorf("--listen %s: no", options.Listen) },
	}
	err := Run(t.Context(), program, []string{"serve", "--limit-depth=-1", "--listen", "nowhere", "--limit-tokens", "x", "--log-format=xml", "--write-burst", "0",
		"--no-such-flag", "7", "--profile=shut", "--demo=perhaps", "--audit-retention=1"}, io.Discard, io.Discard)
	for _, flag := range []string{"--limit-depth must be 0 or more", "--listen nowhere: no", "--limit-tokens: ", "--log-format must be one of", "--write-burst must be 1", "unknown flag --no-such-flag",
		"--profile must be one of", "--demo: ", "--audit-retention: ", "--limit-aliases: "} {
		if err == nil || strings.Count(err.Error(), flag) != 1 {
			t.Errorf("%v: want %s once", err, flag)
		}
	}
	if ExitStatus(err) != exitUsage {
		t.Errorf("the exit status is %d", ExitStatus(err))
	}
}

// TestServeRefusesWhatItsFlagsDoNotTake starts a server with numbers beyond
// what the help says.
func TestServeRefusesWhatItsFlagsDoNotTake(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]string{
		"--namespaces-per-project=0":      "--namespaces-per-project must be 1 or more, is 0",
		"--properties-per-namespace=1001": fmt.Sprintf("must be 1 to %d, is 1001", metadef.MaxDefinitions),
		"--properties-per-namespace=1000": "",
		"--definition-bytes=65537":        fmt.Sprintf("must be 1 to %d, is 65537", metadef.MaxDefinition),
		"--definition-bytes=65536":        "",
		"--max-metadata-items=-1":         "must be 0 or more, is -1",
		"--max-metadata-items=0":          "",
		"--write-rate=-1":                 "must be 0 or more, is -1",
		"--write-burst=0":                 "must be 1 or more, is 0",
		"--audit-retention=-1h":           "must be 1ms or more, is -1h",
		"--keystone-cache-ttl=61s":        "--keystone-cache-ttl must be 1ms to 60s, is 1m1s",
		"--keystone-cache-ttl=0":          "must be 1ms to 60s, is 0",
		"--keystone-cache-ttl=60s":        "",
		"--limit-depth=-1":                "--limit-depth must be 0 or more, is -1",
		"--limit-depth=0":                 "",
		"--limit-address-points=-0.5":     "--limit-address-points must be 0 or more, is -0.5",
		"--limit-address-points=NaN":      "must be 0 or more, is NaN",
		"--limit-body-bytes=-1":           "must be 0 or more, is -1",
		"--limit-operation-time=-1s":      "must be 0 or more, is -1s",
		"--limit-depth=deep":              "expected a valid 64 bit int",
		"--profile=shut":                  `--profile must be one of`,
		"--no-such-flag":                  "unknown flag --no-such-flag",
	} {
		served := false
		program := Program{Serve: func(context.Context, ServeOptions) error { served = true; return nil }}
		err := Run(t.Context(), program, []string{"serve", flag}, io.Discard, io.Discard)
		if served != (want == "") || served != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("serve %s: got %v, want %q", flag, err, want)
		}
	}
}
