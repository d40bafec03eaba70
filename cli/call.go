package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// call is one run of the command line.
type call struct {
	ctx            context.Context
	program        Program
	stdout, stderr io.Writer
	line           *line
	out            output
	server         server
	api            *asking
	bar            *progress // nil without a progress bar

	// take and execute set the fields below. serve and help do not call them.
	verb      *verb // a copy, because the run may change its columns
	params    []*param
	given     map[string][]string // values by the key of the parameter
	told      map[string]string   // for errors: flags as written, by the path of the field that they set
	operation operation
	variables map[string]any
}

// take sets the command of the run and the values of its flags and arguments.
func (c *call) take(v *verb) {
	own := *v
	c.verb, c.params = &own, c.line.params
	c.given, c.told, c.variables = map[string][]string{}, map[string]string{}, map[string]any{}
	for _, p := range c.params {
		if p.written != nil {
			c.given[p.key] = p.written
		}
	}
}

// execute runs the command of the line.
func (c *call) execute() error {
	v := c.line.verb
	c.take(v)
	c.out = output{form: c.text("output"), columns: c.given["columns"], quiet: c.is("quiet")}
	defer c.clear()
	if slices.Contains(v.of.shared, ".server") {
		if err := c.choose(); err != nil {
			return err
		}
	}
	if v.send != nil {
		c.operation = operationNamed(v.send[0])
	}
	if err := c.read(); err != nil {
		return err
	}
	for _, name := range []string{v.path(), v.of.name} {
		if run := handlers[name]; run != nil {
			return run(c)
		}
	}
	return c.standard()
}

// standard runs most commands: it asks before it deletes, sends the operation
// and shows the answer.
func (c *call) standard() error {
	if err := c.selectOperation(); err != nil {
		return err
	}
	if c.verb.isDeletion() {
		return c.remove()
	}
	return c.sendAndShow()
}

// read sets the variables from the flags and arguments, and resolves names.
func (c *call) read() error {
	for _, p := range c.params {
		texts, isGiven := c.given[p.key]
		if p.isReference() && isGiven {
			if err := c.resolve(p, texts); err != nil {
				return err
			}
		}
		path, value, _ := strings.Cut(p.attributes["sets"], "=")
		switch {
		case path != "" && isGiven:
			assign(c.variables, path, json.RawMessage(value))
		case p.isOwn:
		case !isGiven:
			c.fillIn(p)
		default:
			if err := c.setVariable(p, texts); err != nil {
				return usagef("%s: %w", p.label(), err)
			}
		}
	}
	return nil
}

// setVariable sets the variable of a parameter that was given, unless the command
// sends a request for each value. --required sets three lists of traits.
func (c *call) setVariable(p *param, texts []string) error {
	value, err := p.value(c.verb, texts)
	prefix, isRequired := strings.CutSuffix(p.at, "requiredAll")
	switch {
	case err != nil || p.isEach:
	case isRequired && p.flag == "required":
		setTraits(c.variables, prefix, texts)
		c.tellTraits(prefix, texts)
	default:
		assign(c.variables, p.at, value)
	}
	return err
}

// fillIn sets a required variable without a value to an empty list or false.
func (c *call) fillIn(p *param) {
	switch {
	case p.isArgument && p.optional && p.typ.NonNull && p.typ.Elem != nil:
		assign(c.variables, p.at, []any{})
	case p.isBool() && p.typ.NonNull && !strings.Contains(p.at, "."):
		assign(c.variables, p.at, false)
	}
}

// value parses the written values of a parameter by its type in the schema. A
// nil value clears the field.
func (p *param) value(v *verb, written []string) (any, error) {
	isEmpty := slices.Equal(written, []string{""})
	switch {
	case isEmpty && (p.isClearable(v) || p.typ.Name() == "EnumLabelInput"):
		return nil, nil
	case p.isEach || p.typ.Elem == nil:
		return valueOf(p.typ.Name(), written[0])
	}
	values := []any{}
	for _, text := range written {
		one, err := valueOf(p.typ.Name(), text)
		if err != nil {
			return nil, err
		}
		values = append(values, one)
	}
	return values, nil
}

// assign sets the variable, or the field of an input variable, at a path such
// as input.name.
func assign(variables map[string]any, at string, value any) {
	first, rest, below := strings.Cut(at, ".")
	if !below {
		variables[first] = value
		return
	}
	inner, ok := variables[first].(map[string]any)
	if !ok {
		inner = map[string]any{}
		variables[first] = inner
	}
	assign(inner, rest, value)
}

// text returns the first value of a flag or an argument, empty for none.
func (c *call) text(flag string) string {
	if all := c.given[flag]; len(all) > 0 {
		return all[0]
	}
	return ""
}

// is reports whether a boolean flag is true.
func (c *call) is(flag string) bool { return c.text(flag) == "true" }

// number returns the value of a flag that takes a number, or 0 if the flag has
// no value or the command no such flag.
func (c *call) number(flag string) (n int) {
	n, _ = strconv.Atoi(c.text(flag)) // the parser has read it
	return n
}

// argument returns the values of the first given argument, or of the last one,
// separated by spaces.
func (c *call) argument(isLast bool) (text string) {
	for _, p := range c.params {
		if p.isArgument && len(c.given[p.key]) > 0 && (text == "" || isLast) {
			text = strings.Join(c.given[p.key], " ")
		}
	}
	return text
}

// selectOperation selects the only operation of the command, otherwise the first
// that fits, or returns a usage error.
func (c *call) selectOperation() error {
	for _, name := range c.verb.send {
		if of := operationNamed(name); len(c.verb.send) == 1 || c.fits(of) {
			c.operation = of
			return nil
		}
	}
	var flags, could []string
	for _, p := range c.params {
		if !p.isOwn {
			could = append(could, p.label())
			if len(c.given[p.key]) > 0 {
				flags = append(flags, p.label())
			}
		}
	}
	if flags == nil {
		return usagef("one of these is required: %s", strings.Join(could, " or "))
	}
	return usagef("%s can't be used together", strings.Join(flags, " and "))
}

// fits reports whether the call can send an operation: it declares every given
// variable, except the one that only picks a row, and each required one is given.
func (c *call) fits(of operation) bool {
	for variable := range c.variables {
		if !of.declares(variable) && variable != c.verb.pick {
			return false
		}
	}
	for _, variable := range of.VariableDefinitions {
		if _, isGiven := c.variables[variable.Variable]; variable.Type.NonNull && !isGiven {
			return false
		}
	}
	return true
}

// sendAndShow sends the operation and shows its answer. For a dry run it notes
// the metadata that the change would break.
func (c *call) sendAndShow() error {
	found, payload, err := c.fetch()
	if err != nil {
		return err
	}
	if problems := memberOf(payload, "problems"); problems != nil && c.operation.Operation == ast.Mutation {
		return c.noteBroken(problems)
	}
	if c.verb.warn != "" {
		c.warn(cmp.Or[any](memberOf(found, "uuid"), any(c.text("resource"))), c.given[c.verb.warn])
	}
	if show := shows[c.verb.path()]; show != nil {
		return show(c, found, payload)
	}
	return c.show(found)
}

// show shows the answer of the operation: the rows of a list up to --limit, the
// row of a list that pick selects, or an object.
func (c *call) show(found any) error {
	kind, v := cmp.Or(c.verb.what, c.verb.of.inWords()), c.verb
	isOne := v.name == "show" && v.as != "rows"
	if object, ok := found.(map[string]any); ok && v.rows != "" {
		if name, ok := object["name"].(string); ok && v.pick != "" {
			kind += " of " + name
		}
		found, isOne = object[v.rows], v.pick != ""
	}
	rows, isList := found.([]any)
	switch isList = isList || found == nil && v.rows != ""; {
	case isList && v.pick != "":
		rows, isOne = pick(rows, v.pick, c.argument(true)), true
	case !isList:
		if v.as == "rows" || v.as != "one" && v.isDeletion() {
			return c.list(c.columns(), []any{found})
		}
		return c.one(c.columns(), found)
	}
	return c.showRows(kind, rows, isOne)
}

// showRows shows rows up to --limit or, if isOne, the first row. An empty list is
// an error if isOne or if the command is a show command.
func (c *call) showRows(kind string, rows []any, isOne bool) error {
	if len(rows) == 0 && (isOne || c.verb.name == "show" && c.verb.as == "rows") {
		return missing(kind, c.argument(true))
	}
	if isOne {
		return c.one(c.columns(), rows[0])
	}
	if limit := c.number("limit"); limit > 0 {
		rows = rows[:min(len(rows), limit)]
	}
	return c.list(c.columns(), rows)
}

func pick(rows []any, member, value string) []any {
	return slices.DeleteFunc(slices.Clone(rows), func(row any) bool { return memberOf(row, member) != value })
}

// columns returns the command's columns: its own, or the noun's with additions.
func (c *call) columns() string {
	if more, ok := strings.CutPrefix(c.verb.columns, "&"); ok || more == "" {
		return c.verb.of.columns + more
	}
	return c.verb.columns
}

// fetch sets the variables of --sort, of the shown columns and of a dry run.
// Then it sends the operation and returns the results of ask, up to --limit
// rows.
func (c *call) fetch() (found, payload any, err error) {
	for _, variable := range c.operation.VariableDefinitions {
		column, ok := strings.CutPrefix(variable.Variable, "with")
		if _, isSet := c.variables[variable.Variable]; ok && !isSet {
			c.variables[variable.Variable] = c.out.shows(strings.ToLower(column))
		}
	}
	if err := c.setOrder(c.text("sort")); err != nil {
		return nil, nil, err
	}
	if input, ok := c.variables["input"].(map[string]any); ok && input["dryRun"] == true {
		c.variables["problems"] = map[string]any{"first": maxScan, "scan": maxScan}
	}
	return c.ask(c.operation, c.variables, c.number("limit"))
}

// setOrder sets the variables of --sort.
func (c *call) setOrder(order string) error {
	if order == "" {
		return nil
	}
	name, direction, _ := strings.Cut(order, ":")
	if !slices.Contains([]string{"", "asc", "desc"}, direction) {
		return usagef("--sort: unknown order %q; write FIELD:asc or FIELD:desc", direction)
	}
	field := &param{typ: c.operation.fieldAt("orderBy.field").Type}
	if field.attributes = map[string]string{"enum": field.members()}; !field.isMember(name) {
		return usagef("--sort: %s", field.notMember(name))
	}
	assign(c.variables, "orderBy.field", constant(name))
	assign(c.variables, "orderBy.direction", constant(cmp.Or(direction, "asc")))
	return nil
}

// query sends another operation of the client and returns the value at its path.
func (c *call) query(operation string, variables map[string]any) (any, error) {
	found, _, err := c.ask(operationNamed(operation), variables, 0)
	return found, err
}

// ask sends an operation and returns the value at its path, and the value of
// its root field, such as the payload of a mutation. Of a list it returns the
// first `most` rows; 0 means all. A missing object is an error.
func (c *call) ask(of operation, variables map[string]any, most int) (found, payload any, err error) {
	if of.declares("first") {
		if variables["first"] = maxPage; most > 0 {
			variables["first"] = min(maxPage, most)
		}
	}
	data, err := c.answer(of, variables, most)
	if err != nil {
		return nil, nil, err
	}
	found, none := of.within(data, variables)
	if none != nil {
		return nil, nil, c.missing(none)
	}
	if rows, ok := found.([]any); ok && most > 0 {
		found = rows[:min(len(rows), most)]
	}
	return found, memberOf(data, of.path()[0].Alias), nil
}

// memberOf returns a member of an object, or nil.
func memberOf(object any, name string) any {
	members, _ := object.(map[string]any)
	return members[name]
}

// listOf returns the list at a path of an object; nil if there is no list.
func listOf(object any, path string) []any {
	list, _ := valueAt(object, path).([]any)
	return list
}

// wordOf returns the value at a path of an object as a printable string.
func wordOf(object any, path string) string { return printable(cell(valueAt(object, path), false)) }

// numberOf returns the integer at a path of an object; 0 if there is none.
func numberOf(object any, path string) int {
	n, _ := strconv.Atoi(wordOf(object, path))
	return n
}
