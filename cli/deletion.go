package cli

import (
	"bufio"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/internal/lists"
)

// remove asks, unless --yes is set, and deletes the named objects one by one. It
// shows each deleted object, even if a later deletion fails.
func (c *call) remove() error {
	each := slices.IndexFunc(c.params, func(p *param) bool { return p.isEach })
	if err := c.confirmed(c.params[max(each, 0)]); err != nil {
		return err
	}
	if each < 0 {
		return c.sendAndShow()
	}
	deleted := []any{}
	for _, text := range c.given[c.params[each].key] {
		assign(c.variables, c.params[each].at, text)
		one, _, err := c.ask(c.operation, c.variables, 0)
		if err != nil {
			if c.verb.of.name == "provider" {
				err = c.withChildren(err, text)
			}
			return c.failed(deleted, err)
		}
		deleted = append(deleted, one)
	}
	return c.list(c.columns(), deleted)
}

// failed shows the rows that a command completed before an error, and returns the error.
func (c *call) failed(done []any, err error) error {
	if len(done) > 0 {
		err = errors.Join(c.list(c.columns(), done), err)
	}
	return err
}

// confirmed looks up the objects that a command deletes and asks its question,
// unless --yes is set.
func (c *call) confirmed(each *param) error {
	if c.is("yes") {
		return nil
	}
	question := c.verb.ask
	if question == "" {
		question = "Delete the " + c.verb.of.inWords() + " {" + each.flag + "}?"
	}
	for _, p := range c.params {
		if p.isOwn {
			continue
		}
		for _, text := range c.given[p.key] {
			if err := c.lookUp(p, text); err != nil {
				return err
			}
		}
		said := strings.Join(c.given[p.key], ", ")
		if p.isList() {
			said = quoted(c.given[p.key])
		}
		question = strings.ReplaceAll(question, "{"+p.flag+"}", said)
	}
	return c.confirm("yes", "%s", question)
}

// lookUp returns an error if it finds that the named object does not exist.
func (c *call) lookUp(p *param, text string) error {
	kind := p.kind
	if p.isEach {
		kind = c.verb.of.name
	}
	switch {
	case kind == "trait" || kind == "resource-class" && p.isEach:
		_, err := c.named(kind, map[string]any{"names": []string{text}}, 1)
		if client.Code(err) == client.BadUserInput {
			return c.missing(&missingAt{kind: kind, name: text})
		}
		return err
	case p.typ.Name() == "InventoryInput": // a new value
		return nil
	case kind == "resource-class":
		return c.lookIn("ReadProvider", "inventories", "resourceClass", "inventory", text)
	case p.flag == "keys":
		return c.lookIn("ReadResource", "metadata", "key", "metadata item", text)
	}
	of := nounNamed(kind)
	if of == nil || of.verbNamed("show") == nil || c.text("object") != "" || len(of.verbNamed("show").send) == 0 {
		return nil
	}
	return c.lookWith(operationNamed(of.verbNamed("show").send[0]), text)
}

// lookWith returns an error if an operation does not find an object. It sends
// nothing if the command lacks a variable of the operation.
func (c *call) lookWith(reader operation, text string) error {
	variables := map[string]any{"name": text, "uuid": text}
	if reader.declares("uuid") {
		delete(variables, "name")
	}
	for _, of := range c.params {
		field := of.at[strings.LastIndex(of.at, ".")+1:]
		if given := c.given[of.key]; len(given) > 0 && variables[field] == nil {
			variables[field] = given[0]
		}
	}
	for _, variable := range reader.VariableDefinitions {
		if variable.Type.NonNull && variables[variable.Variable] == nil {
			return nil
		}
	}
	_, _, err := c.ask(reader, variables, 0)
	return err
}

// lookIn returns an error if the object that the first argument names has no
// member with this value in a list.
func (c *call) lookIn(reader, list, member, kind, value string) error {
	found, err := c.query(reader, map[string]any{"uuid": c.argument(false)})
	if err == nil && len(pick(listOf(found, list), member, value)) == 0 {
		err = missing(kind+" of "+wordOf(found, "name"), value)
	}
	return err
}

// confirm asks a question unless --yes is set. Any answer but the word is an
// error.
func (c *call) confirm(word, question string, args ...any) error {
	if c.is("yes") {
		return nil
	}
	c.notef("%s Type %s: ", printable(fmt.Sprintf(question, args...)), word)
	answer, _ := bufio.NewReader(c.input()).ReadString('\n')
	if strings.TrimSpace(answer) == word {
		return nil
	}
	c.notef("\n")
	return fmt.Errorf("nothing was deleted: type %s to confirm, or use --yes", word)
}

// withChildren adds the names of the children to the error of a provider that
// was not deleted.
func (c *call) withChildren(refused error, uuid string) error {
	if client.Code(refused) != client.InUse {
		return refused
	}
	variables := map[string]any{"filter": map[string]any{"inTree": uuid}}
	found, _, err := c.ask(operationNamed("ListProviders"), variables, maxLooked)
	var names []string
	for _, of := range listOf(found, "") {
		if valueAt(of, "parent.uuid") == uuid {
			names = append(names, wordOf(of, "name"))
		}
	}
	if err != nil || names == nil {
		return refused
	}
	return fmt.Errorf("%w; its children are %s", refused, quoted(names))
}

// quoted returns names in words: the first few, and the number of others.
func quoted(names []string) string {
	const shown = 5
	first := lists.Map(names[:min(len(names), shown)], func(name string) string { return fmt.Sprintf("%q", name) })
	if more := len(names) - shown; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(first, ", "), more)
	}
	return strings.Join(first, ", ")
}

// counted returns a number of objects in words: 1 file, 2 files.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %s", n, plural(noun))
}
