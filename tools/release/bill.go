package main

import (
	"debug/buildinfo"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// bill is a software bill of materials in the form CycloneDX 1.6.
type bill struct {
	BOMFormat   string      `json:"bomFormat"`
	SpecVersion string      `json:"specVersion"`
	Version     int         `json:"version"`
	Metadata    metadata    `json:"metadata"`
	Components  []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

// component is a program or a library, identified by its package URL.
type component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version"`
	URL     string `json:"purl"`
}

func newComponent(kind, ecosystem, name, version string) component {
	url := "pkg:" + ecosystem + "/" + strings.ReplaceAll(name, "@", "%40") + "@" + version
	return component{Type: kind, Ref: url, Name: name, Version: version, URL: url}
}

// writeBill writes the bill of materials of a program: its Go modules and
// standard library, which the program itself states, and the packages of its
// console.
func writeBill(path, program, version, source string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	components := []component{newComponent("library", "golang", "stdlib", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		components = append(components, newComponent("library", "golang", module.Path, module.Version))
	}
	packages, err := packagesOf(filepath.Join(source, "console", "package-lock.json"))
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(bill{
		BOMFormat: "CycloneDX", SpecVersion: "1.6", Version: 1,
		Metadata:   metadata{newComponent("application", "golang", info.Main.Path, "v"+version)},
		Components: append(components, packages...),
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// packagesOf returns the packages in npm's package-lock.json, sorted. It leaves
// out packages for development, and optional and linked packages.
func packagesOf(lock string) (packages []component, err error) {
	text, err := os.ReadFile(lock)
	if err != nil {
		return nil, err
	}
	var locked struct {
		Packages map[string]struct {
			Version             string
			Dev, Optional, Link bool
		}
	}
	if err := json.Unmarshal(text, &locked); err != nil {
		return nil, err
	}
	for path, one := range locked.Packages {
		parts := strings.Split(path, "node_modules/")
		if name := parts[len(parts)-1]; len(parts) > 1 && !one.Dev && !one.Optional && !one.Link {
			packages = append(packages, newComponent("library", "npm", name, one.Version))
		}
	}
	slices.SortFunc(packages, func(a, b component) int { return strings.Compare(a.URL, b.URL) })
	return slices.Compact(packages), nil
}
