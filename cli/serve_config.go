package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/cadastre-dev/cadastre/internal/lists"
)

// setting is a flag, an environment variable, a credential, or a key of the file
// of --config.
type setting struct {
	key, at string   // at is the flag, the variable, or the file with the line and the key, for errors
	node    ast.Node // the value in the file, otherwise nil
	texts   []string // the values of a flag, a variable or a credential
}

// keys turns the name of a flag into the key of its setting: limits.depth,
// keystone.url, audit-retention.
var keys = strings.NewReplacer("limit-", "limits.", "oidc-", "oidc.", "keystone-", "keystone.")

// groups are the keys with mappings of settings as values.
var groups = []string{"limits", "oidc", "keystone"}

// isKeyOnly reports whether a setting of `serve` is only a key of the file, not
// a flag: its field has the tag key, or it is a limit.
func (p *param) isKeyOnly() bool {
	return p.has("key") || p.target.IsValid() && strings.HasPrefix(p.flag, "limit-")
}

// envOf returns the environment variable of a setting.
func envOf(p *param) string {
	return "CADASTRE_" + strings.ToUpper(strings.ReplaceAll(p.flag, "-", "_"))
}

// settingsOf returns the parameters of `serve` that configure the server.
func settingsOf(params []*param) []*param {
	return slices.DeleteFunc(slices.Clone(params), func(p *param) bool { return !isSetting(p) })
}

// isSetting reports whether a flag of `serve` configures the server.
func isSetting(p *param) bool { return p.flag != "config" && p.flag != "print-config" }

// configure sets the settings from the line, the environment, credentials and the
// file of --config, in this order of precedence. It returns all problems, and
// notes the sources of values in c.sources.
func (c *serveCommand) configure(ctx context.Context, l *line) (wrong []error) {
	c.sources = map[string]string{}
	wrong = l.takeGiven()
	path := ""
	if p, _ := l.flagNamed("--config"); p.written != nil {
		path = expanded(p.written[0])
	}
	file, err := readSettings(ctx, path)
	if err != nil {
		wrong = append(wrong, err)
	}
	for _, p := range l.params {
		key, isGiven := keys.Replace(p.flag), p.written != nil
		var from []setting // the last one wins
		if i := slices.IndexFunc(file, func(of setting) bool { return of.key == key }); i >= 0 && isSetting(p) {
			from = append(from, file[i])
			file = slices.Delete(file, i, i+1)
		}
		switch {
		case !isGiven:
			around, err := fromEnvironment(p)
			if from = append(from, around...); err != nil {
				wrong = append(wrong, err)
			}
		case p.isKeyOnly():
			wrong = append(wrong, fmt.Errorf("--%s is not a flag: set the key %s in the file of --config", p.flag, key))
		default:
			from = append(from, setting{at: "--" + p.flag, texts: p.written})
		}
		for _, of := range from {
			value, err := of.parse(p, filepath.Dir(path))
			if err != nil {
				wrong = append(wrong, fmt.Errorf("%s: %w", of.at, err))
				continue
			}
			p.target.Set(value)
			c.sources[p.flag] = of.at
		}
	}
	return append(wrong, lists.Map(file, func(of setting) error {
		if slices.Contains(groups, of.key) {
			return fmt.Errorf("%s: must be a mapping", of.at)
		}
		return fmt.Errorf("%s: unknown key", of.at)
	})...)
}

// fromEnvironment returns the values of a flag from its credential and from its
// environment variable. The credential is the file with the flag's name in
// $CREDENTIALS_DIRECTORY, which systemd and containers make for secrets. Its value
// is the text without the last line feed, or for a flag that names a file the path
// of the credential.
func fromEnvironment(p *param) (from []setting, err error) {
	if folder := os.Getenv("CREDENTIALS_DIRECTORY"); folder != "" && isSetting(p) {
		path := filepath.Join(folder, p.flag)
		text, err := os.ReadFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, fmt.Errorf("read the credential %s: %w", p.flag, err)
		case p.isPath():
			from = append(from, setting{at: path, texts: []string{path}})
		default:
			p.take(strings.TrimSuffix(string(text), "\n"))
			from, p.written = append(from, setting{at: path, texts: p.written}), nil
		}
	}
	if text, ok := os.LookupEnv(p.attributes["env"]); ok {
		p.take(text)
		from = append(from, setting{at: "$" + envOf(p), texts: p.written})
	}
	return from, nil
}

// Named returns the source of a flag's value, for errors: the flag, its
// environment variable, its credential, or the file, the line and the key.
func (o ServeOptions) Named(flag string) string { return cmp.Or(o.sources[flag], "--"+flag) }

// readSettings returns the settings of a file, none for an empty path. A file that
// is a pipe is read only after another program has opened it.
func readSettings(ctx context.Context, path string) ([]setting, error) {
	if path == "" {
		return nil, nil
	}
	text, err := orInterrupt(ctx, func() ([]byte, error) { return os.ReadFile(path) })
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

// settingsIn returns the settings of a mapping, without null ones. The keys of a
// group begin with its name.
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

// parse returns the value for a setting. A relative path in the file is
// relative to the folder of the file.
func (s setting) parse(p *param, folder string) (reflect.Value, error) {
	value := reflect.New(p.target.Type()).Elem()
	decode := s.decodeText
	if s.node != nil {
		decode = s.decodeNode
	}
	if err := decode(value); err != nil { // the error may quote a secret
		return value, fmt.Errorf("must be %s", p.typeInWords())
	}
	if !p.isMember(value.String()) {
		return value, errors.New(p.notMember(value.String()))
	}
	switch path := value.String(); {
	case (value.Kind() == reflect.Slice || value.Kind() == reflect.Map) && value.Len() == 0:
		value.SetZero()
	case p.isPath() && s.node != nil && path != "" && path[0] != '~' && !filepath.IsAbs(path):
		value.SetString(filepath.Join(folder, path))
	case p.isPath():
		value.SetString(expanded(path))
	}
	return value, nil
}

// decodeText decodes the values of a flag or a variable.
func (s setting) decodeText(value reflect.Value) (err error) {
	last := ""
	if len(s.texts) > 0 { // an empty list has none
		last = s.texts[len(s.texts)-1]
	}
	switch into := value.Addr().Interface().(type) {
	case *string:
		*into = last
	case *bool:
		*into, err = boolOf(last)
	case *time.Duration:
		*into, err = time.ParseDuration(last)
	case *[]string:
		*into = slices.DeleteFunc(slices.Clone(s.texts), func(of string) bool { return of == "" })
	case *map[string]string:
		*into, err = pairsOf(last)
	case *float64:
		*into, err = strconv.ParseFloat(last, 64)
	default:
		var number int64
		number, err = strconv.ParseInt(last, 10, 64)
		value.SetInt(number)
	}
	return err
}

// pairsOf reads NAME=VALUE;NAME=VALUE.
func pairsOf(text string) (pairs map[string]string, err error) {
	pairs = map[string]string{}
	for _, pair := range strings.Split(text, ";") {
		name, value, ok := strings.Cut(pair, "=")
		if !ok && text != "" {
			return nil, errors.New("is not of the form NAME=VALUE")
		} else if ok {
			pairs[name] = value
		}
	}
	return pairs, nil
}

// decodeNode decodes the value in the file.
func (s setting) decodeNode(value reflect.Value) error {
	switch isDuration := value.Type() == reflect.TypeFor[time.Duration](); {
	case isDuration && s.node.GetToken().Value == "0":
		return nil
	case s.node.Type() == ast.FloatType && value.CanInt(): // it would be truncated
		return errors.New("has a fraction")
	case value.Kind() == reflect.String && (s.node.Type() == ast.IntegerType || s.node.Type() == ast.FloatType):
		value.SetString(s.node.GetToken().Value) // 0123, not 83
		return nil
	}
	return yaml.NodeToValue(s.node, value.Addr().Interface())
}

// printConfig prints all settings as a file for --config, with their
// descriptions and without secrets.
func (c *call) printConfig(params []*param) error {
	group := ""
	for _, p := range settingsOf(params) {
		of, key, indent := "", keys.Replace(p.flag), ""
		if before, after, ok := strings.Cut(key, "."); ok {
			of, key, indent = before, after, "  "
		}
		if of != group && of != "" {
			_ = c.printf("%s:\n", of)
		}
		group = of
		text, err := yaml.Marshal(map[string]any{key: shown(p)})
		if err != nil {
			return err
		}
		lines := strings.ReplaceAll(strings.TrimSuffix(string(text), "\n"), "\n", "\n"+indent)
		if err := c.printf("%s# %s\n%s%s\n", indent, p.helpWithEnv(), indent, lines); err != nil {
			return err
		}
	}
	return nil
}

// hidden is printed instead of a secret, as net/url does.
const hidden = "xxxxx"

// shown returns the value of a setting for printing, without secrets.
func shown(p *param) any {
	switch value := p.target.Interface().(type) {
	case time.Duration:
		return value.String()
	case string:
		if p.has("secret") && value != "" {
			return hidden
		}
		return withoutPassword(value)
	default:
		return value
	}
}

// passwords matches the parameters with secrets of a URL, or of a connection
// string in libpq's KEY=VALUE form.
var passwords = regexp.MustCompile(`((?:^|[?&\s])(?:ssl)?password\s*=)[^&]*`)

// withoutPassword returns a URL with its passwords hidden. It hides all of a
// URL that it cannot parse, and of any other string with a password.
func withoutPassword(text string) string {
	if !strings.Contains(text, "://") {
		if passwords.MatchString(text) {
			return hidden
		}
		return text
	}
	of, err := url.Parse(text)
	if err != nil {
		return hidden // several hosts with ports, or no URL
	}
	of.RawQuery = passwords.ReplaceAllString(of.RawQuery, "${1}"+hidden)
	if _, ok := of.User.Password(); !ok && !passwords.MatchString(of.RawQuery) {
		return text
	}
	return of.Redacted()
}
