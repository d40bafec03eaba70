package local

import (
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Choice selects names with two regular expressions. A nil Only selects all
// names. A nil Skipped skips none.
type Choice struct{ Only, Skipped *regexp.Regexp }

// AddFlags adds the flags of the choice: one with the given name, and -skip.
// Their usage messages mention things.
func (c *Choice) AddFlags(flags *flag.FlagSet, name, things string) {
	add := func(name, verb string, into **regexp.Regexp) {
		flags.Func(name, verb+" "+things+" whose names match a regular `EXPRESSION`", func(text string) (err error) {
			*into, err = regexp.Compile(text)
			return err
		})
	}
	add(name, "choose", &c.Only)
	add("skip", "skip", &c.Skipped)
}

// Has reports whether a name is chosen.
func (c Choice) Has(name string) bool {
	return (c.Only == nil || c.Only.MatchString(name)) && (c.Skipped == nil || !c.Skipped.MatchString(name))
}

// List returns the function of a flag whose value is distinct names from all,
// separated by commas, or the word none.
func List(into *[]string, all []string) func(string) error {
	return func(text string) error {
		if *into = nil; text == "none" {
			return nil
		}
		for name := range strings.SplitSeq(text, ",") {
			if !slices.Contains(all, name) || slices.Contains(*into, name) {
				return fmt.Errorf("want some of %s", strings.Join(all, ", "))
			}
			*into = append(*into, name)
		}
		return nil
	}
}
