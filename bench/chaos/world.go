package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/cadastre-dev/cadastre/bench/local"
)

// size is how large a world is.
type size struct {
	Resources int `json:"resources"`
	Items     int `json:"itemsOfEach"`
	Providers int `json:"providers"`
}

// world is the data of the servers of a database.
type world struct{ size size }

// resourceType is the type of all resources.
const resourceType = "OS::Manila::Share"

// What providers have. Those that are scarce are claimed by many, so that claims
// which ought to be refused show.
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

// ofAttacker returns the resource that belongs to the attacker's project.
func (w *world) ofAttacker() string { return w.uuid("resource of the attacker", 0) }

// provider returns one with room for every claim.
func (w *world) provider(i int) string {
	return w.uuid("provider", scarce+1+i%(w.size.Providers-scarce-1))
}

func (w *world) scarce(i int) string { return w.uuid("provider", i%scarce) }

// flooded returns the provider that an attacker claims.
func (w *world) flooded() string { return w.uuid("provider", scarce) }

// contains returns so many tests, each of another key, of which none is served by
// an index.
func (w *world) contains(count, i int) string {
	var tests []string
	for c := range count {
		tests = append(tests, fmt.Sprintf(`{metadata: {key: "key-%02d", contains: "%dx%d"}}`, c%w.size.Items, i, c))
	}
	return strings.Join(tests, " ")
}

// containsAsVariable returns such tests as the value of a variable.
func (w *world) containsAsVariable(count int) []object {
	var tests []object
	for c := range count {
		tests = append(tests, object{"metadata": object{"key": fmt.Sprintf("key-%02d", c%w.size.Items), "contains": fmt.Sprintf("x%d", c)}})
	}
	return tests
}

func (w *world) keys(count int) string {
	var keys []string
	for i := range min(count, w.size.Items) {
		keys = append(keys, fmt.Sprintf(`"key-%02d"`, i))
	}
	return strings.Join(keys, " ")
}

// values returns metadata for validation.
func (*world) values(count int) []object {
	var values []object
	for i := range count {
		values = append(values, object{"key": fmt.Sprintf("hw_misspelt_%d", i), "value": strings.Repeat("v", 20)})
	}
	return values
}

// lookUp returns a cheap request: a resource by its uuid, with its metadata.
func (w *world) lookUp(i int) local.Request {
	const document = `query($uuid: UUID!) { resource(uuid: $uuid) { name metadata { key value } } }`
	return local.Request{Query: document, Variables: object{"uuid": w.resource(i)}}
}

// claimRequest claims an amount for a new consumer.
func claimRequest(consumer, provider string, amount int) local.Request {
	const document = `mutation($input: SetAllocationsInput!) { setAllocations(input: $input) { consumers { generation } } }`
	return local.Request{Query: document, Variables: object{"input": object{"consumers": []object{{
		"uuid": consumer, "projectId": "calm", "userId": "calm", "type": "INSTANCE",
		"allocations": []object{{"provider": provider, "resources": []object{{"resourceClass": "VCPU", "amount": amount}}}},
	}}}}}
}

func releaseRequest(consumer string) local.Request {
	const document = `mutation($input: DeleteAllocationsInput!) { deleteAllocations(input: $input) { consumer { uuid } } }`
	return local.Request{Query: document, Variables: object{"input": object{"consumer": consumer}}}
}

// How much one request of the filling holds, and how many are sent at once.
const (
	filledAtOnce = 200
	fillers      = 4
)

// fill writes the world into an empty server.
func (w *world) fill(ctx context.Context, of *local.Client) error {
	var resources, providers []object
	for i := range w.size.Resources + 1 {
		one := object{"type": resourceType, "name": fmt.Sprintf("share-%06d", i), "uuid": w.uuid("resource", i), "visibility": "PUBLIC", "metadata": w.items(i)}
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
		providers = append(providers, object{"uuid": w.uuid("provider", i), "name": fmt.Sprintf("host-%06d", i), "inventories": []object{{"resourceClass": "VCPU", "total": capacity}}})
	}
	for field, inputs := range map[string][]object{"createResources(input: $input)": resources, "createResourceProviders(input: $input)": providers} {
		group, sending := errgroup.WithContext(ctx)
		group.SetLimit(fillers)
		inputType := strings.ToUpper(field[:1]) + strings.TrimSuffix(field[1:], "(input: $input)") + "Input"
		for some := range slices.Chunk(inputs, filledAtOnce) {
			group.Go(func() error {
				document := "mutation($input: " + inputType + "!) { " + field + " { __typename } }"
				return of.Ask(sending, local.Request{Query: document, Variables: object{"input": object{"items": some}}}, nil)
			})
		}
		if err := group.Wait(); err != nil {
			return fmt.Errorf("%s: %w", field, err)
		}
	}
	return nil
}

// items returns the metadata of a resource.
func (w *world) items(i int) (items []object) {
	for k := range w.size.Items {
		items = append(items, object{"key": fmt.Sprintf("key-%02d", k), "value": fmt.Sprintf("value %d of %d, as a service wrote it", k, i%97)})
	}
	return items
}
