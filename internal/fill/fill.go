// Package fill fills templates in the syntax of text/template with objects and
// lists of JSON. It replaces text/template, which finds methods by name. With
// text/template the linker would keep every exported method, 7 MB.
package fill

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template/parse"
)

// Functions are the functions of templates, in addition to eq, gt, index, len,
// lt and not.
type Functions map[string]func(arguments ...any) any

// Template is a parsed template.
type Template struct {
	trees     map[string]*parse.Tree
	name      string
	functions Functions
}

// builtin are the functions of every template. They take fewer types than in
// text/template, and panic for any other type.
var builtin = Functions{
	"eq":    func(of ...any) any { return of[0] == of[1] },
	"gt":    func(of ...any) any { return of[0].(int) > of[1].(int) },
	"index": func(of ...any) any { return of[0].(map[string]any)[of[1].(string)] },
	"len":   func(of ...any) any { return len(of[0].([]any)) },
	"lt":    func(of ...any) any { return of[0].(int) < of[1].(int) },
	"not":   func(of ...any) any { return !isTrue(of[0]) },
}

// Parse parses a template. The actions if, with, range, define and template, and
// variables are as in text/template. A pipeline must have only one command.
func Parse(name, text string, functions Functions) (*Template, error) {
	all, known := maps.Clone(builtin), map[string]any{}
	maps.Copy(all, functions)
	for function := range all {
		known[function] = true
	}
	trees, err := parse.Parse(name, text, "", "", known)
	return &Template{trees: trees, name: name, functions: all}, err
}

// Execute returns the template filled with an object. An absent member and its
// members are nil. It is an error if a function does not take the type of a
// value.
func (t *Template) Execute(object map[string]any) (text string, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("%s: %v", t.name, problem)
		}
	}()
	f := &filling{Template: t}
	f.tree(t.name, object)
	return f.String(), nil
}

// filling is one run of a template.
type filling struct {
	*Template
	strings.Builder
	variables []variable // the last one with a name counts
}

type variable struct {
	name  string
	value any
}

func (f *filling) tree(name string, dot any) {
	outer := f.variables
	f.variables = []variable{{"$", dot}}
	f.list(f.trees[name].Root, dot)
	f.variables = outer
}

// list walks a list of nodes. Variables that the nodes set end with the list.
func (f *filling) list(of *parse.ListNode, dot any) {
	if of == nil {
		return
	}
	known := len(f.variables)
	for _, node := range of.Nodes {
		f.walk(node, dot)
	}
	f.variables = f.variables[:known]
}

// walk fills a node. A variable that an action sets lasts until the end of the
// list with the action.
func (f *filling) walk(node parse.Node, dot any) {
	known := len(f.variables)
	switch n := node.(type) {
	case *parse.TextNode:
		f.WriteString(string(n.Text))
	case *parse.ActionNode:
		if value := f.pipe(n.Pipe, dot); len(n.Pipe.Decl) == 0 {
			f.WriteString(fmt.Sprint(value))
		}
		return
	case *parse.IfNode:
		f.either(isTrue(f.pipe(n.Pipe, dot)), &n.BranchNode, dot, dot)
	case *parse.WithNode:
		value := f.pipe(n.Pipe, dot)
		f.either(isTrue(value), &n.BranchNode, value, dot)
	case *parse.RangeNode:
		f.each(n, dot)
	case *parse.TemplateNode:
		f.tree(n.Name, f.pipe(n.Pipe, dot))
	default:
		panic(fmt.Sprintf("%T is not supported", node))
	}
	f.variables = f.variables[:known]
}

func (f *filling) either(isFirst bool, of *parse.BranchNode, dot, otherwise any) {
	if isFirst {
		f.list(of.List, dot)
	} else {
		f.list(of.ElseList, otherwise)
	}
}

// each walks the members of a list, or the values of an object in the order of
// its names.
func (f *filling) each(n *parse.RangeNode, dot any) {
	var keys, values []any
	switch of := f.value(n.Pipe.Cmds[0], dot).(type) {
	case []any:
		values = of
		for i := range of {
			keys = append(keys, i)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(of)) {
			keys, values = append(keys, name), append(values, of[name])
		}
	}
	known := len(f.variables)
	for i, value := range values {
		for j, name := range n.Pipe.Decl {
			given := any(value)
			if j == 0 && len(n.Pipe.Decl) == 2 {
				given = keys[i]
			}
			f.variables = append(f.variables, variable{name.Ident[0], given})
		}
		f.list(n.List, value)
		f.variables = f.variables[:known]
	}
	if len(values) == 0 {
		f.list(n.ElseList, dot)
	}
}

// pipe returns the value of a pipeline of one command, and sets the pipeline's
// variable.
func (f *filling) pipe(of *parse.PipeNode, dot any) any {
	value := f.value(of.Cmds[0], dot)
	for _, name := range of.Decl {
		f.variables = append(f.variables, variable{name.Ident[0], value})
	}
	return value
}

// value returns the value of an operand, or calls a function.
func (f *filling) value(node parse.Node, dot any) any {
	switch n := node.(type) {
	case *parse.CommandNode:
		function, ok := n.Args[0].(*parse.IdentifierNode)
		if !ok {
			return f.value(n.Args[0], dot)
		}
		var arguments []any
		for _, argument := range n.Args[1:] {
			arguments = append(arguments, f.value(argument, dot))
		}
		return f.functions[function.Ident](arguments...)
	case *parse.PipeNode:
		return f.pipe(n, dot)
	case *parse.DotNode:
		return dot
	case *parse.FieldNode:
		return memberOf(dot, n.Ident)
	case *parse.VariableNode:
		for _, one := range slices.Backward(f.variables) {
			if one.name == n.Ident[0] {
				return memberOf(one.value, n.Ident[1:])
			}
		}
	case *parse.StringNode:
		return n.Text
	case *parse.NumberNode:
		return int(n.Int64)
	}
	panic(fmt.Sprintf("%s is not supported", node))
}

func memberOf(of any, path []string) any {
	for _, name := range path {
		object, _ := of.(map[string]any)
		of = object[name]
	}
	return of
}

// isTrue reports whether a value is not nil, false, 0, or an empty string, list
// or object.
func isTrue(value any) bool {
	switch of := value.(type) {
	case nil:
		return false
	case bool:
		return of
	case int:
		return of != 0
	case string:
		return of != ""
	case []any:
		return len(of) > 0
	case map[string]any:
		return len(of) > 0
	}
	return true
}
