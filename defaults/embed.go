// Package defaults holds what a catalog starts with: the names of the standard
// traits and resource classes, the built-in resource types, and the product's
// own definition files, all embedded in the program. It hands out text and
// names and refuses to know what a definition means, whether it is valid, or
// where it is stored.
package defaults

import (
	"embed"
	"strings"
)

//go:embed definitions/*.json
var definitions embed.FS

//go:embed traits.txt
var traits string

//go:embed resource_classes.txt
var resourceClasses string

// Definitions is the text of every definition file of the product, in the order
// of the file names.
func Definitions() []string {
	const folder = "definitions"
	entries, err := definitions.ReadDir(folder)
	if err != nil {
		panic("defaults: the embedded definitions cannot be listed: " + err.Error())
	}
	texts := make([]string, len(entries))
	for i, entry := range entries {
		text, err := definitions.ReadFile(folder + "/" + entry.Name())
		if err != nil {
			panic("defaults: an embedded definition cannot be read: " + err.Error())
		}
		texts[i] = string(text)
	}
	return texts
}

// Traits is the name of every standard trait, sorted.
func Traits() []string { return strings.Fields(traits) }

// ResourceClasses is the name of every standard resource class, in the order of
// the reference's ids.
func ResourceClasses() []string { return strings.Fields(resourceClasses) }

// ResourceType is a resource type that is there from the start, protected.
type ResourceType struct {
	Name string
	// Parent is the one type that a parent of such a resource may have; "" leaves
	// it open.
	Parent string
	// ParentRequired says that such a resource never stands alone.
	ParentRequired bool
}

// ResourceTypes is every built-in resource type, sorted by name.
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
