package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/google/uuid"

	"github.com/cadastre-dev/cadastre/bench/local"
)

// size has the numbers of objects in a world. Items are for each resource.
type size struct{ Resources, Items, Providers int }

// world is the data of the servers of a database, and the questions about it.
type world struct {
	size      size
	asked     asked
	templates sync.Map // *template.Template by source
}

// newWorld returns the world of a size, with the questions of attacks.yaml.
func newWorld(of size) (*world, error) {
	all, err := readAttacks()
	return &world{size: of, asked: all}, err
}

// The number of scarce providers, and capacities. Many clients claim the scarce
// providers, so that some claims must be refused.
const (
	scarce         = 8
	scarceCapacity = 6
	wideCapacity   = 1_000_000
)

// uuid returns the uuid of a thing by its kind and number.
func (*world) uuid(kind string, number int) string {
	return uuid.NewSHA1(uuid.NameSpaceOID, fmt.Appendf(nil, "chaos/%s/%d", kind, number)).String()
}

func (w *world) resource(i int) string { return w.uuid("resource", i%w.size.Resources) }

// ofAttacker returns the uuid of the resource of the attacker's project.
func (w *world) ofAttacker() string { return w.uuid("resource of the attacker", 0) }

// provider returns the uuid of a provider with room for every claim.
func (w *world) provider(i int) string {
	return w.uuid("provider", scarce+1+i%(w.size.Providers-scarce-1))
}

func (w *world) scarce(i int) string { return w.uuid("provider", i%scarce) }

// flooded returns the uuid of the provider on which an attacker claims.
func (w *world) flooded() string { return w.uuid("provider", scarce) }

// lookUp returns the request for a resource with its metadata, which is cheap.
func (w *world) lookUp(i int) local.Call { return w.ask(w.asked.Questions["lookUp"], values{N: i}) }

// claim returns a claim of an amount for a new consumer.
func (w *world) claim(consumer, provider string, amount int) local.Call {
	return w.ask(w.asked.Questions["claim"], values{Consumer: consumer, Provider: provider, Amount: amount})
}

func (w *world) release(consumer string) local.Call {
	return w.ask(w.asked.Questions["release"], values{Consumer: consumer})
}

// The number of objects that one request creates, and the number of concurrent
// requests.
const (
	filledAtOnce = 200
	fillers      = 4
)

// fill writes the world into an empty server.
func (w *world) fill(ctx context.Context, of *local.Client) error {
	var resources, providers []object
	for i := range w.size.Resources + 1 {
		var items []object
		for k := range w.size.Items {
			items = append(items, object{"key": fmt.Sprintf("key-%02d", k),
				"value": fmt.Sprintf("value %d of %d, as a service wrote it", k, i%97)})
		}
		one := object{
			"type": "OS::Manila::Share", "name": fmt.Sprintf("share-%06d", i), "uuid": w.uuid("resource", i),
			"visibility": "PUBLIC", "metadata": items,
		}
		if i == w.size.Resources {
			one["uuid"], one["projectId"] = w.ofAttacker(), "greedy"
		}
		resources = append(resources, one)
	}
	for i := range w.size.Providers {
		capacity := wideCapacity
		if i < scarce {
			capacity = scarceCapacity
		}
		providers = append(providers, object{
			"uuid": w.uuid("provider", i), "name": fmt.Sprintf("host-%06d", i),
			"inventories": []object{{"resourceClass": "VCPU", "total": capacity}},
		})
	}
	if err := of.InChunks(ctx, "createResources", "items", resources, filledAtOnce); err != nil {
		return err
	}
	return of.InChunks(ctx, "createResourceProviders", "items", providers, filledAtOnce)
}
