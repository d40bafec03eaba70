package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"text/template"

	"github.com/goccy/go-yaml"

	"github.com/cadastre-dev/cadastre/bench/local"
)

// manner is how an attacker's connections behave.
type manner string

const (
	asking        manner = "asking"          // send a request, read its answer, send the next one
	notReading    manner = "not reading"     // send a request and read nothing
	readingSlowly manner = "reading slowly"  // read a byte a second
	sendingSlowly manner = "sending slowly"  // send a byte a second
	connecting    manner = "connecting"      // open a connection, send nothing, open the next one
	lurking       manner = "lurking"         // open a WebSocket without a token, from ten addresses, send nothing
	guessing      manner = "guessing tokens" // send an unknown token, from the address of the innocents
)

// Question is a document and its variables, as templates.
type Question struct{ Document, Variables string }

// attack is one way for one viewer to exhaust a server, a row of attacks.yaml,
// which explains the members.
type attack struct {
	Name        string
	Manner      manner
	Connections int
	Service     bool
	Most        int
	Varied      bool
	Head, Field string
	Question    `yaml:",inline"`
}

// atOnce is the default number of connections of an attacker.
const atOnce = 64

//go:embed attacks.yaml
var attacksFile []byte

// asked holds attacks.yaml.
type asked struct {
	Questions       map[string]Question
	Reads, Searches []Question
	Attacks         []attack
}

// readAttacks reads attacks.yaml and sets defaults.
func readAttacks() (all asked, err error) {
	err = yaml.UnmarshalWithOptions(attacksFile, &all, yaml.AllowDuplicateMapKey())
	for i := range all.Attacks {
		of := &all.Attacks[i]
		of.Manner, of.Connections = cmp.Or(of.Manner, asking), cmp.Or(of.Connections, atOnce)
		if of.Field != "" {
			of.Document = of.Head + "{ {{range $i := .Size}}a{{$i}}: " + of.Field + " {{end}}}"
		}
	}
	return all, err
}

// object is a value of an input type.
type object = local.Object

// values are the data for the templates of a question.
type values struct {
	N, Size, Amount    int
	Consumer, Provider string
}

// functions returns the functions that templates can call.
func (w *world) functions() template.FuncMap {
	return template.FuncMap{
		"uuid": w.uuid, "resource": w.resource, "provider": w.provider,
		"flooded": w.flooded, "ofAttacker": w.ofAttacker,
		"definitions": largeDefinitions,
		"items":       func() int { return w.size.Items },
		"key":         func(i int) string { return fmt.Sprintf("key-%02d", i%w.size.Items) },
		"add":         func(a, b int) int { return a + b },
		"mod":         func(a, b int) int { return a % b },
		"repeat":      func(count int, text string) string { return strings.Repeat(text, count) },
		"quoted": func(text string) (string, error) {
			quoted, err := json.Marshal(text)
			return string(quoted), err
		},
	}
}

// ask returns the request for a question with the given values.
func (w *world) ask(q Question, with values) local.Call {
	filled := func(text string) string {
		var out bytes.Buffer
		parsed, ok := w.templates.Load(text)
		if !ok {
			parsed = template.Must(template.New("").Funcs(w.functions()).Parse(text)) // attacks.yaml, which tests read
			w.templates.Store(text, parsed)
		}
		if err := parsed.(*template.Template).Execute(&out, with); err != nil {
			panic(err)
		}
		return out.String()
	}
	body := struct {
		Query     string          `json:"query"`
		Variables json.RawMessage `json:"variables,omitempty"`
	}{filled(q.Document), json.RawMessage(filled(q.Variables))}
	text, err := json.Marshal(body)
	if err != nil {
		panic(fmt.Errorf("attacks.yaml: %w: %s", err, body.Variables))
	}
	return local.Call{Body: text}
}

// largeDefinitions returns a definition file of about 900 kB.
func largeDefinitions(n int) string {
	properties := object{}
	for i := range 900 {
		properties[fmt.Sprintf("p%d", i)] = object{"title": "t", "type": "string",
			"description": strings.Repeat("d", 900)}
	}
	text, err := json.Marshal(object{"namespace": fmt.Sprint("flood", n), "properties": properties})
	if err != nil {
		panic(err) // strings and maps
	}
	return string(text)
}
