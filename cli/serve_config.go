package cli

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/cadastre-dev/cadastre/internal/lists"
)

// setting is a flag, an environment variable, or a key of the file of --config.
type setting struct {
	key, at string   // at is the flag, the variable, or the file, the line and the key, for errors
	node    ast.Node // the value in the file, otherwise nil
	text    string   // the value of a flag or a variable
}

// keys turns the name of a flag into the key of its setting: limits.depth,
// keystone.url, audit-retention.
var keys = strings.NewReplacer("limit-", "limits.", "oidc-", "oidc.", "keystone-", "keystone.")

// groups are the keys with mappings of settings as values.
var groups = []string{"limits", "oidc", "keystone"}

// isKeyOnly reports whether a setting of `serve` is only a key of the file, not
// a flag: its field has the tag key, or it is a limit.
func isKeyOnly(flag *kong.Flag) bool {
	return flag.Tag.Has("key") || strings.HasPrefix(flag.Name, "limit-")
}

// hideKeys hides settings that are not flags from the help of `serve`. It
// removes the environment variables from the parser, because configure reads
// them.
func hideKeys(parser *kong.Kong) error {
	for _, flag := range settingsOf(serveOf(parser)) {
		flag.Hidden = isKeyOnly(flag)
		flag.Tag.Envs = nil
		flag.Help = strings.TrimSuffix(flag.Help, ".") + " ($$" + envOf(flag) + ")."
	}
	return nil
}

// envOf returns the environment variable of a setting.
func envOf(flag *kong.Flag) string {
	return "CADASTRE_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
}

// serveOf returns the command `serve` of the grammar.
func serveOf(parser *kong.Kong) *kong.Node {
	i := slices.IndexFunc(parser.Model.Children, func(of *kong.Node) bool { return of.Name == "serve" })
	return parser.Model.Children[i]
}

// settingsOf returns the flags of `serve` that configure the server.
func settingsOf(serve *kong.Node) []*kong.Flag {
	return slices.DeleteFunc(slices.Clone(serve.Flags), func(flag *kong.Flag) bool { return !isSetting(flag) })
}

// isSetting reports whether a flag of `serve` configures the server.
func isSetting(flag *kong.Flag) bool {
	return !slices.Contains([]string{"config", "print-config", "help"}, flag.Name)
}

// configure sets the settings that the arguments, the environment or the file of
// --config have; the first of them wins. It returns all problems, and notes the
// sources of values in c.sources.
func (c *serveCommand) configure(serve *kong.Node, args []string) (wrong []error) {
	c.sources = map[string]string{}
	given, wrong := flagsIn(serve.Flags, args)
	path := given["config"]
	if path != "" {
		path = kong.ExpandPath(path)
	}
	file, err := readSettings(path)
	if err != nil {
		wrong = append(wrong, err)
	}
	for _, flag := range serve.Flags {
		key := keys.Replace(flag.Name)
		written, isGiven := given[flag.Name]
		var from []setting // the last one wins
		if i := slices.IndexFunc(file, func(of setting) bool { return of.key == key }); i >= 0 && isSetting(flag) {
			from = append(from, file[i])
			file = slices.Delete(file, i, i+1)
		}
		if text, ok := os.LookupEnv(envOf(flag)); ok && !isGiven && isSetting(flag) {
			from = append(from, setting{at: "$" + envOf(flag), text: text})
		}
		if isGiven && isKeyOnly(flag) {
			wrong = append(wrong, fmt.Errorf("--%s is not a flag: set the key %s in the file of --config", flag.Name, key))
		} else if isGiven {
			from = append(from, setting{at: "--" + flag.Name, text: written})
		}
		for _, of := range from {
			value, err := of.parse(flag, filepath.Dir(path))
			if err != nil {
				wrong = append(wrong, fmt.Errorf("%s: %w", of.at, err))
				continue
			}
			flag.Target.Set(value)
			c.sources[flag.Name] = of.at
		}
	}
	return append(wrong, lists.Map(file, func(of setting) error {
		if slices.Contains(groups, of.key) {
			return fmt.Errorf("%s: must be a mapping", of.at)
		}
		return fmt.Errorf("%s: unknown key", of.at)
	})...)
}

// Named returns the source of a flag's value, for errors: the flag, its
// environment variable, or the file, the line and the key.
func (o ServeOptions) Named(flag string) string { return cmp.Or(o.sources[flag], "--"+flag) }

// readSettings returns the settings of a file, none for an empty path.
func readSettings(path string) ([]setting, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	file, err := parser.ParseBytes(text, 0)
	if err != nil { // without the source, because it may have secrets
		return nil, fmt.Errorf("%s: %s", path, yaml.FormatError(err, false, false))
	}
	var found []setting
	for i, document := range file.Docs {
		root, isMapping := document.Body.(ast.MapNode)
		switch {
		case i > 0:
			return nil, fmt.Errorf("%s: more than one YAML document", path)
		case isMapping:
			found = settingsIn(path, "", root)
		case document.Body != nil && document.Body.Type() != ast.CommentType:
			return nil, fmt.Errorf("%s: not a mapping of settings", path)
		}
	}
	return found, nil
}

// settingsIn returns the settings with values of a mapping. The keys of a group
// begin with its name.
func settingsIn(path, group string, mapping ast.MapNode) (found []setting) {
	for each := mapping.MapRange(); each.Next(); {
		token, value := each.Key().GetToken(), each.Value()
		key := group + token.Value
		inner, isMapping := value.(ast.MapNode)
		switch {
		case isMapping && group == "" && slices.Contains(groups, key):
			found = append(found, settingsIn(path, key+".", inner)...)
		case value.Type() != ast.NullType:
			at := fmt.Sprintf("%s:%d: %s", path, token.Position.Line, key)
			found = append(found, setting{key: key, at: at, node: value})
		}
	}
	return found
}

// parse returns the value for a flag. Relative paths in the file begin at its
// folder.
func (s setting) parse(flag *kong.Flag, folder string) (reflect.Value, error) {
	value := reflect.New(flag.Target.Type()).Elem()
	decode := s.decodeText
	if s.node != nil {
		decode = s.decodeNode
	}
	if err := decode(flag, value); err != nil { // the error may quote a secret
		return value, fmt.Errorf("must be %s", typeOf(flag))
	}
	if flag.Enum != "" && !slices.Contains(flag.EnumSlice(), value.String()) {
		return value, fmt.Errorf("must be one of %s, is %q", strings.Join(flag.EnumSlice(), ", "), value)
	}
	switch path := value.String(); {
	case (value.Kind() == reflect.Slice || value.Kind() == reflect.Map) && value.Len() == 0:
		value.SetZero()
	case flag.Tag.Type == "path" && s.node != nil && path != "" && path[0] != '~' && !filepath.IsAbs(path):
		value.SetString(filepath.Join(folder, path))
	case flag.Tag.Type == "path" && path != "":
		value.SetString(kong.ExpandPath(path))
	}
	return value, nil
}

// decodeText decodes the value of a flag or a variable.
func (s setting) decodeText(flag *kong.Flag, value reflect.Value) error {
	if flag.Tag.Type == "path" { // the parser would make an empty path the working directory
		value.SetString(s.text)
		return nil
	}
	scan := kong.Scan().PushTyped(s.text, kong.FlagValueToken)
	return flag.Mapper.Decode(&kong.DecodeContext{Value: flag.Value, Scan: scan}, value)
}

// decodeNode decodes the value in the file.
func (s setting) decodeNode(_ *kong.Flag, value reflect.Value) error {
	switch isDuration := value.Type() == reflect.TypeFor[time.Duration](); {
	case isDuration && s.node.GetToken().Value == "0":
		return nil
	case s.node.Type() == ast.FloatType && value.CanInt(): // it would be truncated
		return errors.New("has a fraction")
	}
	return yaml.NodeToValue(s.node, value.Addr().Interface())
}

// typeOf returns the type of a setting, in words.
func typeOf(flag *kong.Flag) string {
	if flag.Target.Type() == reflect.TypeFor[time.Duration]() {
		return "a duration such as 10s"
	}
	switch flag.Target.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Slice:
		return "a list of strings"
	case reflect.Map:
		return "a mapping to strings"
	case reflect.Float64:
		return "a number"
	}
	return "an integer"
}

// printConfig prints all settings as a file for --config, with their descriptions.
func (s *session) printConfig() error {
	group := ""
	for _, flag := range settingsOf(serveOf(s.parsed.Kong)) {
		of, key, indent := "", keys.Replace(flag.Name), ""
		if before, after, ok := strings.Cut(key, "."); ok {
			of, key, indent = before, after, "  "
		}
		if of != group && of != "" {
			_ = s.printf("%s:\n", of)
		}
		group = of
		text, err := yaml.Marshal(map[string]any{key: shown(flag)})
		if err != nil {
			return err
		}
		lines := strings.ReplaceAll(strings.TrimSuffix(string(text), "\n"), "\n", "\n"+indent)
		if err := s.printf("%s# %s\n%s%s\n", indent, flag.Help, indent, lines); err != nil {
			return err
		}
	}
	return nil
}

// hidden is printed instead of a secret, as net/url does.
const hidden = "xxxxx"

// shown returns the value of a setting for printing.
func shown(flag *kong.Flag) any {
	switch value := flag.Target.Interface().(type) {
	case time.Duration:
		return value.String()
	case string:
		if flag.Tag.Has("secret") && value != "" {
			return hidden
		}
		return withoutPassword(value)
	default:
		return value
	}
}

// passwords matches the parameters of URLs that are secrets.
var passwords = regexp.MustCompile(`((?:^|[?&])(?:ssl)?password=)[^&]*`)

// withoutPassword returns a string with the passwords of a URL replaced.
func withoutPassword(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	of, err := url.Parse(text)
	if err != nil {
		return hidden // it will be refused
	}
	of.RawQuery = passwords.ReplaceAllString(of.RawQuery, "${1}"+hidden)
	if _, ok := of.User.Password(); !ok && !passwords.MatchString(of.RawQuery) {
		return text // unchanged
	}
	return of.Redacted()
}
