// Package demo is a small believable cloud to try the product on: racks and hosts, shared file systems,
// images, volumes and instances of three projects, with metadata, capabilities, providers and claims. It
// is made of plain nouns and is the same on every call and every machine. It refuses to know the clock,
// randomness and what a definition says about a value: a few values break their definition on purpose.
package demo

import (
	"crypto/sha1"
	"fmt"
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/catalog"
	"github.com/cadastre-dev/cadastre/placement"
)

// World is the whole demo cloud. Things refer to each other by name and uuid; there are no row ids and no
// times. Every list is in the order in which it can be written: what is referred to comes first.
type World struct {
	// ResourceTypes are the types beyond the built-in ones.
	ResourceTypes []string
	// Capabilities is the registry: what can be asked for on which type, and what stays private.
	Capabilities []Capability
	Resources    []Resource
	// Traits and ResourceClasses are the custom ones that the providers use, sorted.
	Traits          []string
	ResourceClasses []string
	// Providers carry their inventories with Used 0: they are as they were before the Claims.
	Providers []placement.Provider
	// Claims are one for each consumer, and all fit.
	Claims []placement.Claim
}

// Capability is an entry of the capability registry, with its resource type by name.
type Capability struct {
	ResourceType string
	Name         string
	Private      bool
}

// Resource is a resource with everything that hangs off it.
type Resource struct {
	UUID        string
	Type        string // name of the resource type
	Parent      string // uuid of the parent, "" for none
	Name        string
	Description string
	ProjectID   string
	Visibility  catalog.Visibility
	// Metadata has Key, Value and UserModifiable of each item; keys are unique.
	Metadata     []catalog.MetadataItem
	Capabilities []catalog.KeyValue
	Tags         []string
}

// The projects of the demo cloud.
const (
	projectDemo     = "demo"
	projectResearch = "research"
	projectWebShop  = "web-shop"
)

// Build makes the world; every call gives an equal one.
func Build() World {
	var b builder
	b.addHosts()
	b.addAggregates()
	b.addProviders()
	b.addShareNetworks()
	b.addShares()
	b.addImages()
	b.addFlavors()
	b.addVolumes()
	b.addInstances()
	b.collectCustomNames()
	return b.world
}

// builder gathers the world.
type builder struct {
	world World
}

// add adds a resource under the uuid that its type and name give it, and returns that uuid.
func (b *builder) add(r Resource) string {
	r.UUID = uuidOf(r.Type, r.Name)
	if r.Visibility == "" {
		r.Visibility = catalog.Private
	}
	b.world.Resources = append(b.world.Resources, r)
	return r.UUID
}

// collectCustomNames lists the traits and classes that must be created before the providers.
func (b *builder) collectCustomNames() {
	var traits, classes []string
	for _, provider := range b.world.Providers {
		traits = append(traits, provider.Traits...)
		for _, inventory := range provider.Inventories {
			classes = append(classes, inventory.ResourceClass)
		}
	}
	custom := func(names []string) []string {
		names = slices.DeleteFunc(names, func(name string) bool { return !placement.IsCustomName(name) })
		slices.Sort(names)
		return slices.Compact(names)
	}
	b.world.Traits, b.world.ResourceClasses = custom(traits), custom(classes)
}

// uuidOf derives a uuid from what a thing is and what it is called, as version 5 of RFC 9562 does.
func uuidOf(kind, name string) string {
	sum := sha1.Sum([]byte("cadastre demo\x00" + kind + "\x00" + name))
	sum[6] = sum[6]&0x0f | 0x50
	sum[8] = sum[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// metadata reads items written as "key=value"; a leading "!" marks one that only admins and services change.
func metadata(items ...string) []catalog.MetadataItem {
	list := make([]catalog.MetadataItem, len(items))
	for i, item := range items {
		text, serviceOwned := strings.CutPrefix(item, "!")
		key, value, _ := strings.Cut(text, "=")
		list[i] = catalog.MetadataItem{Key: key, Value: value, UserModifiable: !serviceOwned}
	}
	return list
}
