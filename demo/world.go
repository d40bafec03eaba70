// Package demo is a small plausible cloud for trying the product: racks and
// hosts, shared file systems, images, volumes and instances of three projects,
// with metadata, capabilities, providers and claims. It is the same on every
// call and every machine. A few values violate their definitions on purpose.
package demo

import (
	"cmp"
	"context"
	"crypto/sha1"
	"fmt"
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/defaults"
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

// Build returns the demo cloud.
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

// builder collects the demo cloud.
type builder struct {
	world store.Content
}

// add adds a resource with a uuid derived from its type and name, and returns
// the uuid. A resource without a project is public and belongs to the demo
// project.
func (b *builder) add(r store.ResourceRecord) string {
	r.UUID = uuidOf(r.Type, r.Name)
	if r.ProjectID == "" {
		r.ProjectID, r.Visibility = projectDemo, access.Public
	}
	r.Visibility = cmp.Or(r.Visibility, access.Private)
	b.world.Resources = append(b.world.Resources, r)
	return r.UUID
}

// collectCustomNames adds the custom traits and resource classes of the
// providers to the demo cloud.
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

// uuidOf returns a uuid derived from the kind and the name of an object, in the
// form of version 5 of RFC 9562.
func uuidOf(kind, name string) string {
	sum := sha1.Sum([]byte("cadastre demo\x00" + kind + "\x00" + name))
	sum[6] = sum[6]&0x0f | 0x50
	sum[8] = sum[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// metadata returns the items written as "key=value". A leading "!" marks an
// item that only administrators and services may change.
func metadata(items ...string) []resource.MetadataItem {
	list := make([]resource.MetadataItem, len(items))
	for i, item := range items {
		text, serviceOwned := strings.CutPrefix(item, "!")
		key, value, _ := strings.Cut(text, "=")
		list[i] = resource.MetadataItem{Key: key, Value: value, UserModifiable: !serviceOwned}
	}
	return list
}

// Fill writes the demo cloud and the built-in definitions into an empty store,
// in one transaction. It does not change a store with content.
func Fill(ctx context.Context, s *store.Store) error {
	world := Build()
	world.Definitions = defaults.Definitions()
	return s.FillEmpty(access.WithViewer(ctx, Viewers()[AdminToken]), world)
}

// The tokens of a demo. They are public.
const (
	AdminToken  = "demo-admin"
	MemberToken = "demo-member"
	ReaderToken = "demo-reader"
)

// Viewers returns the viewers by token: an administrator, and a member and a
// reader of the project demo.
func Viewers() map[string]access.Viewer {
	return map[string]access.Viewer{
		AdminToken: {UserID: "demo-admin", ProjectID: "demo",
			Roles: []string{access.RoleAdmin, access.RoleMember, access.RoleReader}},
		MemberToken: {UserID: "demo-member", ProjectID: "demo", Roles: []string{access.RoleMember, access.RoleReader}},
		ReaderToken: {UserID: "demo-reader", ProjectID: "demo", Roles: []string{access.RoleReader}},
	}
}

// Greeting returns a message with the addresses of a demo, its tokens and a
// first query.
func Greeting(address string) string {
	return fmt.Sprintf(`
Cadastre serves a demo cloud.

  IDE      %[1]s/
  API      %[1]s/graphql
  tokens   %[2]s  %[3]s  %[4]s

Ask where a port on either of two physical networks still fits:

  curl -sG %[1]s/graphql -H 'Authorization: Bearer %[2]s' --data-urlencode 'query=
    { allocationCandidates(resources: [{resourceClass: "SRIOV_NET_VF", amount: 1}],
        requiredAny: ["CUSTOM_PHYSNET_PUBLIC", "CUSTOM_PHYSNET_STORAGE"], first: 3) {
      nodes { allocations { provider { name } resources { resourceClass amount } } } } }'

`, address, AdminToken, MemberToken, ReaderToken)
}
