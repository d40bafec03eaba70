package problem

import (
	"strconv"
	"strings"
)

// Join returns the path of a member: `$.properties.hw_cpu`, and with brackets
// where the name is no identifier: `$.properties['cpu_info:features']`.
func Join(path, key string) string {
	for i, r := range key {
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return path + "['" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(key) + "']"
		}
	}
	if key == "" {
		return path + "['']"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// Index returns the path of a list's item.
func Index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }
