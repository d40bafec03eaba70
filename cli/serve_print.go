package cli

import (
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"
)

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

// shown returns the value of a setting as it is printed.
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

// passwords are the parameters of URLs that are secrets.
var passwords = regexp.MustCompile(`((?:^|[?&])(?:ssl)?password=)[^&]*`)

// withoutPassword returns a string with the passwords of a URL replaced.
func withoutPassword(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	of, err := url.Parse(text)
	if err != nil {
		return hidden // it is refused anyway
	}
	of.RawQuery = passwords.ReplaceAllString(of.RawQuery, "${1}"+hidden)
	if _, ok := of.User.Password(); !ok && !passwords.MatchString(of.RawQuery) {
		return text // as it was written
	}
	return of.Redacted()
}
