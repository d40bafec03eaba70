package cli

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// namedFlag is the flag that an error of the parser is about.
var namedFlag = regexp.MustCompile(`--([a-z0-9][a-z0-9-]*)`)

// parseServe parses the arguments of `serve`, of which some cannot be read, without
// those, and notes what is wrong with each: the parser itself stops at the first.
// It returns nil where something else than a flag is wrong.
func (s *session) parseServe(args []string) (*kong.Context, error) {
	unset := map[string]bool{} // flags whose environment variables are not looked at
	for {
		parser, err := newParser(s, func() {})
		if err != nil {
			return nil, err
		}
		for name := range unset {
			if flag := flagNamed(parser, name); flag != nil {
				flag.Envs, flag.Tag.Envs = nil, nil
			}
		}
		parsed, err := parser.Parse(args)
		if err == nil {
			return parsed, nil
		}
		s.wrong = append(s.wrong, usageError{err})
		named := namedFlag.FindStringSubmatch(err.Error())
		if named == nil {
			return nil, nil
		}
		rest := without(args, named[1], flagNamed(parser, named[1]))
		if slices.Equal(rest, args) && unset[named[1]] {
			return nil, nil
		}
		if slices.Equal(rest, args) { // it is set in the environment
			unset[named[1]] = true
		}
		args = rest
	}
}

// flagNamed returns a flag of `serve`, nil for none.
func flagNamed(parser *kong.Kong, name string) *kong.Flag {
	for _, command := range parser.Model.Children {
		if command.Name != "serve" {
			continue
		}
		if i := slices.IndexFunc(command.Flags, func(flag *kong.Flag) bool { return flag.Name == name }); i >= 0 {
			return command.Flags[i]
		}
	}
	return nil
}

// without returns arguments without a flag.
func without(args []string, name string, flag *kong.Flag) []string {
	var rest []string
	takesNext := flag == nil || !flag.IsBool()
	for i := 0; i < len(args); i++ {
		switch {
		case strings.HasPrefix(args[i], "--"+name+"="):
		case args[i] != "--"+name:
			rest = append(rest, args[i])
		case takesNext && i+1 < len(args) && !strings.HasPrefix(args[i+1], "--"):
			i++
		}
	}
	return rest
}

// refuseServe returns everything that is wrong with the flags of `serve`: what
// cannot be read, numbers out of their range, and what the program says of the
// others.
func (s *session) refuseServe(options ServeOptions) error {
	wrong := slices.Clone(s.wrong)
	for _, err := range wrongNumbers(s.parsed) {
		wrong = append(wrong, usageError{err})
	}
	if len(wrong) > 0 && s.program.Check != nil {
		wrong = append(wrong, s.program.Check(options))
	}
	return errors.Join(wrong...)
}
