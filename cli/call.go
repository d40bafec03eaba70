package cli

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/cadastre-dev/cadastre/client"
)

// call is one run of a generated command.
type call struct {
	*session
	noun      noun
	verb      verb
	target    reflect.Value // the struct that kong filled
	params    []*param
	given     map[string][]string // values by the paths of their fields
	operation operation
	variables map[string]any
}

// newCall returns the run of the command at a node of the grammar; nil where that
// is written by hand.
func (s *session) newCall(node *kong.Node) *call {
	for _, of := range grammar() {
		if node == nil || node.Parent == nil || node.Parent.Name != of.name {
			continue
		}
		for _, v := range of.verbs {
			if v.name == node.Name && v.command == nil {
				c := &call{session: s, noun: of, verb: v, target: node.Target, given: map[string][]string{}}
				c.params, _, _ = v.params(of)
				return c
			}
		}
	}
	return nil
}

// execute runs the command.
func (c *call) execute() error {
	c.operation = operationNamed(strings.Fields(c.verb.send)[0])
	if err := c.read(); err != nil {
		return err
	}
	if c.verb.run != nil {
		return c.verb.run(c)
	}
	return c.standard()
}

// standard is what most commands do: they ask where they delete, send their
// operation and show the answer.
func (c *call) standard() error {
	if err := c.choose(); err != nil {
		return err
	}
	if c.verb.isDeletion() {
		return c.remove()
	}
	return c.sendAndShow()
}

// read turns the flags and arguments that were given into variables.
func (c *call) read() error {
	if err := c.resolve(c.target.Addr().Interface()); err != nil {
		return err
	}
	c.variables = map[string]any{}
	return eachField(c.target, func(field reflect.StructField, value reflect.Value) error {
		at := field.Tag.Get("at")
		if at == "" {
			return nil
		}
		i := slices.IndexFunc(c.params, func(p *param) bool { return p.at == at })
		p := c.params[i]
		if isAbsent(value) || value.Kind() == reflect.String && value.Len() == 0 && !p.isArgument {
			if p.isArgument && p.optional && p.typ.NonNull && p.typ.Elem != nil {
				assign(c.variables, at, []any{}) // none, rather than absent
			}
			return nil
		}
		c.given[at] = stringsOf(value)
		made, err := p.value(c.verb, c.given[at])
		if err != nil {
			return usagef("%s: %w", labelOf(field), err)
		}
		if p.isEach {
			return nil
		}
		if p.flag == "required" && strings.HasSuffix(p.at, "requiredAll") {
			c.required(strings.TrimSuffix(p.at, "requiredAll"), c.given[at])
			return nil
		}
		assign(c.variables, at, made)
		return nil
	})
}

// stringsOf returns the values of a flag as they were written.
func stringsOf(value reflect.Value) []string {
	value = reflect.Indirect(value)
	if several, ok := value.Interface().([]string); ok {
		return several
	}
	return []string{fmt.Sprint(value.Interface())}
}

// value returns the value of a parameter for the variables of an operation.
func (p *param) value(v verb, written []string) (any, error) {
	if p.isClearable(v) && slices.Equal(written, []string{""}) {
		return nil, nil
	}
	if p.isEach || p.typ.Elem == nil {
		return valueOf(p.typ.Name(), written[0])
	}
	if p.typ.Name() == "EnumLabelInput" && slices.Equal(written, []string{""}) {
		return nil, nil
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

// required sets the three lists of traits that --required means.
func (c *call) required(prefix string, written []string) {
	traits := traitsOf(written)
	assignList(c.variables, prefix+"requiredAll", traits.all)
	assignList(c.variables, prefix+"forbidden", traits.forbidden)
	assignList(c.variables, prefix+"requiredAnySets", traits.anySets)
	for _, field := range []string{"requiredAll", "requiredAnySets", "forbidden"} {
		c.tell(prefix+field, "--required "+strings.Join(written, " --required "))
	}
}

func assignList[T any](variables map[string]any, at string, list []T) {
	if list != nil {
		assign(variables, at, list)
	}
}

// assign sets the variable, or the field of an input in it, at a path.
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

// text returns the value of a flag or an argument, empty for none.
func (c *call) text(flag string) string {
	if all := c.texts(flag); len(all) > 0 {
		return all[0]
	}
	return ""
}

// texts returns all values of a flag or an argument.
func (c *call) texts(flag string) []string {
	for _, p := range c.params {
		if p.flag == flag {
			return c.given[p.at]
		}
	}
	return nil
}

// choose selects the operation that has a variable for everything that was given.
func (c *call) choose() error {
	names := strings.Fields(c.verb.send)
	for _, name := range names {
		if of := operationNamed(name); len(names) == 1 || c.fits(of) {
			c.operation = of
			return nil
		}
	}
	var flags []string
	for _, p := range c.params {
		if len(c.given[p.at]) > 0 || len(c.given) == 0 {
			flags = append(flags, p.label())
		}
	}
	if len(c.given) == 0 {
		return usagef("say which: %s", strings.Join(flags, " or "))
	}
	return usagef("%s can't be used together", strings.Join(flags, " and "))
}

// fits reports whether an operation has a variable for everything that was given,
// and nothing that it needs is missing.
func (c *call) fits(of operation) bool {
	for variable := range c.variables {
		if !of.declares(variable) {
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

// label returns the parameter as it is written on a command line.
func (p *param) label() string {
	if p.isArgument {
		return "<" + p.flag + ">"
	}
	return "--" + p.flag
}

// sendAndShow sends the operation and shows its answer.
func (c *call) sendAndShow() error {
	found, data, err := c.fetch()
	if err != nil {
		return err
	}
	if problems := memberOf(data, "problems"); problems != nil && c.operation.Operation == "mutation" {
		return c.broken(problems)
	}
	return c.show(found)
}

// show shows the answer of the operation.
func (c *call) show(found any) error {
	columns := c.columns()
	if object, ok := found.(map[string]any); ok && c.verb.rows != "" {
		found = object[c.verb.rows]
	}
	if several, ok := found.([]any); ok && (c.verb.name != "show" || c.verb.rows != "") {
		return list(c.session, columns, several)
	} else if ok {
		if len(several) == 0 {
			return missing(c.noun.inWords(), strings.Join(c.texts("name"), " "))
		}
		found = several[0]
	}
	if found == nil && c.verb.rows != "" {
		return list(c.session, columns, []any{})
	}
	if c.verb.isTable || c.verb.isDeletion() {
		return list(c.session, columns, []any{found})
	}
	return one(c.session, columns, found)
}

// inWords returns the noun as words.
func (n noun) inWords() string { return strings.ReplaceAll(n.name, "-", " ") }

// columns returns the columns of the command.
func (c *call) columns() []column {
	written := c.verb.columns
	if more, ok := strings.CutPrefix(written, "&"); ok || written == "" {
		written = c.noun.columns + more
	}
	return columnsOf(written)
}

// fetch sends the operation and returns the value at its path, and the payload. For
// a list it reads all pages, up to --limit rows.
func (c *call) fetch() (found, payload any, err error) {
	for _, variable := range c.operation.VariableDefinitions {
		if column, ok := strings.CutPrefix(variable.Variable, "with"); ok {
			c.variables[variable.Variable] = c.shows(strings.ToLower(column))
		}
	}
	most := 0
	if p := embedded[paging](c); p != nil {
		most = p.Limit
	}
	if s := embedded[sorting](c); s != nil && s.Sort != "" {
		if err := s.into(c.variables); err != nil {
			return nil, nil, err
		}
	}
	if input, ok := c.variables["input"].(map[string]any); ok && input["dryRun"] == true {
		c.variables["problems"] = map[string]any{"first": maxPage * 5, "scan": maxPage * 5}
	}
	return c.ask(c.operation, c.variables, most)
}

// ask sends an operation and returns the value at its path, and the payload of a
// mutation. For a list it reads pages until it has most rows; 0 is all.
func (s *session) ask(of operation, variables map[string]any, most int) (found, payload any, err error) {
	if of.declares("first") {
		variables["first"] = firstOf(most)
	}
	request := of.request(variables)
	answer := func() (any, error) { return send(s, request) }
	data, err := answer()
	if list, wrong := pagesOf(allOperations(), of.OperationDefinition); err == nil && wrong == nil && s.isPaged(data, list.path) {
		data, err = list.rest(data, variables, answer, most)
	}
	if err != nil {
		return nil, nil, err
	}
	if found, err = of.within(data, variables); err != nil {
		return nil, nil, err
	}
	if rows, ok := found.([]any); ok && most > 0 {
		found = rows[:min(len(rows), most)]
	}
	return found, memberOf(data, of.path()[0].Alias), nil
}

// isPaged reports whether the list at a path of an answer has pages.
func (s *session) isPaged(data any, path []string) bool {
	page, ok := at(data, path)
	return ok && page["pageInfo"] != nil
}

// memberOf returns a member of an object, or nil.
func memberOf(object any, name string) any {
	members, _ := object.(map[string]any)
	return members[name]
}

// embedded returns the flags of a type that the command has; nil for none.
func embedded[T any](c *call) *T {
	for i := range c.target.NumField() {
		if of, ok := c.target.Field(i).Addr().Interface().(*T); ok {
			return of
		}
	}
	return nil
}

// broken notes the metadata that a change would break, in a dry run.
func (c *call) broken(problems any) error {
	page := &client.BrokenMetadata{}
	if err := into(page, problems); err != nil {
		return err
	}
	for _, item := range brokenItems(page.Nodes) {
		c.notef("%s", item.wouldBreak())
	}
	more := ""
	if !page.Complete {
		more = "; there may be more"
	}
	c.notef("dry run, nothing was done: metadata of %s would break definitions%s\n", counted(len(page.Nodes), "resource"), more)
	return nil
}

// remove looks the named things up, asks, and deletes them one after the other. It
// shows each deleted thing, also if a later deletion fails.
func (c *call) remove() error {
	each := slices.IndexFunc(c.params, func(p *param) bool { return p.isEach })
	if err := c.confirmed(each); err != nil || each < 0 {
		if err != nil {
			return err
		}
		return c.sendAndShow()
	}
	var deleted []any
	for _, text := range c.given[c.params[each].at] {
		assign(c.variables, c.params[each].at, text)
		one, _, err := c.ask(c.operation, c.variables, 0)
		if err != nil {
			if c.noun.name == "provider" {
				err = c.withChildren(err, text)
			}
			if len(deleted) > 0 {
				err = errors.Join(list(c.session, c.columns(), deleted), err)
			}
			return err
		}
		deleted = append(deleted, one)
	}
	return list(c.session, c.columns(), deleted)
}

// confirmed asks the question of the command, after it has looked up what the
// question is about, unless --yes is set.
func (c *call) confirmed(each int) error {
	asks := embedded[deletion](c)
	if asks.Yes {
		return nil
	}
	question := c.verb.ask
	if question == "" {
		question = "Delete the " + c.noun.inWords() + " {" + c.params[max(each, 0)].flag + "}?"
	}
	for _, p := range c.params {
		for _, text := range c.given[p.at] {
			if err := c.lookUp(p, text); err != nil {
				return err
			}
		}
		said := strings.Join(c.given[p.at], ", ")
		if p.isList() {
			said = quoted(c.given[p.at])
		}
		question = strings.ReplaceAll(question, "{"+p.flag+"}", said)
	}
	return asks.confirm(c.session, "yes", "%s", question)
}

// lookUp returns an error where something that a question is about does not exist.
func (c *call) lookUp(p *param, text string) error {
	readers := map[string]string{"resource": "ReadResource", "provider": "ReadProvider", "consumer": "ReadConsumer",
		"namespace": "ReadNamespace", "resource-type": "ReadResourceType"}
	reader := readers[p.kind]
	variables := map[string]any{"uuid": text, "name": text}
	if reader == "" && p.isEach {
		for _, v := range c.noun.verbs {
			if v.name == "show" && c.text("object") == "" {
				reader = strings.Fields(v.send)[0]
			}
		}
		variables["namespace"] = c.text("namespace")
	}
	if reader == "" || strings.HasPrefix(reader, "List") {
		return nil
	}
	of := operationNamed(reader)
	for variable := range variables {
		if !of.declares(variable) || variable == "name" && of.declares("uuid") {
			delete(variables, variable)
		}
	}
	_, _, err := c.ask(of, variables, 0)
	return err
}
