package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/cadastre-dev/cadastre/store/storetest"
)

// parsed returns the values of metrics, by name and labels.
func parsed(t *testing.T, text string) map[string]float64 {
	t.Helper()
	text += "\n"
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil || len(problems) > 0 {
		t.Fatal(problems, err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for name, family := range families {
		for _, metric := range family.GetMetric() {
			var labels []string
			for _, label := range metric.GetLabel() {
				labels = append(labels, label.GetName()+"="+label.GetValue())
			}
			slices.Sort(labels)
			values[strings.TrimPrefix(name, "cadastre_cloud_")+"{"+strings.Join(labels, ",")+"}"] = metric.GetGauge().
				GetValue()
		}
	}
	return values
}

// cloudAnswer is the answer of GraphQL with the figures of the metrics.
type cloudAnswer struct {
	Classes, Aggregates struct {
		Nodes []struct {
			ResourceClass                   string
			Aggregate                       *string
			Total, Reserved, Capacity, Used json.Number
		}
	}
	Survives struct {
		TotalCount, UnsurvivedCount int
		Nodes                       []struct {
			Root          struct{ Name string }
			UnplacedCount int
		}
	}
	Resources struct {
		Nodes []struct {
			Name string
			Fits struct{ AtLeast, AtMost json.Number }
		}
	}
	MetadataProblems struct {
		ResourceCount int
		Complete      bool
		Counts        []struct {
			Namespace     *string
			Rule          string
			ResourceCount int
		}
	}
	Reported struct {
		Nodes []struct {
			MetadataReport struct {
				Items []struct {
					Key      string
					IsCustom bool
				}
			}
		}
	}
	Limits []struct {
		ResourceClass string
		Trait         *string
		Limit, Used   json.Number
	}
	ResourceProviders struct {
		Nodes []struct {
			Inventories []struct {
				ResourceClass string
				Free          json.Number
			}
		}
	}
	Consumer struct {
		Allocations []struct {
			ResourceClass string
			Used          json.Number
		}
	}
}

const cloudQuery = `{
	classes: capacity { nodes { resourceClass total reserved capacity used } }
	aggregates: capacity(groupBy: AGGREGATE, first: 1000) { nodes { aggregate resourceClass total reserved capacity used } }
	survives(first: 20) { totalCount unsurvivedCount nodes { root { name } unplacedCount } }
	resources(filter: {types: ["OS::Nova::Flavor"], name: "n1.large"}) { nodes { name fits { atLeast atMost } } }
	metadataProblems(first: 0) { resourceCount complete counts(by: [NAMESPACE, RULE]) { namespace rule resourceCount } }
	reported: resources(first: 1000) { nodes { metadataReport { items { key isCustom } } } }
	limits(projectId: "metered") { resourceClass trait limit used }
	resourceProviders(first: 1000) { nodes { inventories { resourceClass free } } }
	consumer(uuid: "3f0c2f4e-0000-4000-8000-00000000000d") { allocations { resourceClass used } }
}`

// figures returns the values that the metrics must have.
func (a *cloudAnswer) figures(t *testing.T) map[string]float64 {
	t.Helper()
	want := map[string]float64{"failures{}": float64(a.Survives.TotalCount),
		"failures_unsurvived{}": float64(a.Survives.UnsurvivedCount)}
	set := func(number json.Number, name string, args ...any) {
		value, err := number.Float64()
		if err != nil {
			t.Fatal(err)
		}
		want[fmt.Sprintf(name, args...)] = value
	}
	a.addDrift(want)
	for _, list := range []string{"classes", "aggregates", "failures", "quota", "resources", "drift", "undefined"} {
		set("0", "incomplete{list=%s}", list)
	}
	for i, of := range append(slices.Clone(a.Classes.Nodes), a.Aggregates.Nodes...) {
		prefix, labels := "", "resource_class="+of.ResourceClass
		if i < len(a.Classes.Nodes) {
			set("0", "held_units{%s}", labels)
			set("0", "excess_units{%s}", labels)
		} else {
			aggregate := ""
			if of.Aggregate != nil {
				aggregate = *of.Aggregate
			}
			prefix, labels = "aggregate_", "aggregate="+aggregate+","+labels
		}
		set(of.Total, "%stotal_units{%s}", prefix, labels)
		set(of.Reserved, "%sreserved_units{%s}", prefix, labels)
		set(of.Capacity, "%scapacity_units{%s}", prefix, labels)
		set(of.Used, "%sused_units{%s}", prefix, labels)
	}
	for _, of := range a.Survives.Nodes {
		if of.UnplacedCount > 0 {
			want["failure_unplaced_consumers{root="+of.Root.Name+"}"] = float64(of.UnplacedCount)
		}
	}
	for _, of := range a.Resources.Nodes {
		set(of.Fits.AtLeast, "fits_at_least{flavor=%s}", of.Name)
		set(of.Fits.AtMost, "fits_at_most{flavor=%s}", of.Name)
	}
	for _, of := range a.Limits {
		trait := ""
		if of.Trait != nil {
			trait = *of.Trait
		}
		set(of.Limit, "quota_limit_units{project=metered,resource_class=%s,trait=%s}", of.ResourceClass, trait)
		set(of.Used, "quota_used_units{project=metered,resource_class=%s,trait=%s}", of.ResourceClass, trait)
	}
	for _, of := range a.Consumer.Allocations {
		set(of.Used, "held_units{resource_class=%s}", of.ResourceClass)
	}
	a.addExcess(want)
	return want
}

// hasEverything reports whether the cloud has a value for each kind of metrics.
func (a *cloudAnswer) hasEverything() bool {
	return len(a.Limits) == 2 && len(a.Consumer.Allocations) == 1 &&
		len(a.Resources.Nodes) == 1 && a.Survives.UnsurvivedCount > 0 &&
		a.MetadataProblems.Complete && len(a.MetadataProblems.Counts) > 0
}

// addExcess adds the units above capacities.
func (a *cloudAnswer) addExcess(want map[string]float64) {
	for _, provider := range a.ResourceProviders.Nodes {
		for _, of := range provider.Inventories {
			if free, err := of.Free.Float64(); err == nil && free < 0 {
				want["excess_units{resource_class="+of.ResourceClass+"}"] -= free
			}
		}
	}
}

// addDrift adds the values of the metrics of drift.
func (a *cloudAnswer) addDrift(want map[string]float64) {
	want["drifted_resources{}"] = float64(a.MetadataProblems.ResourceCount)
	for _, of := range a.MetadataProblems.Counts {
		want["drifted_rule_resources{namespace="+*of.Namespace+",rule="+of.Rule+"}"] = float64(of.ResourceCount)
	}
	for _, of := range a.Reported.Nodes {
		custom := 0
		for _, item := range of.MetadataReport.Items {
			if item.IsCustom {
				custom++
				want["undefined_key_resources{key="+item.Key+"}"]++
			}
		}
		if custom > 0 {
			want["undefined_resources{}"]++
		}
	}
}

// loneConsumer adds limits, a held consumer, and a consumer that fits nowhere: on
// its host it uses more than there is.
func loneConsumer(t *testing.T, address string) {
	t.Helper()
	done := answerOf(t, address, `mutation {
		setLimits(input: {projectId: "metered", limits: [{resourceClass: "VCPU", limit: 9}, {resourceClass: "VCPU", trait: "HW_CPU_X86_AVX2", limit: 7}]}) { __typename }
		createResourceProvider(input: {name: "lonely", uuid: "3f0c2f4e-0000-4000-8000-0000000000aa", inventories: [{resourceClass: "FPGA", total: 1}]}) { __typename }
		setAllocations(input: {asFound: true, consumers: [{uuid: "3f0c2f4e-0000-4000-8000-0000000000ab", projectId: "demo", userId: "u",
			allocations: [{provider: "3f0c2f4e-0000-4000-8000-0000000000aa", resources: [{resourceClass: "FPGA", amount: 3}]}]}]}) { __typename }
		place(input: {request: {resources: [{resourceClass: "VCPU", amount: 2}]}, holdFor: 3600, consumers: [{uuid: "3f0c2f4e-0000-4000-8000-00000000000d", projectId: "metered", userId: "u"}]}) { __typename }
	}`)
	if strings.Contains(done, `"errors"`) {
		t.Fatal(done)
	}
}

// TestTheMetricsOfTheCloudAreTheAnswersOfGraphQL compares all figures of both,
// while nothing is written.
func TestTheMetricsOfTheCloudAreTheAnswersOfGraphQL(t *testing.T) {
	t.Parallel()
	server, _ := boot(t, "--demo", "--database", storetest.EmptySQLite(t))
	loneConsumer(t, server.address)
	var answer cloudAnswer
	asked := answerOf(t, server.address, cloudQuery)
	if err := json.Unmarshal([]byte(asked), &answer); err != nil || strings.Contains(asked, `"errors"`) {
		t.Fatal(asked, err)
	}
	status, text := get(t, server.address+cloudMetricsPath+"&flavor=none")
	if status != http.StatusOK {
		t.Fatal(status, text)
	}
	got, want := parsed(t, text), answer.figures(t)
	for name, value := range want {
		if of, ok := got[name]; !ok || of != value {
			t.Errorf("%s is %v, want %v", name, of, value)
		}
		delete(got, name)
	}
	if len(got) > 0 || !answer.hasEverything() || want["excess_units{resource_class=FPGA}"] != 2 ||
		want["undefined_resources{}"] == 0 {
		t.Errorf("more metrics: %v, of %+v", got, answer)
	}
}

func TestTheMetricsOfTheCloudRefuseWhatTheyDoNotKnow(t *testing.T) {
	t.Parallel()
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(policy, []byte("rules: {placement.read: [service]}"), 0o600); err != nil {
		t.Fatal(err)
	}
	server, _ := boot(t, "--demo", "--profile", "locked", "--policy", policy, "--database", storetest.EmptySQLite(t))
	if status, _ := get(t, server.address+"/metrics/cloud"); status != http.StatusUnauthorized {
		t.Errorf("without a token: %d", status)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.address+"/metrics/cloud", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Auth-Token", "demo-admin")
	if status, text := fetch(t, request); status != http.StatusForbidden || !strings.Contains(text, "role service") {
		t.Errorf("without the right to read placement: %d %s", status, text)
	}
	many := url.Values{"show": {"all"}, "x": {""}}
	for i := range 51 {
		many.Add("flavor", fmt.Sprint(i))
	}
	_, err = readCloudQuestion(many)
	for _, part := range []string{"flavor: has 51 names",
		"show: must be failures, quota or drift", "x: is not a parameter"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not have %s", err, part)
		}
	}
}
