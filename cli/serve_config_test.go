package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// serveSettings returns the settings of `serve`.
func serveSettings(t *testing.T) []*param {
	t.Helper()
	settings := settingsOf(new(serveCommand).params())
	if n := reflect.TypeFor[ServeOptions]().NumField(); len(settings) < n {
		t.Fatalf("%d settings, and ServeOptions has %d fields", len(settings), n)
	}
	return settings
}

// sample returns a value of a setting other than its default, in the form of
// the environment.
func sample(t *testing.T, flag *param) string {
	switch {
	case flag.flag == "database":
		return "postgres://user:pass%20word@host/name?sslmode=disable&password=pass%20word"
	case flag.has("secret"):
		return "pass word"
	case flag.attributes["enum"] != "":
		return slices.DeleteFunc(strings.Split(flag.attributes["enum"], ","), func(of string) bool {
			return of == flag.fallback || of == ""
		})[0]
	}
	switch flag.typeInWords() {
	case "true or false":
		return "true"
	case "a string":
		return `/tmp/a: "b" # c`
	case "a list of strings":
		return "a: 1,#b"
	case "a mapping to strings":
		return "x y=admin;z=reader"
	case "a duration such as 10s":
		return "59s"
	case "a number":
		return "0.5"
	case "an integer":
		return "999"
	}
	t.Fatalf("no sample for %s", flag.flag)
	return ""
}

// served returns the options that the program gets from arguments of `serve`,
// and the output of --print-config.
func served(t *testing.T, args ...string) (options ServeOptions, printed string) {
	t.Helper()
	program := Program{Serve: func(_ context.Context, got ServeOptions) error { options = got; return nil }}
	var out strings.Builder
	args = append([]string{"serve"}, args...)
	if err := errors.Join(Run(t.Context(), program, args, io.Discard, io.Discard),
		Run(t.Context(), program, append(args, "--print-config"), &out, io.Discard)); err != nil {
		t.Fatal(err)
	}
	options.sources = nil
	return options, out.String()
}

// configFile writes a file of settings.
func configFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cadastre.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestThePrintedConfigurationIsReadBack sets every setting to a value other
// than its default, prints the configuration, and reads it as a file.
func TestThePrintedConfigurationIsReadBack(t *testing.T) {
	absent, defaults := served(t)
	if read, again := served(t, "--config", configFile(t, defaults)); again != defaults ||
		!reflect.DeepEqual(read, absent) {
		t.Errorf("the defaults\n%s\nread back are\n%s\nor %+v", defaults, again, read)
	}
	settings := serveSettings(t)
	for _, flag := range settings {
		t.Setenv(envOf(flag), sample(t, flag))
	}
	set, printed := served(t)
	before, after := leaves(t, defaults), leaves(t, printed)
	for _, flag := range settings {
		key := keys.Replace(flag.flag)
		if value, ok := after[key]; !ok || value == before[key] {
			t.Errorf("%s is printed as %v; its default is %v", key, value, before[key])
		}
		_ = os.Unsetenv(envOf(flag)) // t.Setenv restores it
	}
	if len(after) != len(settings) {
		t.Errorf("%d settings are printed, want %d", len(after), len(settings))
	}
	_, refused := served(t, "--database", "host=h password='pass word'") // libpq's own form
	if strings.Contains(printed, "word") && strings.Contains(printed, "pass%20word") ||
		strings.Contains(printed+refused, "pass word") {
		t.Errorf("a secret is printed:\n%s", printed)
	}
	read, again := served(t, "--config", configFile(t, printed))
	if again != printed {
		t.Errorf("printed\n%s\nread back it is\n%s", printed, again)
	}
	for _, options := range []*ServeOptions{&set, &read} {
		options.Database, options.Keystone.Password, options.Keystone.CredentialSecret = "", "", ""
	}
	if !reflect.DeepEqual(set, read) {
		t.Errorf("set\n%+v\nread back it is\n%+v", set, read)
	}
}

// TestCredentialsAreSettings has a credential for every setting. They override
// the file, and the environment overrides them.
func TestCredentialsAreSettings(t *testing.T) {
	_, defaults := served(t)
	file, folder := "--config="+configFile(t, defaults), t.TempDir()
	t.Setenv("CREDENTIALS_DIRECTORY", folder)
	settings := serveSettings(t)
	for _, flag := range settings {
		value, path := sample(t, flag), filepath.Join(folder, flag.flag)
		if err := os.WriteFile(path, []byte(value+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if flag.isPath() { // the credential is the file
			value = path
		}
		t.Setenv(envOf(flag), value)
	}
	want, printed := served(t, file)
	for _, flag := range settings {
		_ = os.Unsetenv(envOf(flag)) // t.Setenv restores it
	}
	if got, again := served(t, file); again != printed || !reflect.DeepEqual(got, want) {
		t.Errorf("the credentials are\n%s\nwant\n%s", again, printed)
	}
	t.Setenv("CADASTRE_LISTEN", "127.0.0.1:1")
	if got, _ := served(t, file); got.Listen != "127.0.0.1:1" || got.Database != want.Database {
		t.Errorf("with a variable: %s, %s", got.Listen, got.Database)
	}
	if err := errors.Join(os.Remove(filepath.Join(folder, "database")),
		os.Mkdir(filepath.Join(folder, "database"), 0o700)); err != nil {
		t.Fatal(err)
	}
	err := Run(t.Context(), Program{}, []string{"serve", "--print-config"}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "read the credential database") {
		t.Errorf("a folder is read as a credential: %v", err)
	}
}

// leaves returns the settings of a printed configuration by their keys.
func leaves(t *testing.T, text string) map[string]string {
	t.Helper()
	var top map[string]any
	if err := yaml.Unmarshal([]byte(text), &top); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for key, value := range top {
		if group, ok := value.(map[string]any); ok && slices.Contains(groups, key) {
			for inner, value := range group {
				found[key+"."+inner] = fmt.Sprint(value)
			}
			continue
		}
		found[key] = fmt.Sprint(value)
	}
	return found
}

// TestFlagsOverrideTheEnvironmentAndThatTheFile sets every setting in the file,
// in the environment and, if it is a flag, on the command line.
func TestFlagsOverrideTheEnvironmentAndThatTheFile(t *testing.T) {
	settings := serveSettings(t)
	_, defaults := served(t)
	for _, flag := range settings {
		t.Setenv(envOf(flag), sample(t, flag))
	}
	_, samples := served(t)
	file := "--config=" + configFile(t, samples)
	for _, flag := range settings {
		value := flag.fallback
		if flag.typeInWords() == "true or false" {
			value = "false"
		}
		t.Setenv(envOf(flag), value)
	}
	if _, printed := served(t, file); printed != defaults {
		t.Errorf("the environment has the defaults, but they are\n%s", printed)
	}
	args := []string{file}
	for _, flag := range settings {
		if !flag.isKeyOnly() {
			args = append(args, "--"+flag.flag+"="+sample(t, flag))
		}
	}
	_, printed := served(t, args...)
	wanted, other, got := leaves(t, samples), leaves(t, defaults), leaves(t, printed)
	for _, flag := range settings {
		key := keys.Replace(flag.flag)
		want := wanted[key]
		if flag.isKeyOnly() {
			want = other[key]
		}
		if got[key] != want {
			t.Errorf("%s is %s, want %s", key, got[key], want)
		}
	}
}

// TestAFileOfSettingsIsCheckedAsAWhole reads files with every kind of problem.
// One error must have the file, the line and the key of each.
func TestAFileOfSettingsIsCheckedAsAWhole(t *testing.T) {
	t.Setenv("CADASTRE_LIMIT_ALIASES", "many")
	t.Setenv("CADASTRE_LIMIT_COST", "7")
	path := configFile(t, `# settings
listen: [a]
demo: "yes"
no-such-key: 1
limits:
  depth: deep
  deep: 1
  tokens: 1.5
  places: -1
  operation-time: 5
  cost: often
keystone: here
audit-retention: 1
profile: shut
oidc:
  roles: admin
  algorithms: RS256
  audience:
allowed-origins: [[1]]
namespaces-per-project: 0
`)
	program := Program{Serve: func(context.Context, ServeOptions) error { t.Error("a server is started"); return nil }}
	err := Run(t.Context(), program, []string{"serve", "--config", path, "--limit-depth=7"}, io.Discard, io.Discard)
	want := []string{"--limit-depth is not a flag: set the key limits.depth in the file of --config",
		"$CADASTRE_LIMIT_ALIASES: must be an integer"}
	for _, each := range []string{
		"2: listen: must be a string", "3: demo: must be true or false", "4: no-such-key: unknown key",
		"6: limits.depth: must be an integer", "7: limits.deep: unknown key", "8: limits.tokens: must be an integer",
		"9: limits.places must be 0 or more, is -1", "10: limits.operation-time: must be a duration such as 10s",
		"11: limits.cost: must be an integer", "12: keystone: must be a mapping",
		"13: audit-retention: must be a duration",
		"14: profile: must be one of", "16: oidc.roles: must be a mapping to strings",
		"17: oidc.algorithms: must be a list of strings",
		"19: allowed-origins: must be a list of strings", "20: namespaces-per-project must be 1 or more, is 0",
	} {
		want = append(want, path+":"+each)
	}
	for _, each := range want {
		if err == nil || strings.Count(err.Error(), each) != 1 {
			t.Errorf("%v: want %s once", err, each)
		}
	}
	if lines := strings.Count(fmt.Sprint(err), "\n") + 1; lines != len(want) {
		t.Errorf("%v: %d errors, want %d", err, lines, len(want))
	}
	if ExitStatus(err) != exitUsage {
		t.Errorf("the exit status is %d", ExitStatus(err))
	}
	for text, want := range map[string]string{
		"listen: a\nlisten: b": "already defined", "- listen": "not a mapping of settings",
		"demo: true\n---\ndemo: true": "more than one YAML document",
		"listen: 'a":                  "cadastre.yaml: [1:9]",
	} {
		err := Run(t.Context(), program, []string{"serve", "--config", configFile(t, text)}, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

// TestPathsInAFileBeginAtItsFolder names a file in the folder of the
// configuration.
func TestPathsInAFileBeginAtItsFolder(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"# nothing", "", "tokens:",
		"policy: roles/policy.yaml\ntokens: ~/t\ntls-key: /etc/key\ntls-cert: ''"} {
		path := configFile(t, text)
		options, _ := served(t, "--config", path)
		want := ""
		if strings.HasPrefix(text, "policy") {
			want = filepath.Join(filepath.Dir(path), "roles/policy.yaml")
		}
		home := strings.HasPrefix(options.Tokens, filepath.Dir(path))
		if options.Policy != want || home || options.TLSCert != "" {
			t.Errorf("%q: the paths are %q, %q and %q", text, options.Policy, options.Tokens, options.TLSCert)
		}
	}
}

func TestAStringOfDigitsIsTakenAsWritten(t *testing.T) {
	t.Parallel()
	for _, digits := range []string{"0123", "0x1F", "1_000", "1e5", "12.50", "007"} {
		options, _ := served(t, "--config", configFile(t, "keystone: {password: "+digits+"}"))
		if options.Keystone.Password != digits {
			t.Errorf("the password %s is %s", digits, options.Keystone.Password)
		}
	}
}
