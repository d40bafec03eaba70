// Package demo is a small believable cloud to try the product on: racks and
// hosts, shared file systems, images, volumes and instances of three projects,
// with metadata, capabilities, providers and claims. It is made of plain nouns
// and is the same on every call and every machine. It refuses to know the
// clock, randomness and what a definition says about a value: a few values
// break their definition on purpose.
package demo

import (
	"crypto/sha1"
	"fmt"
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
)

// The projects of the demo cloud.
const (
	projectDemo     = "demo"
	projectResearch = "research"
	projectWebShop  = "web-shop"
)

// Build makes the world; every call gives an equal one.
func Build() store.Content {
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
	world store.Content
}

// add adds a resource under the uuid that its type and name give it, and
// returns that uuid.
func (b *builder) add(r store.ResourceRecord) string {
	r.UUID = uuidOf(r.Type, r.Name)
	if r.Visibility == "" {
		r.Visibility = access.Private
	}
	b.world.Resources = append(b.world.Resources, r)
	return r.UUID
}

// collectCustomNames lists the traits and classes that must be created before
// the providers.
func (b *builder) collectCustomNames() {
	var traits, classes []string
	for _, provider := range b.world.Providers {
		traits = append(traits, provider.Traits...)
		for _, inventory := range provider.Inventories {
			classes = append(classes, inventory.ResourceClass)
		}
	}
	custom := func(names []string) []string {
		names = slices.Compact(slices.Sorted(slices.Values(names)))
		return slices.DeleteFunc(names, func(name string) bool { return !placement.IsCustomName(name) })
	}
	b.world.Traits, b.world.ResourceClasses = custom(traits), custom(classes)
}

// uuidOf derives a uuid from what a thing is and what it is called, as version
// 5 of RFC 9562 does.
func uuidOf(kind, name string) string {
	sum := sha1.Sum([]byte("cadastre demo\x00" + kind + "\x00" + name))
	sum[6] = sum[6]&0x0f | 0x50
	sum[8] = sum[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// metadata reads items written as "key=value"; a leading "!" marks one that
// only admins and services change.
func metadata(items ...string) []resource.MetadataItem {
	list := make([]resource.MetadataItem, len(items))
	for i, item := range items {
		text, serviceOwned := strings.CutPrefix(item, "!")
		key, value, _ := strings.Cut(text, "=")
		list[i] = resource.MetadataItem{Key: key, Value: value, UserModifiable: !serviceOwned}
	}
	return list
}
