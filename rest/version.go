package rest

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

// version returns a minor version with its major version.
func version(minor int) string { return "1." + strconv.Itoa(minor) }

// versionOf returns the minor version that the header OpenStack-API-Version
// names for a service. An absent version is 1.0. Of several, the last counts.
func versionOf(header http.Header, service string, latest int) (int, *Fault) {
	text := ""
	for part := range strings.SplitSeq(strings.Join(header.Values("OpenStack-API-Version"), ","), ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), " ")
		if ok && strings.EqualFold(name, service) {
			text = strings.TrimSpace(value)
		}
	}
	switch text {
	case "":
		return 0, nil
	case "latest":
		return latest, nil
	}
	major, minor, ok := strings.Cut(text, ".")
	of, errMajor := strconv.Atoi(strings.TrimSpace(major))
	number, errMinor := strconv.Atoi(strings.TrimSpace(minor))
	switch {
	case !ok || errMajor != nil || errMinor != nil:
		return 0, Bad("Invalid microversion: invalid version string: %s", text)
	case of != 1 || number < 0 || number > latest:
		fault := Refuse(http.StatusNotAcceptable, "", "Invalid microversion: Unacceptable version header: %s", text)
		fault.unknownHeader = true
		return 0, fault
	}
	return number, nil
}

// Parameter is a parameter of a URL.
type Parameter struct{ Key, Value string }

// parameters returns the parameters of a query string in their order.
func parameters(query string) ([]Parameter, *Fault) {
	var list []Parameter
	for part := range strings.SplitSeq(query, "&") {
		if part == "" {
			continue
		}
		key, value, _ := strings.Cut(part, "=")
		key, errKey := url.QueryUnescape(key)
		value, errValue := url.QueryUnescape(value)
		if errKey != nil || errValue != nil || !isText(key) || !isText(value) {
			return nil, Bad("Invalid query string parameters: the query string is not encoded UTF-8 without NUL")
		}
		list = append(list, Parameter{key, value})
	}
	return list, nil
}

// isText reports whether a string is UTF-8 without NUL, as databases require.
func isText(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// Last returns the last value of a parameter.
func (r *Request) Last(key string) (value string, ok bool) {
	for _, one := range r.Query {
		if one.Key == key {
			value, ok = one.Value, true
		}
	}
	return value, ok
}

// All returns all values of a parameter.
func (r *Request) All(key string) (values []string) {
	for _, one := range r.Query {
		if one.Key == key {
			values = append(values, one.Value)
		}
	}
	return values
}

// CheckQuery checks the parameters of the URL against a schema. Only the last
// value of each parameter counts.
func (r *Request) CheckQuery(schema *Schema) error {
	members := make(map[string]any, len(r.Query))
	for _, one := range r.Query {
		members[one.Key] = one.Value
	}
	if wrong := schema.Check(members); wrong != "" {
		return Bad("Invalid query string parameters: %s", wrong)
	}
	return nil
}
