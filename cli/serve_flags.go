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

// parseServe parses the arguments of `serve` without those that cannot be read, and
// notes the error of each: the parser stops at the first error. It returns nil if the
// error is not about a flag.
func (s *session) parseServe(args []string) (*kong.Context, error) {
	for {
		parser, err := newParser(s, func() {})
		if err != nil {
			return nil, err
		}
		parsed, err := parser.Parse(args)
		if err == nil {
			return parsed, nil
		}
		s.wrong = append(s.wrong, usageError(err))
		named := namedFlag.FindStringSubmatch(err.Error())
		if named == nil {
			return nil, nil
		}
		flags := serveOf(parser).Flags
		takesNext := !slices.ContainsFunc(flags, func(flag *kong.Flag) bool {
			return flag.Name == named[1] && flag.IsBool()
		})
		rest := without(args, named[1], takesNext)
		if slices.Equal(rest, args) {
			return nil, nil
		}
		args = rest
	}
}

// without returns arguments without a flag, whose value may be the next argument.
func without(args []string, name string, takesNext bool) []string {
	var rest []string
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

// refuseServe returns everything that is wrong with the settings of `serve`: values
// that cannot be read, numbers out of their range, and the errors of the program about
// the others.
func (s *session) refuseServe(c *serveCommand) error {
	wrong := slices.Clone(s.wrong)
	for _, err := range append(c.configure(s.parsed), wrongNumbers(s.parsed, c.Named)...) {
		wrong = append(wrong, usageError(err))
	}
	if len(wrong) > 0 && s.program.Check != nil {
		_, err := s.program.Check(c.ServeOptions)
		wrong = append(wrong, err)
	}
	return errors.Join(wrong...)
}
