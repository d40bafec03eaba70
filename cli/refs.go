package cli

import (
	"fmt"
	"iter"
	"reflect"
	"strings"

	"github.com/google/uuid"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/client/optional"
)

// maxMatches is how many things an ambiguous name lists, and maxLooked how many
// with the text in their names are looked through.
const (
	maxMatches = 10
	maxLooked  = 1000
)

// match is a thing that a name stands for.
type match struct{ uuid, name, of string }

// resolve puts uuids in the place of the names and beginnings of uuids that the
// flags and arguments of a command have.
func (s *session) resolve(command any) error {
	return eachField(reflect.ValueOf(command).Elem(), func(field reflect.StructField, value reflect.Value) error {
		kind := field.Tag.Get("ref")
		if kind == "" || isAbsent(value) {
			return nil
		}
		switch of := value.Addr().Interface().(type) {
		case *string:
			if _, isArgument := field.Tag.Lookup("arg"); !isArgument && *of == "" {
				return nil // the flag was not given
			}
			if *of == "" {
				return usagef("<%s> is empty: write a name, a uuid, or the beginning of one", flagName(field))
			}
			return s.resolveText(kind, of)
		case **string:
			return s.resolveText(kind, *of)
		case *[]string:
			for i := range *of {
				if err := s.resolveText(kind, &(*of)[i]); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// resolveText puts a uuid in the place of a name or the beginning of a uuid. An
// empty text clears a field and stays.
func (s *session) resolveText(kind string, text *string) error {
	if _, err := uuid.Parse(*text); err == nil || *text == "" {
		return nil
	}
	find := map[string]func(string) ([]match, error){"resource": s.findResources, "provider": s.findProviders, "consumer": s.findResources}[kind]
	found, err := find(*text)
	if err != nil {
		return err
	}
	switch len(found) {
	case 0:
		return missingError{fmt.Errorf("%s %q does not exist: it is neither a uuid nor a name, nor the beginning of one", kind, *text)}
	case 1:
		*text = found[0].uuid
		return nil
	}
	lines := ""
	for i, of := range found {
		if i == maxMatches {
			lines += fmt.Sprintf("\n  and %d more", len(found)-maxMatches)
			break
		}
		lines += fmt.Sprintf("\n  %s  %s", of.uuid, printable(of.name))
		if of.of != "" {
			lines += "  " + of.of
		}
	}
	return usagef("%q is ambiguous, %d %ss match; write more of it, or a uuid:%s", *text, len(found), kind, lines)
}

// nearest returns the things with exactly this name or, without one, those whose
// names or uuids begin with it, whatever the case.
func nearest(text string, found []match) (out []match) {
	for _, of := range found {
		if of.name == text {
			out = append(out, of)
		}
	}
	if out != nil {
		return out
	}
	for _, of := range found {
		if beginsWith(of.name, text) || beginsWith(of.uuid, text) {
			out = append(out, of)
		}
	}
	return out
}

func beginsWith(text, prefix string) bool {
	return strings.HasPrefix(strings.ToLower(text), strings.ToLower(prefix))
}

// tooMany returns the error of a text that stands in too many names.
func tooMany(text string) error {
	return usagef("%q stands in %d names or more; write more of it, or a uuid", text, maxLooked)
}

func (s *session) findResources(text string) ([]match, error) {
	order := &client.ResourceOrder{Field: client.ResourceOrderFieldName, Direction: optional.Value(client.OrderDirectionAsc)}
	return find(text, []*client.ResourceFilter{{Name: optional.Value(text)}, {NameContains: optional.Value(text)}}, func(filter *client.ResourceFilter, first *int) iter.Seq2[*client.ListedResource, error] {
		return client.Resources(s.ctx, s.api, filter, order, first, false)
	}, func(of *client.ListedResource) match {
		return match{of.Uuid, of.Name, of.Type.Name + ", project " + of.ProjectId}
	})
}

func (s *session) findProviders(text string) ([]match, error) {
	return find(text, []*client.ResourceProviderFilter{{Name: optional.Value(text)}, {Search: optional.Value(text)}}, func(filter *client.ResourceProviderFilter, first *int) iter.Seq2[*client.ProviderName, error] {
		return client.ProviderNames(s.ctx, s.api, filter, first)
	}, func(of *client.ProviderName) match { return match{of.Uuid, of.Name, ""} })
}

// find returns what a text may mean of what is listed under the first filter that
// leaves something like it.
func find[F, T any](text string, filters []F, list func(filter F, first *int) iter.Seq2[T, error], matchOf func(T) match) ([]match, error) {
	for _, filter := range filters {
		first := maxPage
		found, err := client.Collect(list(filter, &first), maxLooked)
		if err != nil {
			return nil, err
		}
		if len(found) == maxLooked {
			return nil, tooMany(text)
		}
		var all []match
		for _, of := range found {
			all = append(all, matchOf(of))
		}
		if near := nearest(text, all); near != nil {
			return near, nil
		}
	}
	return nil, nil
}
