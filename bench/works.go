package main

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/cadastre-dev/cadastre/bench/local"
	"github.com/cadastre-dev/cadastre/bench/measured"
)

// work is an operation of the API that the benchmark times, a row of works.yaml,
// which explains the members.
type work struct {
	Name       string
	Clients    int
	World      string
	As         string
	Operations int
	List       string
	MayBeEmpty bool `yaml:"mayBeEmpty"`
	ByMember   bool `yaml:"byMember"`
	Shared     bool
	Question   `yaml:",inline"`
	Then, Undo *Question
	Peer       *comparison
	Goal       goal
}

// Question is a document with its variables, or a request to a REST API: a
// path, the variables as the body, and a method, by default POST with a body
// and GET without one.
type Question struct {
	Document     string
	Method, Path string
	Variables    object
}

// comparison is the question of a work in the form for a peer. Without a
// question, the peer gets the question of the work.
type comparison struct {
	With       string
	Operations int
	Rows, Own  []string // jq queries for rows in the peer's answer, and in Cadastre's
	Every      bool     // whether the peer's page may be any of Cadastre's rows
	Question   `yaml:",inline"`
}

// goal has the limits for a work. Members that are 0 are no limit.
type goal struct {
	Median, Rate, Ratio, CPU, Times float64
	Than                            string
}

// The roles of viewers, and the worlds other than the large one.
const (
	admin, member, service  = "admin", "member", "service"
	smallWorld, nestedWorld = "small", "nested"
)

//go:embed works.yaml
var worksFile []byte

// object is an input of the API.
type object = local.Object

var spread = regexp.MustCompile(`\.\.\.\s*([a-z]\w*)`)

// works reads the works of works.yaml, and the subscriptions.
func works() ([]work, []Question, error) {
	var file struct {
		Fragments     map[string]string
		Subscriptions []Question
		Works         []work
	}
	// A row that extends another row repeats some of that row's keys.
	if err := yaml.UnmarshalWithOptions(worksFile, &file, yaml.AllowDuplicateMapKey()); err != nil {
		return nil, nil, fmt.Errorf("works.yaml: %w", err)
	}
	complete := func(q *Question) error {
		for _, match := range spread.FindAllStringSubmatch(q.Document, -1) {
			text, ok := file.Fragments[match[1]]
			if !ok {
				return fmt.Errorf("works.yaml has no fragment %s", match[1])
			}
			if !strings.Contains(q.Document, text) {
				q.Document += "\n" + text
			}
		}
		return nil
	}
	var all, byMember []work
	for _, one := range file.Works {
		if err := complete(&one.Question); err != nil {
			return nil, nil, err
		}
		if one.Peer != nil {
			if err := complete(&one.Peer.Question); err != nil {
				return nil, nil, err
			}
			if one.Peer.Rows == nil {
				one.Peer.Rows = []string{one.rows()}
			}
			if one.Peer.Document == "" && one.Peer.Path == "" {
				one.Peer.Question = one.Question
			}
		}
		one.Clients, one.Operations, one.As = max(1, one.Clients), max(1, one.Operations), cmp.Or(one.As, admin)
		all = append(all, one)
		if one.ByMember {
			one.Name, one.As, one.Peer, one.Goal.Ratio, one.Goal.CPU = one.Name+", by a member", member, nil, 0, 0
			byMember = append(byMember, one)
		}
	}
	return append(all, byMember...), file.Subscriptions, nil
}

// String returns a goal as reports show it.
func (g goal) String() string {
	var parts []string
	add := func(number float64, format string, of ...any) {
		if number > 0 {
			parts = append(parts, fmt.Sprintf(format, append([]any{number}, of...)...))
		}
	}
	add(g.Median, "%g ms")
	add(g.Rate, "%g/s")
	add(g.Ratio, "%gx the peer")
	add(g.CPU, "%gx in CPU")
	add(g.Times, "%g times the ms of %q", g.Than)
	return strings.Join(parts, ", ")
}

// door is the path of Placement's API in a server of Cadastre.
const door = "/openstack/placement"

var named = regexp.MustCompile(`\$\w+`)

// call returns the n-th request of a question to a target. Values of the target's
// world fill the variables and the path.
func (t *target) call(q Question, n int) local.Call {
	if q.Path == "" {
		return local.Operation(q.Document, t.variables(q, n))
	}
	call := local.Call{Method: q.Method, Path: named.ReplaceAllStringFunc(q.Path, func(name string) string {
		return url.QueryEscape(fmt.Sprint(t.value(name[1:], n)))
	})}
	if t.server != nil {
		call.Path = door + call.Path
	}
	if q.Variables != nil {
		call.Body, _ = json.Marshal(t.variables(q, n)) // values of works.yaml
	}
	return call
}

// variables returns the variables of the n-th request of a question to a target.
func (t *target) variables(q Question, n int) object {
	variables, _ := filled(q.Variables, func(name string) any { return t.value(name, n) }).(object)
	return variables
}

// filled returns a copy of a value in which each string or key $NAME is
// replaced by the value of NAME.
func filled(value any, by func(name string) any) any {
	switch value := value.(type) {
	case map[string]any:
		out := object{}
		for name, one := range value {
			if of, ok := strings.CutPrefix(name, "$"); ok {
				name, _ = by(of).(string)
			}
			out[name] = filled(one, by)
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, one := range value {
			out[i] = filled(one, by)
		}
		return out
	case string:
		if name, ok := strings.CutPrefix(value, "$"); ok {
			return by(name)
		}
	}
	return value
}

// value returns the value for a $name in the n-th request of a work.
func (t *target) value(name string, n int) any {
	w := t.world
	switch name {
	case "consumer": // another one in each request
		return w.uuid("consumer of a work", n)
	case "chosen": // of the answer before, see drive
		return "$chosen"
	case "free": // a provider with room for a claim, another one in each request
		return w.freeProvider(n)
	case "crowded": // all crowded hosts
		return w.crowded()
	case "flavors": // 50 requests
		return flavors(50)
	case "empty": // the first provider without consumers
		return w.providers[slices.IndexFunc(w.providers, func(p provider) bool { return len(p.consumers) == 0 })].uuid
	case "aggregate": // of a third of the trees in the nested world
		return w.nestedAggregate(0)
	case "hosts": // ten for each subscription
		return names(10, func(i int) string { return w.providers[(n*10+i)%len(w.providers)].uuid })
	case "resources":
		return names(10, func(i int) string { return w.uuid("resource", (n*10+i)%len(w.resources)) })
	case "amounts": // ten choices
		return amounts(1+n/10%10, 1_024, 10)
	case "projects": // 40 of the projects that have resources
		return names(40, project)
	case "traits": // more rare traits than any host has
		return names(rareTraitsEach+3, rareTrait)
	case "commonHash", "rareHash":
		return t.hashes[name]
	}
	panic(fmt.Sprintf("works.yaml names the value $%s, which the world does not have", name))
}

func (w *world) crowded() (uuids []string) {
	for _, p := range w.providers {
		if p.crowded {
			uuids = append(uuids, p.uuid)
		}
	}
	return uuids
}

func flavors(count int) (requests []object) {
	for i := range count {
		requests = append(requests, object{"resources": amounts(1+i%10, 1_024*(1+i/10), 10)})
	}
	return requests
}

func names(count int, name func(int) string) (all []string) {
	for i := range count {
		all = append(all, name(i))
	}
	return all
}

// freeProvider returns the uuid of a provider with room for a claim. Different n
// select different providers, unless a full provider is skipped.
func (w *world) freeProvider(n int) string {
	const stride = 7_919 // a prime: consecutive claims are not on neighbours in the database
	for i := n * stride; ; i++ {
		if p := w.providers[i%len(w.providers)]; !p.full {
			return p.uuid
		}
	}
}

// judge compares each work on the last binary with its goal, the peer and the
// first binary.
func (b *bench) judge(lines []measured.Line) {
	last, first := b.binaries[len(b.binaries)-1].name, b.binaries[0].name
	for _, work := range b.works {
		for _, database := range b.databases {
			own, peer := measured.Find(lines, work.Name, database, last), measured.Find(lines, work.Name, database, "")
			if own == nil {
				continue
			}
			if len(b.binaries) > 1 {
				own.Figures["timesTheFirst"] = times(own, measured.Find(lines, work.Name, database, first))
			}
			if peer != nil && len(own.Rates) > 0 {
				own.Figures["timesThePeer"] = times(own, peer)
				if used := cpuOfRequest(own); used > 0 {
					own.Figures["timesThePeersCpu"] = cpuOfRequest(peer) / used
				}
			}
			if own.Goal = work.Goal.String(); own.Goal != "" && own.Reached == "" {
				own.Reached = work.Goal.reached(own, peer != nil, measured.Find(lines, work.Goal.Than, database, last))
			}
		}
	}
}

// cpuOfRequest returns the processor time of one request in milliseconds, including
// the database's.
func cpuOfRequest(l *measured.Line) float64 {
	return l.Figures["serverCpuMs"] + l.Figures["databaseCpuMs"]
}

// reached returns whether a goal is reached: yes, no, or unknown without the peer
// or the other work. met is whether the peer was timed.
func (g goal) reached(own *measured.Line, met bool, than *measured.Line) string {
	of := own.Figures
	switch {
	case g.Median > 0 && of["medianMs"] > g.Median,
		g.Rate > 0 && of["perSecond"] < g.Rate,
		met && of["timesThePeer"] < g.Ratio,
		met && of["timesThePeersCpu"] > 0 && of["timesThePeersCpu"] < g.CPU,
		g.Times > 0 && than != nil && of["medianMs"] > g.Times*than.Figures["medianMs"]:
		return "no"
	case g.Ratio > 0 && !met, g.Times > 0 && than == nil:
		return "unknown"
	}
	return "yes"
}

// times returns the ratio of two rates, or 0 without the other one. It is the
// median of the ratios of rounds, because both ran under the same load in a
// round.
func times(one, other *measured.Line) float64 {
	if other == nil {
		return 0
	}
	var ratios []float64
	for i := range min(len(one.Rates), len(other.Rates)) {
		ratios = append(ratios, one.Rates[i]/other.Rates[i])
	}
	return measured.Median(ratios)
}
