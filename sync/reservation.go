package sync

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/client/optional"
	"github.com/cadastre-dev/cadastre/internal/lists"
)

// hostFields are the fields of Blazar's hosts that are not capabilities, even if a
// capability has such a name. The trust is a secret.
var hostFields = strings.Fields(`id hypervisor_hostname hypervisor_type hypervisor_version service_name vcpus cpu_info memory_mb local_gb
	status availability_zone reservable trust_id created_at updated_at`)

// addReservation returns the function that adds to a host the capabilities of
// Blazar's host with the same name. Their names are Blazar's properties. A name
// is private if the public properties lack it, because the field "private" in
// Blazar's answers is always false.
func addReservation(hosts, properties, public []row) func(host *Thing) {
	private := map[string]bool{}
	for _, one := range properties {
		private[one.text("property")] = true
	}
	for _, one := range public {
		if name := one.text("property"); private[name] {
			private[name] = false
		}
	}
	for _, field := range hostFields {
		delete(private, field)
	}
	named := lists.ByKey(hosts, func(one row) string { return one.text("hypervisor_hostname") })
	return func(host *Thing) {
		has := named[host.Name]
		has.put("reservable", host.Metadata)
		host.Private = map[string]bool{}
		for name, isPrivate := range private {
			if name != "" && has[name] != nil {
				has.put(name, host.Capabilities)
				host.Private[name] = isPrivate
			}
		}
	}
}

// register registers the capabilities that are private or public at the origin,
// before the things are written. A public capability becomes private if it is
// private at the origin. A private one stays private, since another region may
// need that.
func (p *Pass) register(ctx context.Context, things []Thing) error {
	private := map[string]bool{}
	for _, thing := range things {
		maps.Copy(private, thing.Private)
	}
	if len(private) == 0 || p.DryRun {
		return nil
	}
	listed, err := client.ListCapabilities(ctx, p.Server, p.Kind.ResourceType, true, false)
	if err != nil {
		return err
	}
	for _, one := range listed.ResourceType.Capabilities {
		if one.Private || !private[one.Name] {
			delete(private, one.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(private)) {
		if err := p.registerAs(ctx, name, private[name]); err != nil {
			return fmt.Errorf("register the capability %q: %w", name, err)
		}
	}
	return nil
}

// registerAs registers a capability, or makes a registered one private.
func (p *Pass) registerAs(ctx context.Context, name string, private bool) error {
	_, err := client.CreateCapability(ctx, p.Server,
		&client.CreateCapabilityInput{ResourceType: p.Kind.ResourceType, Name: name, Private: optional.Value(private)})
	if client.Code(err) != client.AlreadyExists {
		return err
	}
	if !private {
		return nil
	}
	_, err = client.SetCapabilityVisibility(ctx, p.Server,
		&client.SetCapabilityVisibilityInput{ResourceType: p.Kind.ResourceType, Name: name, Private: true})
	return err
}
