package cli_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/cli"
	"github.com/cadastre-dev/cadastre/demo"
	"github.com/cadastre-dev/cadastre/demo/demotest"
	"github.com/cadastre-dev/cadastre/internal/patience"
)

// untilLine is the output of a command that ends after a number of lines.
type untilLine struct {
	strings.Builder
	lines int
	stop  func()
}

func (u *untilLine) Write(text []byte) (int, error) {
	defer func() {
		if strings.Count(u.String(), "\n") >= u.lines {
			u.stop()
		}
	}()
	return u.Builder.Write(text)
}

// TestSyncAllowsDeletes has a cloud that loses most of its flavors. Passes declare
// them gone only after a confirmation of the list.
func TestSyncAllowsDeletes(t *testing.T) {
	t.Setenv("CADASTRE_SERVER", demotest.Serve(t))
	t.Setenv("CADASTRE_TOKEN", demo.AdminToken)
	t.Chdir(t.TempDir())
	flavors := ""
	identity(t, func() string { return flavors })
	run := func(typed, flags string) (string, error) {
		var out strings.Builder
		line := "sync openstack --cloud prod --project operations --kinds flavors -o csv -c seen,absent,gone,refused " +
			flags
		err := cli.Run(t.Context(), cli.Program{Stdin: strings.NewReader(typed)}, strings.Fields(line), &out, &out)
		return out.String(), err
	}
	const heads = "seen,absent,gone,refused\n"
	for i, of := range []struct{ flavors, typed, flags, want, err string }{
		{`, {"id": "2", "name": "m1.small", "ram": 1, "disk": 1, "vcpus": 1}, {"id": "3", "name": "m1.medium", "ram": 1, "disk": 1, "vcpus": 1}`, "", "", heads + "3,0,0,0\n", ""},
		{"", "", "", heads + "1,2,0,0\n", ""},
		{"", "", "", heads + "1,2,0,2\n", ""},
		{"", "", "--allow-deletes images", heads + "1,0,0,2\n", ""},
		{"", "no", "--allow-deletes flavors", "RegionOne flavors 2 m1.small\nRegionOne flavors 3 m1.medium\n" +
			"Declare 2 things gone? Type yes: \n" + heads, "nothing was deleted"},
		{"", "yes\n", "--allow-deletes flavors", "RegionOne flavors 2 m1.small\nRegionOne flavors 3 m1.medium\n" +
			"Declare 2 things gone? Type yes: " + heads + "1,0,2,0\n", ""},
		{"", "", "--allow-deletes flavors --yes", heads + "1,0,0,0\n", ""},
		{`, {"id": "4", "vcpus": 1, "extra_specs": {"\u001b` + strings.Repeat("x", 255) + `": "1"}}`, "", "",
			"RegionOne flavors 4: resources cannot store the value of \uFFFD" + strings.Repeat("x", 255) + "\n" +
				heads + "2,0,0,0\n", ""},
	} {
		flavors = of.flavors
		out, err := run(of.typed, of.flags)
		if out != of.want || (err == nil) != (of.err == "") || err != nil && !strings.Contains(err.Error(), of.err) {
			t.Errorf("%d: %q, %v, want %q", i, out, err, of.want)
		}
	}
}

// TestSyncFollows runs a sync until it is interrupted after two passes, and with
// flags that are wrong.
func TestSyncFollows(t *testing.T) {
	t.Setenv("CADASTRE_SERVER", demotest.Serve(t))
	t.Setenv("CADASTRE_TOKEN", demo.AdminToken)
	t.Chdir(t.TempDir())
	passes, key := 0, strings.Repeat("x", 256)
	identity(t, func() string {
		passes++
		return `, {"id": "2", "vcpus": 1, "extra_specs": {"` + key + `": "1"}}` +
			strings.Repeat(`, {"id": "3", "vcpus": 1}`, min(passes-1, 1))
	})
	run := func(ctx context.Context, out io.Writer, flags string) error {
		line := "sync openstack --cloud prod --project operations " + flags
		return cli.Run(ctx, cli.Program{}, strings.Fields(line), out, out)
	}
	ctx, stop := context.WithTimeout(t.Context(), patience.Of(t, time.Minute))
	defer stop()
	out := &untilLine{lines: 4, stop: stop}
	err := run(ctx, out, "--kinds flavors --regions * --follow --interval 2s")
	want := "RegionOne flavors 2: resources cannot store the value of " + key + "\n" +
		"KIND     REGION     SEEN  CREATED  UPDATED  UNCHANGED  ABSENT  GONE  REFUSED  DELETED\n" +
		"flavors  RegionOne  2     2        0        0          0       0     0        0\n" +
		"flavors  RegionOne  3     1        0        2          0       0     0        0\n"
	if err != nil || out.String() != want {
		t.Errorf("%v, %q, want %q", err, out, want)
	}
	for flags, want := range map[string]string{
		"--interval 5m":                              "--interval requires --follow",
		"--follow --interval 10ms":                   `--interval: "10ms" is not a time of at least a second`,
		"--follow --interval images=soon":            `--interval: "soon" is not a time`,
		"--follow --interval cats=1m --kinds flavor": `--interval: "cats" is not a kind`,
		"--kinds flavor --follow --interval 1m":      `--kinds: "flavor" is not a kind`,
		"--allow-deletes flavor":                     `--allow-deletes: "flavor" is not a kind`,
		"--allow-deletes flavors --dry-run":          "can't be used together",
	} {
		if err := run(t.Context(), io.Discard, flags); err == nil ||
			!strings.Contains(err.Error(), want) || cli.ExitStatus(err) != 2 {
			t.Errorf("%s: %v, want %s", flags, err, want)
		}
	}
}
