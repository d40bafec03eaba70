// Package defaults embeds the built-in content of a server: the names of the
// standard traits and resource classes, the built-in resource types, and the
// built-in definition files. It does not parse the files.
package defaults

import (
	"embed"
	"strings"
)

//go:embed definitions/*.json
var definitionFiles embed.FS

//go:embed traits.txt
var traitNames string

//go:embed resource_classes.txt
var resourceClassNames string

// Definitions returns the content of every definition file of the product, in
// the order of the file names.
func Definitions() []string {
	const folder = "definitions"
	entries, err := definitionFiles.ReadDir(folder)
	if err != nil {
		panic("defaults: the embedded definitions cannot be listed: " + err.Error())
	}
	texts := make([]string, len(entries))
	for i, entry := range entries {
		text, err := definitionFiles.ReadFile(folder + "/" + entry.Name())
		if err != nil {
			panic("defaults: an embedded definition cannot be read: " + err.Error())
		}
		texts[i] = string(text)
	}
	return texts
}

// Traits returns the names of the standard traits, sorted.
func Traits() []string { return strings.Fields(traitNames) }

// ResourceClasses returns the names of the standard resource classes, in the
// order of their ids in OpenStack's Placement.
func ResourceClasses() []string { return strings.Fields(resourceClassNames) }

// ResourceType is a built-in resource type.
type ResourceType struct {
	Name string
	// Parent is the one type that a parent of such a resource may have; "" leaves
	// it open.
	Parent string
	// ParentRequired is whether such a resource must have a parent.
	ParentRequired bool
}

// ResourceTypes returns the built-in resource types, sorted by name.
func ResourceTypes() []ResourceType {
	return []ResourceType{
		{Name: "OS::Cinder::Volume"},
		{Name: "OS::Glance::Image"},
		{Name: "OS::Manila::SecurityService"},
		{Name: "OS::Manila::Share", Parent: "OS::Manila::ShareGroup"},
		{Name: "OS::Manila::ShareAccessRule", Parent: "OS::Manila::Share", ParentRequired: true},
		{Name: "OS::Manila::ShareExportLocation", Parent: "OS::Manila::Share", ParentRequired: true},
		{Name: "OS::Manila::ShareGroup"},
		{Name: "OS::Manila::ShareGroupSnapshot", Parent: "OS::Manila::ShareGroup", ParentRequired: true},
		{Name: "OS::Manila::ShareNetwork"},
		{Name: "OS::Manila::ShareNetworkSubnet", Parent: "OS::Manila::ShareNetwork", ParentRequired: true},
		{Name: "OS::Manila::ShareReplica", Parent: "OS::Manila::Share", ParentRequired: true},
		{Name: "OS::Manila::ShareSnapshot", Parent: "OS::Manila::Share", ParentRequired: true},
		{Name: "OS::Nova::Aggregate"},
		{Name: "OS::Nova::Flavor"},
		{Name: "OS::Nova::Instance"},
		{Name: "physical:host"},
	}
}
