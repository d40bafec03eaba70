package main

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestRowsAreComparedByContent reads the answers of Cadastre and of PostGraphile
// to one question.
func TestRowsAreComparedByContent(t *testing.T) {
	t.Parallel()
	own, err := rowsAt(json.RawMessage(`{"list": {"nodes": [
		{"name": "b", "description": null, "items": [{"k": 1}, {"k": 2}]},
		{"name": "a", "description": "x", "items": []}]}}`), []string{"list", "nodes"}, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		answer, member string
		same           bool
	}{
		{`{"list": {"nodes": [{"name": "a", "description": "x", "items": {"nodes": []}},
			{"name": "b", "description": "", "items": {"nodes": ["{\"k\": 2}", {"k": 1}]}}]}}`, "", true},
		{`{"list": {"nodes": [{"of": {"name": "a", "description": "x", "items": []}}, {"of": {"name": "b", "items": [{"k": 1}, {"k": 2}]}}]}}`, "of", true},
		{`{"list": {"nodes": [{"name": "a", "description": "x", "items": []}]}}`, "", false},
		{`{"list": {"nodes": [{"name": "a", "description": "x", "items": []}, {"name": "b", "items": [{"k": 1}, {"k": 3}]}]}}`, "", false},
	} {
		rows, err := rowsAt(json.RawMessage(test.answer), []string{"list", "nodes"}, test.member)
		if err != nil {
			t.Fatal(err)
		}
		if err := sameRows(own, rows); (err == nil) != test.same {
			t.Errorf("%s: %v", test.answer, err)
		}
	}
}

// TestCandidatesAreComparedByContent reads one candidate in the two forms.
func TestCandidatesAreComparedByContent(t *testing.T) {
	t.Parallel()
	theirs, err := placementCandidates([]byte(`{
		"allocation_requests": [{"allocations": {"u": {"resources": {"DISK_GB": 4}}, "v": {"resources": {"VGPU": 1}}}, "mappings": {"": ["u"], "1": ["v"]}}],
		"provider_summaries": {
			"u": {"resources": {"DISK_GB": {"capacity": 256, "used": 8}}, "traits": ["B", "A"], "parent_provider_uuid": null, "root_provider_uuid": "u"},
			"v": {"resources": {"VGPU": {"capacity": 2, "used": 0}}, "traits": ["C"], "parent_provider_uuid": "u", "root_provider_uuid": "u"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	var page candidatePage
	if err := json.Unmarshal([]byte(`{
		"nodes": [{"allocations": [{"provider": {"uuid": "v"}, "resources": [{"resourceClass": "VGPU", "amount": 1}]},
			{"provider": {"uuid": "u"}, "resources": [{"resourceClass": "DISK_GB", "amount": 4}]}],
			"mappings": [{"suffix": "", "providers": [{"uuid": "u"}]}, {"suffix": "1", "providers": [{"uuid": "v"}]}]}],
		"providerSummaries": [{"provider": {"uuid": "u", "parent": null, "root": {"uuid": "u"}}, "traits": ["A", "B"],
			"inventories": [{"resourceClass": "DISK_GB", "capacity": 256, "used": 8}]},
			{"provider": {"uuid": "v", "parent": {"uuid": "u"}, "root": {"uuid": "u"}}, "traits": ["C"],
			"inventories": [{"resourceClass": "VGPU", "capacity": 2, "used": 0}]}]}`), &page); err != nil {
		t.Fatal(err)
	}
	read := func() *candidateTexts {
		ours := &candidateTexts{map[string]bool{}, map[string]string{}}
		page.addTo(ours)
		return ours
	}
	if got := read(); !reflect.DeepEqual(got, theirs) {
		t.Errorf("one candidate has two forms:\n%v\n%v", got, theirs)
	}
	page.Nodes[0].Allocations[0].Resources[0].Amount++
	page.Summaries[0].Inventories[0].Used++
	if got := read(); reflect.DeepEqual(got.candidates, theirs.candidates) || got.providers["u"] == theirs.providers["u"] {
		t.Errorf("another amount or use has the same form: %v", got)
	}
}

// TestEveryTargetOfTheTableIsAWork finds works whose peer or goal is missing.
func TestEveryTargetOfTheTableIsAWork(t *testing.T) {
	t.Parallel()
	var names []string
	for _, work := range works() {
		if slices.Contains(names, work.name) {
			t.Errorf("two works are called %q", work.name)
		}
		names = append(names, work.name)
		if (work.goal.ratio > 0) != (work.compared != nil) || work.compared != nil && !slices.Contains(peers(), work.compared.with) {
			t.Errorf("%s: a goal of %+v without its peer, or a peer without a goal", work.name, work.goal)
		}
		if clients := strings.Contains(work.name, "clients"); clients != (work.clients > 1) {
			t.Errorf("%s has %d clients", work.name, work.clients)
		}
	}
}
