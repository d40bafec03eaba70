package auth

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/goccy/go-yaml"

	"github.com/cadastre-dev/cadastre/access"
)

// ReadPolicy returns the policy of a YAML file. The file has one key, `rules`,
// which maps rules or fields of Query and Mutation to lists of roles. Errors
// name the file and every unknown entry.
func ReadPolicy(path string) (*access.Policy, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	var file struct {
		Rules map[string][]string `yaml:"rules"`
	}
	err = yaml.NewDecoder(bytes.NewReader(text), yaml.Strict()).Decode(&file)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read the policy %s: %w", path, err)
	}
	policy, err := access.NewPolicy(file.Rules)
	if err != nil {
		return nil, fmt.Errorf("the policy %s: %w", path, err)
	}
	return policy, nil
}
