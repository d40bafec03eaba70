package cli

import (
	_ "embed"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/metadef"
)

// noun is the first word of commands: a kind of object, or a command itself.
type noun struct {
	name, group, help string
	columns           string // of its objects, see columnsOf
	shared            []string
	verbs             []*verb
	flags             []*param          // of a set of shared flags
	words             map[string]string // of a table of words
}

// verb is a command of a noun; the verb "." is the noun itself. Its flags and
// arguments are the variables of its operations and the fields of their inputs,
// with the descriptions of the schema. commands.txt describes its other flags.
type verb struct {
	of                *noun
	name, alias, help string
	send              []string // operations; the command sends the first one with variables for all given flags
	words             []string // changes to the flags that its fields have by default, see named
	columns           string   // the noun's columns if empty, further columns after a &
	rows              string   // the member of the answer that is shown
	pick              string   // the member that equals the last argument in the row to show
	what              string   // kind of thing in errors; the noun when empty
	ask               string   // the question before the operation is sent; flags in braces
	as                string   // shows a single object as "one", with a line for each column, or as "rows"
	warn              string   // the flag with written metadata items; notes report items that break definitions
	shared            []string // sets of flags
	own               []*param
}

// commandTable has all commands. A noun is a line `= name help`, a verb a line
// `- name (alias) Operation... word...`. The lines below a verb have a key and
// a value, or a flag or an argument of the command: its form, its type, and
// pairs of attributes before the description.
//
//go:embed commands.txt
var commandTable string

// table returns all nouns, the sets of shared flags, and the tables of words.
// The names of sets and tables begin with a dot.
var table = sync.OnceValue(func() (nouns []*noun) {
	group, at := "", &noun{}
	for line := range strings.Lines(commandTable) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case word == "" || word == "#":
		case word == "==":
			group = rest
		case word == "=":
			name, help, _ := strings.Cut(rest, " ")
			at = &noun{name: name, group: group, help: help, shared: []string{".server", ".output"}}
			at.words = map[string]string{}
			nouns = append(nouns, at)
		case word == "-":
			at.verbs = append(at.verbs, newVerb(at, strings.Fields(rest)))
		case strings.Contains("-<[", word[:1]):
			one := newFlag(strings.TrimSpace(line))
			if len(at.verbs) == 0 {
				at.flags = append(at.flags, one)
			} else {
				last := at.verbs[len(at.verbs)-1]
				last.own = append(last.own, one)
			}
		default:
			at.set(word, rest)
		}
	}
	return nouns
})

// newVerb parses a line of a verb. If the line names no operation, the verb and
// the noun make the name of the operation, such as ListNamespaces, if the
// client has it.
func newVerb(of *noun, words []string) *verb {
	v := &verb{of: of, name: words[0]}
	isOne := strings.TrimSuffix("a "+of.inWords(), " ")
	if strings.ContainsAny(of.name[:1], "aeiou") {
		isOne = "an" + isOne[1:]
	}
	operation, several := pascal(of.name), plural(of.inWords())
	switch v.name {
	case ".":
		v.help = of.help
	case "list":
		v.help, operation = "List "+several+".", "List"+plural(operation)
	case "show":
		v.help, operation = "Show "+isOne+".", "Read"+operation
	case "create":
		v.help, operation = "Create "+isOne+".", "Create"+operation
	case "set":
		v.help, operation = "Change "+isOne+".", "Update"+operation
	case "delete":
		v.help, operation = "Delete "+several+"; asks first.", "Delete"+operation
	}
	for _, word := range words[1:] {
		switch {
		case word[0] == '(':
			v.alias = strings.Trim(word, "()")
		case word[0] >= 'A' && word[0] <= 'Z':
			v.send = append(v.send, word)
		default:
			v.words = append(v.words, word)
		}
	}
	if v.send == nil && allOperations().Operations.ForName(operation) != nil {
		v.send = []string{operation}
	}
	return v
}

// set sets a property of the last verb, or of the noun if it has no verb yet.
func (n *noun) set(key, value string) {
	if len(n.verbs) == 0 {
		switch key {
		case "columns":
			n.columns = value
		case "root":
			n.shared = strings.Fields(value)
		default:
			n.words[key] = value
		}
		return
	}
	v := n.verbs[len(n.verbs)-1]
	if key == "flags" {
		v.shared = strings.Fields(value)
		return
	}
	*map[string]*string{"help": &v.help, "columns": &v.columns, "rows": &v.rows, "pick": &v.pick, "what": &v.what,
		"ask": &v.ask, "as": &v.as, "warn": &v.warn}[key] = value
}

// nounNamed returns a noun, or nil.
func nounNamed(name string) *noun {
	if i := slices.IndexFunc(table(), func(of *noun) bool { return of.name == name }); i >= 0 {
		return table()[i]
	}
	return nil
}

// verbNamed returns a verb by its name or its alias, or nil.
func (n *noun) verbNamed(name string) *verb {
	i := slices.IndexFunc(n.verbs, func(v *verb) bool { return v.name == name || v.alias != "" && v.alias == name })
	if i < 0 {
		return nil
	}
	return n.verbs[i]
}

// path returns the words of the command.
func (v *verb) path() string { return strings.TrimSuffix(v.of.name+" "+v.name, " .") }

func (n *noun) inWords() string { return strings.ReplaceAll(n.name, "-", " ") }

// pascal returns a name with dashes as the name of a type.
func pascal(name string) (out string) {
	for _, part := range strings.Split(name, "-") {
		out += strings.ToUpper(part[:1]) + part[1:]
	}
	return out
}

func plural(word string) string {
	if before, ok := strings.CutSuffix(word, "y"); ok {
		return before + "ies"
	}
	if strings.HasSuffix(word, "s") {
		return word + "es"
	}
	return word + "s"
}

// param is a flag or an argument of a command.
type param struct {
	flag, at    string // its name, and its path in the variables of the operation
	key         string // of its values in a call: its name, or --NAME for a flag with the name of an argument
	typ         *ast.Type
	description string // in the schema
	kind        string // of the object that it names, for completion and resolve
	fallback    string
	isArgument  bool
	optional    bool
	isEach      bool // one request for each value
	isOne       bool // takes one value for a list of the schema
	isOwn       bool // not a variable of the operation
	help        string
	attributes  map[string]string // for the parser and the help
	written     []string          // its values; nil for none
	target      reflect.Value     // the field of a setting of serve
}

// newFlag returns the flag or the argument of a line: `--name=FORM Type
// key=value... | help`, `<name> Type | help`, or `[name...] Type | help`.
func newFlag(line string) *param {
	before, help, _ := strings.Cut(line, " | ")
	words := strings.Fields(before)
	written := strings.TrimPrefix(words[0], "--")
	if line[0] != '-' {
		written = strings.Trim(written, "<[]>")
	}
	name, form, _ := strings.Cut(written, "=")
	name, isList := strings.CutSuffix(name, "...")
	p := &param{flag: name, isOwn: true, help: help, isArgument: line[0] != '-', optional: line[0] == '[',
		attributes: map[string]string{"placeholder": form}}
	p.typ = ast.NamedType(strings.Trim(words[1], "[]"), nil)
	if isList || words[1][0] == '[' {
		p.typ = ast.ListType(p.typ, nil)
	}
	for _, word := range words[2:] {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "kind":
			p.kind = value
		case "at":
			p.at = value
		case "default":
			p.fallback = value
		case "path":
			p.attributes["type"] = "path"
		default:
			p.attributes[key] = value
		}
	}
	return p
}

// shows has the functions that show the answers of some commands instead of the
// method show. They get the value at the path of the operation, and the
// payload.
var shows = map[string]func(c *call, found, payload any) error{
	"capability list":  showCapabilities,
	"capability show":  showValues,
	"drain plan":       showDrainPlan,
	"metadata check":   showChecks,
	"metadata list":    showMetadata,
	"metadata replace": showReplaced,
	"rebalance plan":   showRebalancePlan,
	"resource explain": showClauses,
	"resource show":    showResource,
	"trait list":       showTraits,
	"trait set":        showTraits,
}

// handlers has the functions of nouns and commands that do not only send one
// operation and show its answer. Some only set further variables and then call
// standard.
var handlers = map[string]func(*call) error{
	"aggregate list":     groupByAggregate,
	"allocation set":     setAllocations,
	"association delete": findAssociation,
	"association list":   filterAssociations,
	"association set":    changeAssociation,
	"association show":   showAssociation,
	"candidates":         findCandidates,
	"capability list":    withValues,
	"capacity history":   groupHistory,
	"capacity list":      groupCapacity,
	"capacity what-if":   groupCapacity,
	"completion":         printCompletion,
	"context":            manageContexts,
	"default apply":      applyDefaults,
	"doctor":             checkDatabase,
	"dump":               dumpDatabase,
	"fits":               countFits,
	"inventory set":      keepInventory,
	"login":              login,
	"mcp":                serveTools,
	"metadata problems":  listProblems,
	"metadata replace":   confirmNone,
	"metadefs export":    exportDefinitions,
	"metadefs load":      loadDefinitions,
	"metadefs schema":    func(c *call) error { return c.printf("%s", metadef.DocumentSchema()) },
	"metadefs unload":    unloadDefinitions,
	"migrate":            migrate,
	"move apply":         applyMoves,
	"place":              placeConsumers,
	"provider load":      loadProviders,
	"query":              sendDocument,
	"resource explain":   needsConditions,
	"resource load":      loadResources,
	"restore":            restoreDatabase,
	"schema":             func(c *call) error { return c.printf("%s", c.program.SDL) },
	"sync openstack":     syncOpenStack,
	"tag create":         tagsOf,
	"token add":          addToken,
	"token list":         listTokens,
	"token revoke":       revokeToken,
	"trait show":         showTrait,
	"usage list":         listUsages,
	"version":            func(c *call) error { return c.printf("%s\n", c.program.inWords()) },
	"watch":              watch,
	"watch all":          watchAll,
}
