package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/goccy/go-yaml"
)

// savedContext is a server, and how to get a token for it.
type savedContext struct {
	Server string `yaml:"server"`
	Token  string `yaml:"token,omitempty"`
	Cloud  string `yaml:"cloud,omitempty"` // of clouds.yaml, instead of a token
	CACert string `yaml:"caCert,omitempty"`
}

// contexts are the servers that someone is logged in at.
type contexts struct {
	Current  string                  `yaml:"current,omitempty"`
	Contexts map[string]savedContext `yaml:"contexts,omitempty"`
}

// contextsFile returns the path of the file of contexts: CADASTRE_CONFIG, or a
// file in the user's folder for settings.
func contextsFile() (string, error) {
	if path := os.Getenv("CADASTRE_CONFIG"); path != "" {
		return path, nil
	}
	folder, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(folder, "cadastre", "contexts.yaml"), nil
}

// loadContexts returns the contexts of the user; none where there is no file, or
// no place for one.
func loadContexts() (contexts, error) {
	var saved contexts
	path, err := contextsFile()
	if err != nil { // such as a service without a home
		return saved, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return saved, nil
	}
	if err != nil {
		return saved, err
	}
	if err := yaml.UnmarshalWithOptions(text, &saved, yaml.Strict()); err != nil {
		return saved, fmt.Errorf("%s: %s", path, yaml.FormatError(err, false, false)) // without the lines, which hold tokens
	}
	return saved, nil
}

// save writes the contexts, for their owner alone. The file is replaced as a
// whole.
func (c contexts) save() error {
	path, err := contextsFile()
	if err != nil {
		return err
	}
	text, err := yaml.Marshal(c)
	if err != nil {
		return err
	}
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	made, err := os.CreateTemp(folder, ".contexts-*") // of mode 0600
	if err != nil {
		return err
	}
	_, err = made.Write(text)
	err = errors.Join(err, made.Close())
	if err == nil {
		err = os.Rename(made.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(made.Name()))
	}
	return nil
}

// named returns the context of a name, the current one for an empty name.
func (c contexts) named(name string) (savedContext, error) {
	if name == "" {
		return c.Contexts[c.Current], nil
	}
	of, ok := c.Contexts[name]
	if !ok {
		return of, usagef("--context: the context %q does not exist; `cadastre login %s` makes it", name, name)
	}
	return of, nil
}
