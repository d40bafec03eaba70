package main

import (
	"context"
	_ "embed"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/cadastre-dev/cadastre/bench/local"
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
	Question   `yaml:",inline"`
	Undo       *Question
	Peer       *comparison
	Goal       goal
}

// Question is a document with its variables.
type Question struct {
	Document  string
	Variables object
}

// comparison is the question of a work as a peer is asked it: a document of
// GraphQL, or a path whose query the variables complete.
type comparison struct {
	With       string
	Operations int
	Path       string
	List       string
	Member     string // of an element of the list, which stands for the element
	Question   `yaml:",inline"`
}

// goal has the limits for a work. Members that are 0 are no limit.
type goal struct {
	Median, Rate, Ratio, CPU, Times float64
	Than                            string
}

// The roles of viewers, and the worlds besides the large one.
const (
	admin, member, service  = "admin", "member", "service"
	smallWorld, nestedWorld = "small", "nested"
)

//go:embed works.yaml
var worksFile []byte

// object is an input of the API.
type object = local.Object

var spread = regexp.MustCompile(`\.\.\.\s*([a-z]\w*)`)

// works reads works.yaml.
func works() ([]work, error) {
	var file struct {
		Fragments map[string]string
		Works     []work
	}
	// A row that begins as another one does repeats some of its keys.
	if err := yaml.UnmarshalWithOptions(worksFile, &file, yaml.AllowDuplicateMapKey()); err != nil {
		return nil, fmt.Errorf("works.yaml: %w", err)
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
			return nil, err
		}
		if one.Peer != nil {
			if err := complete(&one.Peer.Question); err != nil {
				return nil, err
			}
		}
		one.Clients, one.Operations = max(1, one.Clients), max(1, one.Operations)
		if one.As == "" {
			one.As = admin
		}
		all = append(all, one)
		if one.ByMember {
			one.Name, one.As, one.Peer, one.Goal.Ratio, one.Goal.CPU = one.Name+", by a member", member, nil, 0, 0
			byMember = append(byMember, one)
		}
	}
	return append(all, byMember...), nil
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

// request returns the n-th request to a world, whose values fill the variables.
func (q Question) request(w *world, n int) local.Request {
	variables, _ := filled(q.Variables, func(name string) any { return w.value(name, n) }).(object)
	return local.Request{Query: q.Document, Variables: variables}
}

// filled returns a value in which strings that begin with $ are replaced.
func filled(value any, by func(name string) any) any {
	switch value := value.(type) {
	case map[string]any:
		out := object{}
		for name, one := range value {
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

// call returns the question as a peer is asked it.
func (c *comparison) call(ctx context.Context, peer *target) (call, error) {
	var err error
	variables, _ := filled(c.Variables, func(name string) any {
		switch name {
		case "commonHash", "rareHash":
			var hash string
			of := map[string]pair{"commonHash": commonPair(), "rareHash": rarePair()}[name]
			hash, err = peer.cluster.Text(ctx, peer.storage, "SELECT value_hash FROM metadata_items WHERE key = $1 AND value = $2 LIMIT 1", of.key, of.value)
			return hash
		}
		return peer.world.value(name, 0)
	}).(object)
	if c.Path == "" {
		return call{method: "POST", path: "/graphql", body: local.Request{Query: c.Document, Variables: variables}.Body()}, err
	}
	path := c.Path
	for name, value := range variables {
		path += fmt.Sprintf("&%s=%s", name, url.QueryEscape(fmt.Sprint(value)))
	}
	return call{method: "GET", path: path}, err
}
