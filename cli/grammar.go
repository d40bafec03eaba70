package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/text"
)

// line is a command line: the command that it names, and its values.
type line struct {
	of        *noun // nil for none
	verb      *verb // nil for none
	serve     *serveCommand
	params    []*param // the flags and arguments that it may have
	given     []given  // flags in the order of the line
	arguments []string
	asks      string  // help or version if the line asks for it, otherwise empty
	wrong     []error // problems with words of the line
}

// given is the name of a flag on the line and its value as written. A flag
// without a value has true, or false if it begins with --no-.
type given struct {
	flag string
	text string
}

// everywhere are the flags of every command.
var everywhere = []*param{
	{flag: "help", typ: ast.NamedType("Boolean", nil), help: "Show context-sensitive help.",
		attributes: map[string]string{"short": "h"}},
	{flag: "version", typ: ast.NamedType("Boolean", nil), help: "Print the version and the commit."},
}

// parse reads a command line. It collects the problems with all words, but
// stops at an unknown noun or verb. `help x` means `x --help`.
func parse(words []string) *line {
	l := &line{params: sets([]string{".server", ".output"})}
	if len(words) > 0 && words[0] == "help" {
		l.asks, words = "help", words[1:]
	}
	isEnded := false // whether -- has ended the flags
	for i := 0; i < len(words); i++ {
		switch word := words[i]; {
		case isEnded || len(word) < 2 || word[0] != '-':
			if !l.word(word) {
				return l
			}
		case word == "--":
			isEnded = true
		default:
			for _, one := range l.split(word) {
				if l.flag(one, words[i+1:]) {
					i++
				}
			}
		}
	}
	return l
}

// fillIn completes a line without a verb: `watch` is `watch all`, and any other
// line asks for help unless it has problems.
func (l *line) fillIn() {
	if l.verb == nil && l.of != nil && l.asks == "" {
		l.verb = l.of.verbNamed("all")
	}
	if l.verb == nil && l.wrong == nil {
		l.asks = cmp.Or(l.asks, "help")
	}
}

// word reads a noun, a verb or an argument. It returns false for an unknown
// noun or verb.
func (l *line) word(word string) bool {
	switch {
	case l.of == nil:
		if l.of = nounNamed(word); l.of == nil {
			l.unexpected(word)
			return false
		}
		l.verb = l.of.verbNamed(".")
		l.params = paramsOf(l.of, cmp.Or(l.verb, l.of.verbNamed("all")))
		if l.of.name == "serve" {
			l.serve = &serveCommand{}
			l.params = l.serve.params()
		}
	case l.verb == nil:
		if l.verb = l.of.verbNamed(word); l.verb == nil {
			l.unexpected(word)
			return false
		}
		l.params = paramsOf(l.of, l.verb)
	default:
		l.arguments = append(l.arguments, word)
	}
	return true
}

// known returns the nouns, or the verbs of the noun, that the next word can be.
func (l *line) known() []string {
	if l.of == nil {
		return lists.Map(nouns(), func(of *noun) string { return of.name })
	}
	return lists.Map(l.of.verbs, func(v *verb) string { return v.name })
}

func (l *line) unexpected(word string) {
	did := text.NewSpeller(l.known()).DidYouMean(word)
	l.wrong = append(l.wrong, fmt.Errorf("unexpected argument %s%s", word, did))
}

// paramsOf returns the flags and arguments of a command, and the flags that its
// noun shares. The command may be nil.
func paramsOf(of *noun, v *verb) []*param {
	if v == nil {
		return sets(of.shared)
	}
	return append(v.params(), sets(of.shared)...)
}

// split separates the short flags of a word: -qojson becomes -q and -o=json. It
// returns any other word unchanged.
func (l *line) split(word string) []string {
	if word[1] == '-' || len(word) == 2 || word[2] == '=' {
		return []string{word}
	}
	if p, _ := l.flagNamed(word[:2]); p != nil && p.isBool() {
		return append([]string{word[:2]}, l.split("-"+word[2:])...)
	}
	return []string{word[:2] + "=" + word[2:]}
}

// flag reads a flag. It reports whether the next word is its value.
func (l *line) flag(word string, next []string) (tookNext bool) {
	name, value, hasValue := strings.Cut(word, "=")
	p, isNo := l.flagNamed(name)
	isBool := p != nil && p.isBool()
	if tookNext = !isBool && !hasValue && startsWithValue(next); tookNext {
		value, hasValue = next[0], true
	}
	if isBool && !hasValue {
		value = strconv.FormatBool(!isNo)
	}
	switch {
	case p == nil:
		l.wrong = append(l.wrong,
			fmt.Errorf("unknown flag %s%s", name, text.NewSpeller(l.flagNames()).DidYouMean(name)))
	case slices.Contains(everywhere, p):
		l.asks = cmp.Or(l.asks, p.flag)
	case isNo && hasValue:
		l.wrong = append(l.wrong, fmt.Errorf("%s takes no value", name))
	case !isBool && !hasValue:
		l.wrong = append(l.wrong, fmt.Errorf("--%s: has no value", p.flag))
	default:
		l.given = append(l.given, given{p.flag, value})
	}
	return tookNext
}

// startsWithValue reports whether the first word exists and is not a flag.
// Negative numbers, and - for standard input, are values.
func startsWithValue(words []string) bool {
	if len(words) == 0 {
		return false
	}
	word := words[0]
	return len(word) < 2 || word[0] != '-' || word[1] >= '0' && word[1] <= '9' || word[1] == '.'
}

// flagNamed returns the flag that is written as --name, --no-name or -n, or
// nil. isNo is true for --no-name.
func (l *line) flagNamed(name string) (of *param, isNo bool) {
	for _, p := range slices.Concat(everywhere, l.params) {
		switch {
		case p.isArgument:
		case name == "--"+p.flag, len(name) == 2 && name[1:] == p.attributes["short"]:
			return p, false
		case p.isNegatable() && name == "--no-"+p.flag:
			return p, true
		}
	}
	return nil, false
}

// flagNames returns all flags as written, with the --no- forms, sorted. Keys of
// the file of --config are not flags.
func (l *line) flagNames() (names []string) {
	for _, p := range slices.Concat(everywhere, l.params) {
		if p.isArgument || p.isKeyOnly() {
			continue
		}
		names = append(names, "--"+p.flag)
		if p.isNegatable() {
			names = append(names, "--no-"+p.flag)
		}
	}
	slices.Sort(names)
	return names
}

// finish sets each parameter from the line, else from the environment, else to
// its default, and checks it. It returns all problems.
func (l *line) finish() error {
	wrong := append(l.takeGiven(), l.checkXor()...)
	for _, p := range l.params {
		if p.isRequiredAlone() && p.written == nil {
			wrong = append(wrong, fmt.Errorf("missing flag %s", p.form()))
		}
		if value, ok := os.LookupEnv(p.attributes["env"]); ok && p.written == nil {
			p.take(value)
		}
		if p.written == nil && p.fallback != "" {
			p.take(p.fallback)
		}
		if err := p.check(); err != nil {
			wrong = append(wrong, err)
		}
	}
	return errors.Join(wrong...)
}

// takeGiven sets the values of the flags and the arguments on the line. It
// returns all problems with the words of the line.
func (l *line) takeGiven() (wrong []error) {
	wrong = slices.Clone(l.wrong)
	times := map[*param]int{}
	for _, one := range l.given {
		p, _ := l.flagNamed("--" + one.flag)
		if p == nil {
			wrong = append(wrong, fmt.Errorf("unknown flag --%s", one.flag)) // a flag of another command
			continue
		}
		if times[p]++; times[p] == 2 && !p.isList() {
			wrong = append(wrong, fmt.Errorf("--%s is given several times", p.flag))
		}
		p.take(one.text)
	}
	rest := l.arguments
	var missing []string
	for _, p := range l.params {
		switch {
		case !p.isArgument:
		case len(rest) == 0 && p.optional:
		case len(rest) == 0:
			missing = append(missing, p.form())
		case p.isList():
			p.written, rest = rest, nil
		default:
			p.written, rest = rest[:1], rest[1:]
		}
	}
	if missing != nil {
		wrong = append(wrong, fmt.Errorf("expected %q", strings.Join(missing, " ")))
	}
	for _, word := range rest {
		wrong = append(wrong, fmt.Errorf("unexpected argument %s", word))
	}
	return wrong
}

// checkXor checks the groups of the attribute xor. A line may have one flag of
// each group, and must have one if the flags have the attribute required.
func (l *line) checkXor() (wrong []error) {
	groups := lists.Group(l.params, func(p *param) (string, *param) { return p.attributes["xor"], p })
	for _, p := range l.params {
		xor := p.attributes["xor"]
		all := groups[xor]
		if xor == "" || all == nil {
			continue
		}
		delete(groups, xor)
		labels := lists.Map(all, (*param).label)
		used := slices.DeleteFunc(all, func(p *param) bool { return p.written == nil })
		switch {
		case len(used) > 1:
			found := lists.Map(used, (*param).label)
			wrong = append(wrong, fmt.Errorf("%s can't be used together", strings.Join(found, " and ")))
		case p.has("required") && len(used) == 0:
			wrong = append(wrong, fmt.Errorf("missing flag %s", strings.Join(labels, " or ")))
		}
	}
	return wrong
}

// take adds a value to a list, split at the attribute sep if there is one. It
// replaces the value of a parameter that is not a list.
func (p *param) take(value string) {
	switch sep := p.attributes["sep"]; {
	case !p.isList():
		p.written = []string{value}
	case sep != "" && value == "":
		p.written = slices.Concat([]string{}, p.written)
	case sep != "":
		p.written = append(p.written, strings.Split(value, sep)...)
	default:
		p.written = append(p.written, value)
	}
}

// isPath reports whether the parameter names a file.
func (p *param) isPath() bool { return p.attributes["type"] == "path" }

// isMember reports whether a value is a member of the parameter's enum. Without
// an enum, every value is.
func (p *param) isMember(value string) bool {
	members := p.attributes["enum"]
	return members == "" || slices.Contains(strings.Split(members, ","), value)
}

// notMember returns the problem of a value that is not in the enum of the
// parameter.
func (p *param) notMember(value string) string {
	members := strings.Split(strings.TrimPrefix(p.attributes["enum"], ","), ",")
	return fmt.Sprintf("must be one of %s, is %q%s", strings.Join(members, ", "), value,
		text.NewSpeller(members).DidYouMean(value))
}

// check checks the values of the parameter. It makes paths absolute, and turns
// words for booleans into true and false.
func (p *param) check() error {
	for i, value := range p.written {
		if !p.isMember(value) {
			return fmt.Errorf("%s %s", p.label(), p.notMember(value))
		}
		if p.isPath() && value != "-" {
			p.written[i] = expanded(value)
		}
		if p.isBool() {
			is, err := boolOf(value)
			if err != nil {
				return fmt.Errorf("%s must be %s, is %q", p.label(), p.typeInWords(), value)
			}
			p.written[i] = strconv.FormatBool(is)
		}
		if p.isNumber() {
			if err := p.checkNumber(value); err != nil {
				return fmt.Errorf("%s %w", p.label(), err)
			}
		}
	}
	return nil
}

// boolOf parses true, 1 and yes, and false, 0 and no, ignoring case.
func boolOf(value string) (bool, error) {
	switch strings.ToLower(value) {
	case "true", "1", "yes":
		return true, nil
	case "false", "0", "no":
		return false, nil
	}
	return false, errors.New("must be true or false")
}

// checkNumber returns an error for a value that is no number or duration, or
// that is out of bounds.
func (p *param) checkNumber(value string) error {
	var err error
	switch p.typ.Name() {
	case "Duration":
		_, err = time.ParseDuration(value)
	case "Int":
		_, err = strconv.ParseInt(value, 10, 64)
	default:
		_, err = strconv.ParseFloat(value, 64)
	}
	low, high := cmp.Or(p.attributes["min"], "0"), p.attributes["max"]
	number, least, most := bound(value), bound(low), bound(high)
	switch {
	case err != nil:
		return fmt.Errorf("must be %s, is %q", p.typeInWords(), value)
	case high != "" && !(number >= least && number <= most):
		return fmt.Errorf("must be %s to %s, is %s", low, high, value)
	case !(number >= least): // NaN fails, too
		return fmt.Errorf("must be %s or more, is %s", low, value)
	}
	return nil
}

// bound returns a number, or a duration in nanoseconds; 0 for neither.
func bound(text string) float64 {
	if duration, err := time.ParseDuration(text); err == nil {
		return float64(duration)
	}
	number, _ := strconv.ParseFloat(text, 64)
	return number
}

// expanded returns a path as an absolute one. ~/ at its beginning is the home
// folder. An empty path stays empty.
func expanded(path string) string {
	home, err := os.UserHomeDir()
	if below, ok := strings.CutPrefix(path, "~/"); ok && err == nil {
		return filepath.Join(home, below)
	}
	if absolute, err := filepath.Abs(path); err == nil && path != "" {
		return absolute
	}
	return path
}

// sets returns copies of the flags in the sets with these names.
func sets(names []string) (flags []*param) {
	for _, name := range names {
		if of := nounNamed(name); of != nil {
			for _, p := range of.flags {
				one := *p
				one.key = p.flag
				flags = append(flags, &one)
			}
		}
	}
	return flags
}

// nouns returns the nouns that are commands.
func nouns() []*noun {
	return slices.DeleteFunc(slices.Clone(table()), func(of *noun) bool { return of.name[0] == '.' })
}

// isList reports whether the parameter takes several values.
func (p *param) isList() bool { return (p.typ.Elem != nil || p.isEach) && !p.isOne }

// isBool reports whether the parameter is a flag without a value.
func (p *param) isBool() bool { return p.typ.Name() == "Boolean" && !p.isList() }

// isNumber reports whether the parser checks that the value is a number or a
// duration. It leaves numbers of inputs to valueOf, because an empty value can
// clear their field.
func (p *param) isNumber() bool {
	return p.isOwn && (p.typ.Name() == "Int" || p.typ.Name() == "Float") || p.typ.Name() == "Duration"
}

// typeInWords returns the type of the values.
func (p *param) typeInWords() string {
	if p.isList() {
		return "a list of strings"
	}
	return map[string]string{"Boolean": "true or false", "Duration": "a duration such as 10s",
		"Float": "a number", "Int": "an integer",
		"Map": "a mapping to strings", "String": "a string"}[p.typ.Name()]
}

// has reports whether the parameter has an attribute, perhaps without a value.
func (p *param) has(attribute string) bool {
	_, ok := p.attributes[attribute]
	return ok
}

// isRequiredAlone reports whether every line needs the flag, since no other flag
// of a group with the attribute xor can replace it.
func (p *param) isRequiredAlone() bool { return p.has("required") && !p.has("xor") }

// isNegatable reports whether --no-NAME sets the flag to false.
func (p *param) isNegatable() bool { return !p.isOwn && p.at != "" && p.isBool() && !p.typ.NonNull }

// isReference reports whether the value can be a name or the beginning of a
// uuid.
func (p *param) isReference() bool {
	return p.kind != "" && (p.typ.Name() == "UUID" || p.kind == "aggregate" || p.kind == anyObject)
}

// describeFor sets the help of a parameter. For a parameter of an operation it
// also sets the attributes enum, placeholder and required.
func (p *param) describeFor(v *verb) {
	if p.isOwn {
		p.help = strings.ReplaceAll(p.help, "${enum}", p.attributes["enum"])
		return
	}
	members := p.members()
	p.help = p.describe(v, members)
	p.attributes = map[string]string{"enum": members, "placeholder": p.placeholder()}
	if !p.isArgument && !p.isBool() && p.isRequired(v) {
		p.attributes["required"] = ""
	}
}

// form returns the parameter in the form of the help: --name=PLACEHOLDER, or
// <name>.
func (p *param) form() string {
	switch {
	case p.isArgument:
		form := "<" + p.flag + ">"
		if p.isList() {
			form += " ..."
		}
		if p.optional {
			form = "[" + form + "]"
		}
		return form
	case p.isNegatable():
		return "--[no-]" + p.flag
	case p.isBool():
		return "--" + p.flag
	}
	value := cmp.Or(p.attributes["placeholder"], p.fallback, strings.ToUpper(p.flag))
	if sep := p.attributes["sep"]; sep != "" {
		value += sep + "..."
	}
	return "--" + p.flag + "=" + value
}

// formWithShort returns the form of the help with the short name of the flag.
func (p *param) formWithShort() string {
	if short := p.attributes["short"]; short != "" {
		return "-" + short + ", " + p.form()
	}
	return p.form()
}
