package cli

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/internal/soak"
)

// TestALineHasAllItsProblems parses lines with several problems. The error must
// have each on its own line, and nothing else.
func TestALineHasAllItsProblems(t *testing.T) {
	for words, want := range map[string][]string{
		"namespace lst --nope": {`unexpected argument lst; did you mean "list"?`},
		"nmespace list --nope": {`unexpected argument nmespace; did you mean "namespace"?`},
		"candidates --resouce VCPU=1 --limit -1 --group-policy x more": {
			`unknown flag --resouce; did you mean "--resource"?`,
			"unexpected argument more", "--limit must be 0 or more, is -1",
			`--group-policy must be one of none, isolate, is "x"`,
		},
		"namespace show --timeout 5 --retries many -o xml": {
			`expected "<name>"`, `--timeout must be a duration such as 10s, is "5"`,
			`--retries must be an integer, is "many"`,
			`--output must be one of table, json, yaml, csv, value, is "xml"`,
		},
		"namespace set x --protected=maybe --no-protected=1": {
			"--no-protected takes no value", `--protected must be true or false, is "maybe"`,
		},
		"namespace list --search --limit": {"--search: has no value", "--limit: has no value"},
		"token add": {"missing flag --user=ID",
			"missing flag --project=ID", "missing flag --role=ROLE"},
		"token add --user u --project p --role admn": {
			`--role must be one of admin, service, member, reader, is "admn"; did you mean "admin"?`},
		"namespace list --limit 1 -o json --limit=2 -ocsv --limit 3": {
			"--limit is given several times", "--output is given several times"},
		"namespace set x --protected --no-protected": {"--protected is given several times"},
		"watch --after x --kept -q":                  {"--after and --kept can't be used together"},
		"--server x dump --sort name":                {"unknown flag --sort", "unknown flag --server"},
		"namespace list -qx":                         {"unknown flag -x"},
		"capability set host gpu":                    {"missing flag --private or --public"},
		"metadata set":                               {`expected "<resource> <items> ..."`},
	} {
		l := parse(strings.Fields(words))
		l.fillIn()
		err := l.finish()
		if err == nil {
			t.Errorf("%s: no error", words)
			continue
		}
		if got := strings.Split(err.Error(), "\n"); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", words, got, want)
		}
	}
}

// TestALineIsRead parses lines whose flags have every form.
func TestALineIsRead(t *testing.T) {
	t.Setenv("CADASTRE_TOKEN", "from-env")
	for words, want := range map[string]map[string]string{
		"-ojson namespace list --sort=name -c a,b -c c -q": {"output": "json", "sort": "name",
			"columns": "a b c", "quiet": "true",
			"token": "from-env", "limit": "0", "retries": "3"},
		"namespace list -o=csv --limit 5 --token= --search -": {"output": "csv",
			"limit": "5", "token": "", "search": "-"},
		"namespace set Lab --no-protected --revision -1": {"protected": "false", "revision": "-1", "name": "Lab"},
		"namespace set Lab --protected=yes":              {"protected": "true"},
		"namespace list -qojson --limit 1":               {"quiet": "true", "output": "json", "limit": "1"},
		"tag list --limit 2":                             {"limit": "2"},
		"namespace list -qo yaml":                        {"quiet": "true", "output": "yaml"},
		"metadata set home -- -a=1 --b=2":                {"resource": "home", "items": "-a=1 --b=2"},
		"candidates --seed -5.5":                         nil,
	} {
		l := parse(strings.Fields(words))
		l.fillIn()
		err := l.finish()
		if (err == nil) != (want != nil) {
			t.Errorf("%s: %v", words, err)
		}
		given := map[string]string{}
		for _, p := range l.params {
			if p.written != nil {
				given[p.key] = strings.Join(p.written, " ")
			}
		}
		for key, value := range want {
			if got, ok := given[key]; !ok || got != value {
				t.Errorf("%s: %s is %q, want %q", words, key, got, value)
			}
		}
	}
	for words, want := range map[string]string{"": "", "help": "",
		"help namespace": "namespace", "namespace": "namespace",
		"namespace list -h": "namespace list", "serve --help": "serve", "watch --help": "watch"} {
		l := parse(strings.Fields(words))
		l.fillIn()
		got := ""
		if l.of != nil {
			got = l.of.name
		}
		if l.verb != nil {
			got = l.verb.path()
		}
		if l.asks != "help" || got != want {
			t.Errorf("%q asks for %q of %q, want help of %q", words, l.asks, got, want)
		}
	}
	if days := (&call{given: map[string][]string{"days": {"090"}}}).number("days"); days != 90 {
		t.Errorf("--days 090 is %d", days)
	}
	if l := parse([]string{"watch", "--kept"}); l.wrong != nil {
		t.Errorf("watch --kept: %v", l.wrong)
	}
}

// randomWords returns a line of a random command with some flags and other words.
func randomWords(r *rand.Rand, pool []string) []string {
	of := nouns()[r.IntN(len(nouns()))]
	words, params := []string{of.name}, sets(of.shared)
	if len(of.verbs) > 0 {
		v := of.verbs[r.IntN(len(of.verbs))]
		if words, params = strings.Fields(v.path()), v.params(); r.IntN(9) == 0 {
			words = words[:1]
		}
	}
	for range r.IntN(5) {
		word := pool[r.IntN(len(pool))]
		if len(params) > 0 && r.IntN(2) == 0 {
			word = []string{"--", "--no-", ""}[r.IntN(3)] +
				params[r.IntN(len(params))].flag + []string{"", "=", "=1"}[r.IntN(3)]
		}
		words = slices.Insert(words, r.IntN(len(words)+1), word)
	}
	return words
}

// TestAnyWordsAreALine parses random words. A line is read or refused, and a line
// that is read has every flag and argument that its command needs.
func TestAnyWordsAreALine(t *testing.T) {
	r := rand.New(rand.NewPCG(soak.Seed(t), 4))
	pool := []string{"", "-", "--", "-x", "--x", "-o", "-ojson", "-q=1", "--no-", "=", "--=",
		"help", "--help", "5", "-5", "a,b", "true"}
	for _, of := range nouns() {
		pool = append(pool, of.name)
	}
	read := 0
	rounds := soak.Rounds(20_000)
	for range rounds {
		words := randomWords(r, pool)
		l := parse(words)
		l.fillIn()
		if err := l.finish(); err != nil || l.asks != "" || l.serve != nil {
			continue
		}
		read++
		for _, p := range l.params {
			if p.written == nil && (p.isRequiredAlone() || p.isArgument && !p.optional) {
				t.Fatalf("%q is read without %s", words, p.form())
			}
		}
	}
	if read < rounds/20 {
		t.Errorf("%d lines are read", read)
	}
}
