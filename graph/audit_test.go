package graph_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// audited is a mutation for TestEveryMutationIsAudited: an accepted input with
// the changes that it makes, in the order of the events, and a refused input.
// In both, $id is the last id in an answer.
type audited struct {
	field             string
	accepted, refused string // the fields of the input
	payload           string // the selection, __typename if empty
	changed           string // kind and key of each event
	again             string // changed for a second accepted run: same as changed if empty, "-" for nothing
}

const (
	auditedHost    = "00000000-0000-4000-8000-00000000000a"
	auditedOther   = "00000000-0000-4000-8000-00000000000b"
	auditedOne     = "00000000-0000-4000-8000-00000000000c"
	auditedTwo     = "00000000-0000-4000-8000-00000000000d"
	auditedThree   = "00000000-0000-4000-8000-0000000000d3"
	auditedFour    = "00000000-0000-4000-8000-0000000000d4"
	claimer        = "00000000-0000-4000-8000-00000000000e"
	placedConsumer = "00000000-0000-4000-8000-000000000011"
	otherClaimer   = "00000000-0000-4000-8000-00000000000f"
	auditedSynced  = "00000000-0000-4000-8000-000000000012"
	auditedScope   = `origin: "o", region: "r", kind: "k", pass: "` + noUUID + `"`
	noUUID         = "99999999-0000-4000-8000-000000000009"
	claimOf        = `projectId: "demo", userId: "secret-user", allocations: [{provider: "` + auditedOne +
		`", resources: [{resourceClass: "VCPU", amount: 1}]}]`
)

// auditedMutations has every mutation of the schema. Each uses things that
// earlier ones made.
var auditedMutations = []audited{
	{field: "createNamespace",
		accepted: `name: "N", tags: [{name: "t"}], objects: [{name: "o"}], properties: [{name: "p", title: "P", type: STRING}]`, refused: `name: ""`, changed: "NAMESPACE N"},
	{field: "updateNamespace", accepted: `name: "N", description: "x"`,
		refused: `name: "N", description: "y", revision: 99`, changed: "NAMESPACE N"},
	{field: "setDefaults",
		accepted: `namespace: "N", rules: [{resourceType: "physical:host", projectId: "none", key: "k", value: "v"}]`,
		refused:  `namespace: "N", rules: [], revision: 99`, changed: "NAMESPACE N"},
	{field: "applyDefaults", accepted: `namespace: "N"`, refused: `namespace: "N", first: 0`,
		payload: "added", changed: "NAMESPACE N"},
	{field: "createProperty", accepted: `namespace: "N", name: "q", title: "Q", type: STRING`,
		refused: `namespace: "N", name: "p", title: "P", type: STRING`, changed: "PROPERTY_DEFINITION N/q"},
	{field: "updateProperty", accepted: `namespace: "N", name: "q", title: "R"`,
		refused: `namespace: "N", name: "q", newName: "p"`, changed: "PROPERTY_DEFINITION N/q"},
	{field: "deleteProperty", accepted: `namespace: "N", name: "q"`, refused: `namespace: "N", name: "none"`,
		changed: "PROPERTY_DEFINITION N/q"},
	{field: "createObject", accepted: `namespace: "N", name: "o2"`,
		refused: `namespace: "N", name: "o"`, changed: "OBJECT_DEFINITION N/o2"},
	{field: "updateObject", accepted: `namespace: "N", name: "o2", description: "x"`,
		refused: `namespace: "N", name: "o2", newName: "o"`, changed: "OBJECT_DEFINITION N/o2"},
	{field: "deleteObject", accepted: `namespace: "N", name: "o2"`,
		refused: `namespace: "N", name: "none"`, changed: "OBJECT_DEFINITION N/o2"},
	{field: "setTags", accepted: `namespace: "N", tags: [{name: "a"}, {name: "b", parent: "a"}]`,
		refused: `namespace: "N", tags: [{name: "c"}, {name: "C"}]`, changed: "NAMESPACE N"},
	{field: "updateTag", accepted: `namespace: "N", name: "b", newName: "c"`,
		refused: `namespace: "N", name: "c", newName: "a"`, changed: "TAG N/b"},
	{field: "deleteTag", accepted: `namespace: "N", name: "c"`,
		refused: `namespace: "N", name: "none"`, changed: "TAG N/c"},
	{field: "associateResourceType", accepted: `namespace: "N", resourceType: "OS::Nova::Flavor", prefix: "a:"`,
		refused: `namespace: "N", resourceType: ""`, payload: "resourceTypeAssociation { id }",
		changed: "RESOURCE_TYPE_ASSOCIATION N/OS::Nova::Flavor"},
	{field: "updateResourceTypeAssociation", accepted: `id: "$id", newPrefix: "b:"`, refused: `id: "none"`,
		changed: "RESOURCE_TYPE_ASSOCIATION N/OS::Nova::Flavor"},
	{field: "disassociateResourceType", accepted: `id: "$id"`, refused: `id: "none"`,
		changed: "RESOURCE_TYPE_ASSOCIATION N/OS::Nova::Flavor"},
	{field: "shareNamespace", accepted: `namespace: "N", projectId: "demo"`,
		refused: `namespace: "N", projectId: ""`, changed: "NAMESPACE N"},
	{field: "unshareNamespace", accepted: `namespace: "N", projectId: "demo"`,
		refused: `namespace: "N", projectId: "none"`, changed: "NAMESPACE N"},
	{field: "deleteNamespaceContents", accepted: `namespace: "N", kinds: [TAGS, PROPERTIES]`,
		refused: `namespace: "none", kinds: [TAGS]`, changed: "NAMESPACE N"},
	{field: "deleteNamespace", accepted: `name: "N"`, refused: `name: "none"`, changed: "NAMESPACE N"},
	{field: "importNamespaces", accepted: `documents: ["{\"namespace\": \"A\"}", "bad", "{\"namespace\": \"B\"}",
			"{\"namespace\": \"A\", \"description\": \"again\"}"], mode: OVERWRITE`,
		refused: `documents: ["{\"namespace\": 1}"]`, changed: "NAMESPACE A, NAMESPACE B"},
	{field: "unloadNamespaces", accepted: `names: ["A", "B"]`, refused: `all: true, names: ["A"]`,
		changed: "NAMESPACE A, NAMESPACE B", again: "-"},
	{field: "createResourceType", accepted: `name: "T"`, refused: `name: "physical:host"`, changed: "RESOURCE_TYPE T"},
	{field: "updateResourceType", accepted: `name: "T", strict: true`,
		refused: `name: "T", newName: "physical:host"`, changed: "RESOURCE_TYPE T"},
	{field: "deleteResourceType", accepted: `name: "T"`, refused: `name: "physical:host"`, changed: "RESOURCE_TYPE T"},

	{field: "createResource", accepted: `type: "physical:host", name: "host", uuid: "` + auditedHost + `"`,
		refused: `type: "physical:host", name: "x", parent: "` + noUUID + `"`, changed: "RESOURCE " + auditedHost},
	{field: "createResource", accepted: `type: "physical:host", name: "other", uuid: "` + auditedOther + `"`,
		refused: `type: "physical:host", name: "x", uuid: "` + auditedHost + `"`, changed: "RESOURCE " + auditedOther},
	{field: "createResources", accepted: `items: [{type: "physical:host", name: "three", uuid: "` + auditedThree +
		`", tags: ["t"]}, {type: "physical:host", name: "four", uuid: "` + auditedFour +
		`", parent: "` + auditedThree + `"}]`,
		refused: `items: [{type: "physical:host", name: "x"}, {type: "none", name: "x"}]`,
		changed: "RESOURCE " + auditedThree + ", RESOURCE " + auditedFour},
	{field: "updateResource", accepted: `uuid: "` + auditedHost + `", newName: "renamed"`,
		refused: `uuid: "` + auditedHost + `", newName: "x", revision: 99`, changed: "RESOURCE " + auditedHost},
	{field: "setResourceTags", accepted: `resource: "` + auditedHost + `", tags: ["t"]`,
		refused: `resource: "` + auditedHost + `", tags: ["a", "A"]`, changed: "RESOURCE " + auditedHost},
	{field: "setMetadata", accepted: `resource: "` + auditedHost + `", items: [{key: "a", value: "1"}]`,
		refused: `resource: "` + auditedHost + `", items: [{key: "", value: "1"}]`, changed: "RESOURCE " + auditedHost},
	{field: "setMetadataOnResources", accepted: `items: [{resource: "` + auditedHost +
		`", items: [{key: "b", value: "1"}]}, {resource: "` + auditedOther + `", items: [{key: "b", value: "1"}]}]`,
		refused: `items: [{resource: "` + auditedHost + `", items: [{key: "c", value: "1"}]}, {resource: "` + noUUID +
			`", items: [{key: "c", value: "1"}]}]`,
		changed: "RESOURCE " + auditedHost + ", RESOURCE " + auditedOther},
	{field: "replaceMetadata", accepted: `resource: "` + auditedHost + `", items: [{key: "d", value: "1"}]`,
		refused: `resource: "` + auditedHost + `", items: [{key: "", value: "1"}]`, changed: "RESOURCE " + auditedHost},
	{field: "deleteMetadata", accepted: `resource: "` + auditedHost + `", keys: ["d"]`,
		refused: `resource: "` + auditedHost + `", keys: ["d", "none"]`, changed: "RESOURCE " + auditedHost},

	{field: "syncResources", accepted: auditedScope + `, resourceType: "physical:host", resources: [{foreignId: "` +
		auditedSynced + `", name: "x", projectId: "demo", visibility: PUBLIC}]`,
		refused: auditedScope + `, resourceType: "", resources: []`,
		changed: "RESOURCE " + auditedSynced + ", SYNC o/r/k", again: "-"},
	{field: "endSync", accepted: auditedScope + `, complete: true, seen: 1`,
		refused: auditedScope + `, complete: true, seen: -1`, changed: "SYNC o/r/k", again: "-"},

	{field: "createCapability", accepted: `resourceType: "physical:host", name: "c"`,
		refused: `resourceType: "none", name: "c"`, changed: "CAPABILITY physical:host/c"},
	{field: "setCapabilities", accepted: `resource: "` + auditedHost + `", capabilities: [{key: "c", value: "1"}]`,
		refused: `resource: "` + auditedHost + `", capabilities: [{key: "", value: "1"}]`,
		changed: "RESOURCE " + auditedHost},
	{field: "unsetCapabilities", accepted: `resource: "` + auditedHost + `", names: ["c"]`,
		refused: `resource: "` + auditedHost + `", names: ["c", "none"]`, changed: "RESOURCE " + auditedHost},
	{field: "setCapabilityVisibility", accepted: `resourceType: "physical:host", name: "c", private: false`,
		refused: `resourceType: "physical:host", name: "none", private: true`, changed: "CAPABILITY physical:host/c"},
	{field: "deleteCapability", accepted: `resourceType: "physical:host", name: "c"`,
		refused: `resourceType: "physical:host", name: "none"`, changed: "CAPABILITY physical:host/c"},
	{field: "deleteResource", accepted: `uuid: "` + auditedOther + `"`, refused: `uuid: "` + noUUID + `"`,
		changed: "RESOURCE " + auditedOther},

	{field: "createTrait", accepted: `name: "CUSTOM_T"`, refused: `name: "T"`, changed: "TRAIT CUSTOM_T"},
	{field: "ensureTraits", accepted: `names: ["CUSTOM_T", "CUSTOM_E"]`, refused: `names: ["T"]`,
		changed: "TRAIT CUSTOM_E", again: "-"},
	{field: "createResourceClass", accepted: `name: "CUSTOM_C"`, refused: `name: "C"`,
		changed: "RESOURCE_CLASS CUSTOM_C"},
	{field: "createResourceProvider", accepted: `name: "one", uuid: "` + auditedOne + `"`, refused: `name: ""`,
		changed: "RESOURCE_PROVIDER " + auditedOne},
	{field: "createResourceProvider", accepted: `name: "two", uuid: "` + auditedTwo + `"`, refused: `name: "one"`,
		changed: "RESOURCE_PROVIDER " + auditedTwo},
	{field: "createResourceProviders", accepted: `items: [{name: "three", uuid: "` + auditedThree +
		`", aggregates: ["` + noUUID + `"]}, {name: "four", uuid: "` + auditedFour + `", parentName: "three"}]`,
		refused: `items: [{name: "five"}, {name: "one"}]`,
		changed: "RESOURCE_PROVIDER " + auditedThree + ", RESOURCE_PROVIDER " + auditedFour},
	{field: "updateResourceProvider", accepted: `provider: "` + auditedOne + `", newName: "uno"`,
		refused: `provider: "` + auditedOne + `", newName: "two"`, changed: "RESOURCE_PROVIDER " + auditedOne},
	{field: "setInventories", accepted: `provider: "` + auditedOne +
		`", inventories: [{resourceClass: "VCPU", total: 8}, {resourceClass: "CUSTOM_C", total: 8}]`, refused: `provider: "` + auditedOne + `", generation: 99, inventories: []`, changed: "RESOURCE_PROVIDER " + auditedOne},
	{field: "setInventory", accepted: `provider: "` + auditedOne + `", inventory: {resourceClass: "VCPU", total: 9}`,
		refused: `provider: "` + auditedOne + `", inventory: {resourceClass: "NONE", total: 9}`,
		changed: "RESOURCE_PROVIDER " + auditedOne},
	{field: "updateInventories", accepted: `filter: {uuids: ["` + auditedOne +
		`"]}, resourceClass: "VCPU", allocationRatio: 2`,
		refused: `filter: {uuids: ["` + auditedOne + `"]}, resourceClass: "VCPU", reserved: 10`,
		changed: "RESOURCE_PROVIDER " + auditedOne, again: "-"},
	{field: "deleteInventory", accepted: `provider: "` + auditedOne + `", resourceClass: "CUSTOM_C"`,
		refused: `provider: "` + auditedOne + `", resourceClass: "CUSTOM_C", generation: 99`,
		changed: "RESOURCE_PROVIDER " + auditedOne},
	{field: "setProviderTraits", accepted: `provider: "` + auditedOne + `", traits: ["CUSTOM_T"]`,
		refused: `provider: "` + auditedOne + `", traits: ["NONE"]`, changed: "RESOURCE_PROVIDER " + auditedOne},
	{field: "setProviderAggregates", accepted: `provider: "` + auditedOne + `", aggregates: ["` + noUUID + `"]`,
		refused: `provider: "` + noUUID + `", aggregates: []`, changed: "RESOURCE_PROVIDER " + auditedOne},
	{field: "setOnResourceProviders", accepted: `items: [{provider: "` + auditedOne +
		`", traits: []}, {providerName: "two", aggregates: ["` + noUUID + `"]}]`,
		refused: `items: [{provider: "` + auditedOne + `", traits: ["CUSTOM_T"]}, {provider: "` + auditedTwo +
			`", generation: 99}]`, changed: "RESOURCE_PROVIDER " + auditedOne + ", RESOURCE_PROVIDER " + auditedTwo},
	{field: "setProviderTraits", accepted: `provider: "` + auditedOne + `", traits: ["CUSTOM_T"]`,
		refused: `provider: "` + auditedOne + `", traits: ["NONE"]`, changed: "RESOURCE_PROVIDER " + auditedOne},
	{field: "setAllocations", accepted: `consumers: [{uuid: "` + claimer + `", ` + claimOf + `}, {uuid: "` +
		otherClaimer + `", ` + claimOf + `}]`,
		refused: `consumers: [{uuid: "` + claimer + `", generation: 99, ` + claimOf + `}]`,
		changed: "CONSUMER " + claimer + ", CONSUMER " + otherClaimer},
	{field: "setLimits", accepted: `projectId: "demo", limits: [{resourceClass: "VCPU", limit: 100}]`,
		refused: `projectId: "demo", limits: [{resourceClass: "NONE", limit: 1}]`,
		payload: "limits { limit }", changed: "LIMIT demo"},
	{field: "place", accepted: `consumers: [{uuid: "` + placedConsumer +
		`", projectId: "demo", userId: "u"}], holdFor: 86400, request: {forbidden: ["CUSTOM_U"], resources: [{resourceClass: "VCPU", amount: 1}]}`,
		refused: `consumers: [{uuid: "` + placedConsumer +
			`", projectId: "demo", userId: "u"}], request: {resources: [{resourceClass: "NONE", amount: 1}]}`,
		changed: "CONSUMER " + placedConsumer, again: "-"},
	{field: "confirmAllocations", accepted: `consumers: ["` + placedConsumer + `"]`,
		refused: `consumers: ["` + placedConsumer + `", "` + noUUID + `"]`, changed: "CONSUMER " + placedConsumer},
	{field: "setInventory", accepted: `provider: "` + auditedTwo + `", inventory: {resourceClass: "VCPU", total: 9}`,
		refused: `provider: "` + auditedTwo + `", inventory: {resourceClass: "NONE", total: 9}`,
		changed: "RESOURCE_PROVIDER " + auditedTwo},
	{field: "applyPlan", accepted: `moves: [{consumer: "` + placedConsumer +
		`", consumerGeneration: 1, allocations: [{provider: "` + auditedTwo +
		`", resources: [{resourceClass: "VCPU", amount: 1}]}]}]`,
		refused: `moves: []`, changed: "CONSUMER " + placedConsumer, again: "-"},
	{field: "deleteAllocations", accepted: `consumer: "` + placedConsumer + `"`, refused: `consumer: "` + noUUID + `"`,
		changed: "CONSUMER " + placedConsumer},
	{field: "setAllocations", accepted: `consumers: [{uuid: "` + placedConsumer + `", ` + claimOf + `}]`,
		refused: `consumers: [{uuid: "` + placedConsumer + `", generation: 99, ` + claimOf + `}]`,
		changed: "CONSUMER " + placedConsumer},
	{field: "deleteAllocationsForMany", accepted: `consumers: ["` + placedConsumer + `"]`,
		refused: `consumers: ["` + placedConsumer + `", "` + noUUID + `"]`,
		changed: "CONSUMER " + placedConsumer},
	{field: "deleteAllocations", accepted: `consumer: "` + otherClaimer + `"`, refused: `consumer: "` + noUUID + `"`,
		changed: "CONSUMER " + otherClaimer},
	{field: "reshape", accepted: `inventories: [{provider: "` + auditedOne +
		`", inventories: [{resourceClass: "VCPU", total: 4}]}], consumers: [{uuid: "` + claimer + `", generation: 1, ` +
		strings.Replace(claimOf, "amount: 1", "amount: 2", 1) + `}]`,
		refused: `inventories: [{provider: "` + auditedOne + `", inventories: []}]`,
		changed: "CONSUMER " + claimer + ", RESOURCE_PROVIDER " + auditedOne},
	{field: "deleteTrait", accepted: `name: "CUSTOM_U"`, refused: `name: "CUSTOM_T"`, changed: "TRAIT CUSTOM_U"},
	{field: "deleteResourceClass", accepted: `name: "CUSTOM_C"`, refused: `name: "VCPU"`,
		changed: "RESOURCE_CLASS CUSTOM_C"},
	{field: "deleteResourceProvider", accepted: `provider: "` + auditedTwo + `"`,
		refused: `provider: "` + auditedOne + `"`, changed: "RESOURCE_PROVIDER " + auditedTwo},
}

// TestEveryMutationIsAudited sends every mutation of the schema. An accepted
// mutation leaves one event for each thing that it changed, and a line in the
// log. A mutation that is refused for its input or the viewer's role leaves
// neither.
func TestEveryMutationIsAudited(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		a := &auditing{t: t, allocations: strings.HasPrefix(url, "sqlite")}
		s, err := store.Open(t.Context(),
			store.Options{URL: url, AuditAllocations: a.allocations, Log: slog.New(slog.NewTextHandler(&a.lines, nil))})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		a.executor = executorOf(t, s)
		a.ask("admin", `mutation { createTrait(input: {name: "CUSTOM_U"}) { __typename } }`)
		a.known = len(events(t, a.ask))
		sent := map[string]bool{}
		for _, m := range auditedMutations {
			sent[m.field] = true
			a.refuse(m)
			a.accept(m)
			a.repeat(m)
		}
		for _, field := range a.executor.Schema().Mutation.Fields {
			if !sent[field.Name] && !strings.HasPrefix(field.Name, "__") {
				t.Errorf("%s is not sent: add it to auditedMutations", field.Name)
			}
		}
		a.ask("admin",
			`mutation { createResource(input: {type: "physical:host", name: "tagged", tags: ["t"]}) { __typename } }`)
		a.ask("admin",
			`mutation { createNamespace(input: {name: "Words", resourceTypeAssociations: [{resourceType: "physical:host"}]}) { __typename } }`)
		for _, event := range events(t, a.ask) {
			a.checkWords(event.Kind, event.Before, event)
			a.checkWords(event.Kind, event.After, event)
		}
		if strings.Contains(a.lines.text(), "secret-user") {
			t.Error("the log holds a value")
		}
	})
}

// checkWords checks that an event describes a thing with fields and arguments
// of the API. Lists must be lists, and enums must have values as the API shows
// them.
func (a *auditing) checkWords(kind string, had any, of event) {
	a.t.Helper()
	fields, _ := had.(map[string]any)
	schema := a.executor.Schema()
	var shown *ast.Definition
	for name, definition := range schema.Types {
		if strings.ToUpper(name) == strings.ReplaceAll(kind, "_", "") {
			shown = definition
		}
	}
	for name, value := range fields {
		known := false
		for _, definition := range schema.Types {
			known = known || definition.Fields.ForName(name) != nil
		}
		if enum := schema.Types["NamespaceContent"]; !known && enum.EnumValues.ForName(name) == nil {
			a.t.Errorf("%s is no word of the API: %+v", name, of)
		}
		field := shown.Fields.ForName(name)
		if field == nil {
			continue
		}
		_, isList := value.([]any)
		if list := field.Type.Elem != nil || strings.HasSuffix(field.Type.Name(), "Connection"); list && !isList {
			a.t.Errorf("%s is %v, not a list: %+v", name, value, of)
		}
		if enum := schema.Types[field.Type.Name()]; enum.Kind == ast.Enum &&
			enum.EnumValues.ForName(fmt.Sprint(value)) == nil {
			a.t.Errorf("%s is %v, no %s: %+v", name, value, enum.Name, of)
		}
	}
}

// auditing sends mutations and compares the events and log lines that they
// leave.
type auditing struct {
	t *testing.T
	// allocations says whether the events of consumers show them.
	allocations bool
	executor    *graph.Executor
	lines       logLines
	id          string // the last id in an answer
	known       int    // the number of events so far
}

func (a *auditing) ask(viewer, query string) string {
	a.t.Helper()
	ctx := access.WithViewer(context.Background(), viewers[viewer])
	return answerText(a.t, a.executor.Execute(ctx, &graphql.RawParams{Query: strings.ReplaceAll(query, "$id", a.id)}))
}

// query returns the mutation with an input.
func (m audited) query(input string) string {
	return "mutation { " + m.field + "(input: {" + input + "}) { " + cmp.Or(m.payload, "__typename") + " } }"
}

// refuse checks that a mutation without permission or with invalid input leaves
// no event and no line.
func (a *auditing) refuse(m audited) {
	a.t.Helper()
	logged := a.lines.count()
	for _, refused := range []struct{ viewer, input string }{{"nobody", m.accepted},
		{"reader", m.accepted}, {"admin", m.refused}} {
		answer := a.ask(refused.viewer, m.query(refused.input))
		if m.field != "importNamespaces" && m.field != "unloadNamespaces" && !strings.Contains(answer, `"errors"`) {
			a.t.Errorf("%s as %s was not refused: %s", m.field, refused.viewer, answer)
		}
		if refused.viewer == "admin" && strings.Contains(answer, `"errors"`) && !strings.Contains(answer, `"field":"`) {
			a.t.Errorf("%s names no field: %s", m.field, answer)
		}
		if now := len(events(a.t, a.ask)); now != a.known || a.lines.count() != logged {
			a.t.Errorf("%s as %s: %d events and %d lines of what was refused: %s", m.field, refused.viewer,
				now-a.known, a.lines.count()-logged, answer)
			a.known, logged = now, a.lines.count()
		}
	}
}

// accept checks the events of an accepted mutation.
func (a *auditing) accept(m audited) {
	a.t.Helper()
	answer, changed := a.send(m, func(e event) bool {
		empty := e.Before == nil && e.After == nil
		return empty == (e.Kind == "CONSUMER" && !a.allocations)
	})
	if strings.Contains(answer, `"errors":[{`) && m.field != "importNamespaces" {
		a.t.Errorf("%s: %s", m.field, answer)
	}
	if found := idInAnswer.FindStringSubmatch(answer); found != nil {
		a.id = found[1]
	}
	if changed != m.changed {
		a.t.Errorf("%s: events of %q, want %q; the answer was %s", m.field, changed, m.changed, answer)
	}
}

// repeat sends an accepted mutation again. Either it is refused and leaves no
// event, or it leaves its events; an event without a change shows none.
func (a *auditing) repeat(m audited) {
	a.t.Helper()
	answer, changed := a.send(m, func(e event) bool {
		return e.Before == nil || fmt.Sprint(e.Before) != fmt.Sprint(e.After)
	})
	want := strings.TrimPrefix(cmp.Or(m.again, m.changed), "-")
	if strings.Contains(answer, `"code":`) {
		want = ""
	}
	if changed != want {
		a.t.Errorf("%s again: events of %q, want %q; the answer was %s", m.field, changed, want, answer)
	}
}

// send sends a mutation as an administrator. It returns the answer, and the
// kind and key of each new event. It checks each event, and that the log has a
// line for it.
func (a *auditing) send(m audited, right func(event) bool) (answer, changed string) {
	a.t.Helper()
	logged := a.lines.count()
	answer = a.ask("admin", m.query(m.accepted))
	all := events(a.t, a.ask)
	var things []string
	for _, e := range all[a.known:] {
		things = append(things, e.Kind+" "+e.Key)
		if e.Action != m.field || e.UserID != "ada" || !right(e) {
			a.t.Errorf("%s: an event of %s by %s, before %v, after %v", m.field, e.Action, e.UserID, e.Before, e.After)
		}
	}
	if got := a.lines.count() - logged; got != len(all)-a.known {
		a.t.Errorf("%s: %d lines in the log for %d events", m.field, got, len(all)-a.known)
	}
	a.known = len(all)
	return answer, strings.Join(things, ", ")
}

// TestAMutationOfNothingIsAudited checks that an accepted mutation leaves an
// event even if it changes nothing, and that a dry run leaves none.
func TestAMutationOfNothingIsAudited(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		executor := executorOf(t, storetest.Open(t, url))
		ask := func(viewer, query string) string {
			ctx := access.WithViewer(context.Background(), viewers[viewer])
			return answerText(t, executor.Execute(ctx, &graphql.RawParams{Query: query}))
		}
		known := len(events(t, ask))
		longType, longName := strings.Repeat("t", 80), strings.Repeat("ñ", 255)
		for _, of := range []struct{ mutation, key string }{
			{`createNamespace(input: {name: "N"}) { __typename }`, "N"},
			{`importNamespaces(input: {documents: []}) { __typename }`, ""},
			{`importNamespaces(input: {documents: ["{\"namespace\": \"N\"}"], mode: SKIP}) { __typename }`, "N"},
			{`importNamespaces(input: {documents: ["{\"namespace\": \"D\"}", "{\"namespace\": \"N\", \"description\": \"d\"}"], mode: OVERWRITE, dryRun: true}) { __typename }`, "-"},
			{`importNamespaces(input: {documents: ["{"]}) { __typename }`, "-"},
			{`unloadNamespaces(input: {origin: "none"}) { __typename }`, ""},
			{`unloadNamespaces(input: {names: ["none"]}) { __typename }`, "-"},
			{`setMetadataOnResources(input: {items: []}) { __typename }`, ""},
			{`createResourceType(input: {name: "` + longType + `"}) { __typename }`, longType},
			{`createCapability(input: {resourceType: "` + longType + `", name: "` + longName + `"}) { __typename }`,
				longType + "/" + longName},
		} {
			answer := ask("admin", "mutation { "+of.mutation+" }")
			all := events(t, ask)
			if strings.Contains(answer, `"code":`) {
				t.Errorf("%.200s: %s", of.mutation, answer)
			}
			if of.key == "-" && len(all) != known ||
				of.key != "-" && (len(all) != known+1 || all[known].Key != of.key) {
				t.Errorf("%.200s: %v, want the key %s; the answer was %s", of.mutation, all[known:], of.key, answer)
			}
			known = len(all)
		}
	})
}

// event is an audit event as the API shows it.
type event struct {
	Action, Kind, Key, UserID string
	Before, After             any
}

// events returns all audit events, the oldest first.
func events(t *testing.T, ask func(viewer, query string) string) []event {
	t.Helper()
	text := ask("admin", `{ auditEvents(last: 1000) { nodes { action kind key userId before after } } }`)
	var answer struct {
		Data struct{ AuditEvents struct{ Nodes []event } }
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil || strings.Contains(text, `"errors":[`) {
		t.Fatalf("%v in %s", err, text)
	}
	nodes := answer.Data.AuditEvents.Nodes
	oldest := make([]event, len(nodes))
	for i, node := range nodes {
		oldest[len(nodes)-1-i] = node
	}
	return oldest
}

// logLines is a log that is safe to read while it is written.
type logLines struct {
	mu   sync.Mutex
	held bytes.Buffer
}

func (l *logLines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held.Write(line)
}

func (l *logLines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held.String()
}

// count returns the number of lines about changes.
func (l *logLines) count() int { return strings.Count(l.text(), "msg=changed ") }
