package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/text"
)

const (
	// cloudTime is the time limit of an answer with the metrics of the cloud. The
	// server makes one such answer at a time.
	cloudTime = 10 * time.Second
	// The bounds of series.
	maxCloudRows   = 1000 // pairs of an aggregate and a class, and limits of projects
	maxCloudHosts  = 20   // hosts that would not survive
	maxCloudFlavor = placement.MaxFitRequests
	maxCloudScan   = 10_000 // resources whose metadata is compared with definitions
	maxCloudDrift  = 50     // pairs of a namespace and a rule, and keys without a definition
)

// cloudMetrics serves the metrics of the cloud: each answer shows one instant, as
// the viewer sees it, or as services do if the server asks for no token.
type cloudMetrics struct {
	store *store.Store
	log   *slog.Logger
	turn  chan struct{} // holds one value while an answer is computed
}

func newCloudMetrics(s *store.Store, log *slog.Logger) *cloudMetrics {
	return &cloudMetrics{s, log, make(chan struct{}, 1)}
}

// cloudQuestion says which metrics a request wants in addition to the capacity.
type cloudQuestion struct {
	flavors                []string
	failures, quota, drift bool
}

// readCloudQuestion reads the query of a request. The error lists every problem.
func readCloudQuestion(query url.Values) (q cloudQuestion, err error) {
	var problems problem.Problems
	for name, values := range query {
		switch name {
		case "flavor":
			q.flavors = slices.Compact(slices.Sorted(slices.Values(values)))
			if len(q.flavors) > maxCloudFlavor {
				problems.Add(name, "has %d names, at most %d are allowed", len(q.flavors), maxCloudFlavor)
			}
		case "show":
			for _, value := range values {
				switch value {
				case "failures":
					q.failures = true
				case "quota":
					q.quota = true
				case "drift":
					q.drift = true
				default:
					problems.Add(name, "must be failures, quota or drift")
				}
			}
		default:
			problems.Add(name, "is not a parameter; flavor and show are")
		}
	}
	slices.SortFunc(problems, func(a, b problem.Problem) int { return strings.Compare(a.Field, b.Field) })
	return q, problems.Err()
}

// ServeHTTP serves /metrics/cloud.
func (m *cloudMetrics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	question, err := readCloudQuestion(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), cloudTime)
	defer cancel()
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-ctx.Done():
		http.Error(w, "another request for these metrics is running", http.StatusServiceUnavailable)
		return
	}
	registry := prometheus.NewRegistry()
	switch err := m.collect(ctx, registry, question); {
	case errors.Is(err, problem.ErrForbidden):
		http.Error(w, err.Error(), http.StatusForbidden)
	case err != nil:
		m.log.WarnContext(ctx, "cannot read the metrics of the cloud", "error", err)
		http.Error(w, "the metrics cannot be read", http.StatusServiceUnavailable)
	default:
		promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, r)
	}
}

// collect registers the metrics of one instant.
func (m *cloudMetrics) collect(ctx context.Context, registry *prometheus.Registry, q cloudQuestion) error {
	if viewer := access.ViewerFrom(ctx); len(viewer.Roles) == 0 {
		ctx = access.WithViewer(ctx, access.Viewer{UserID: "metrics", Roles: []string{access.RoleService}})
	}
	ctx, reading := m.store.WithReading(ctx, store.AtOnce)
	defer reading.End()
	g := gauges{registry: registry, of: map[string]*prometheus.GaugeVec{}}
	world, err := m.store.World(ctx)
	if err != nil {
		return err
	}
	err = m.addCapacity(ctx, g, world)
	if err == nil && len(q.flavors) > 0 {
		err = m.addFits(ctx, g, q.flavors)
	}
	if err == nil && q.failures {
		err = m.addFailures(ctx, g)
	}
	if err == nil && q.quota {
		err = m.addQuota(ctx, g)
	}
	if err == nil && q.drift {
		err = m.addDrift(ctx, g)
	}
	return err
}

// gauges are the gauges of an answer, by name.
type gauges struct {
	registry *prometheus.Registry
	of       map[string]*prometheus.GaugeVec
}

// set sets a gauge. Labels are names and values in turn.
func (g gauges) set(name, help string, value float64, labels ...string) {
	named := prometheus.Labels{}
	var names []string
	for i := 0; i < len(labels); i += 2 {
		names, named[labels[i]] = append(names, labels[i]), labels[i+1]
	}
	if g.of[name] == nil {
		g.of[name] = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "cadastre_cloud_" + name, Help: help}, names)
		g.registry.MustRegister(g.of[name])
	}
	g.of[name].With(named).Set(value)
}

// setIncomplete sets the gauge that is 1 if a list was cut.
func (g gauges) setIncomplete(list string, isIncomplete bool) {
	value := 0.0
	if isIncomplete {
		value = 1
	}
	g.set("incomplete", "1 if the list, or the scan for it, was cut at its maximum, else 0.", value, "list", list)
}

// addCapacity adds the capacity by resource class, and by aggregate and class.
func (m *cloudMetrics) addCapacity(ctx context.Context, g gauges, world *placement.World) error {
	units, err := m.store.HeldUnits(ctx)
	if err != nil {
		return err
	}
	held := map[string]int64{}
	for _, of := range units {
		held[of.ResourceClass] += of.Used
	}
	excess := map[string]int64{}
	for _, provider := range world.Filter(placement.ProviderFilter{}) {
		for _, inventory := range provider.Inventories {
			excess[inventory.ResourceClass] += max(0, -inventory.Free())
		}
	}
	for by, prefix := range map[placement.CapacityGrouping]string{placement.CapacityByClass: "",
		placement.CapacityByAggregate: "aggregate_"} {
		rows, err := m.store.Capacity(world, placement.ProviderFilter{}, by, nil,
			page.Request{First: new(maxCloudRows)}, nil)
		if err != nil {
			return err
		}
		for _, row := range rows.Items {
			labels := []string{"resource_class", row.ResourceClass}
			if by == placement.CapacityByAggregate {
				labels = append(labels, "aggregate", row.Group())
			} else {
				g.set("held_units", "Units that held consumers use; they are part of the used ones.",
					float64(held[row.ResourceClass]), labels...)
				g.set("excess_units", "Used units above the capacity of their inventory.",
					float64(excess[row.ResourceClass]), labels...)
			}
			g.set(prefix+"total_units", "Total units of the inventories.", float64(row.Total), labels...)
			g.set(prefix+"reserved_units", "Reserved units of the inventories.", float64(row.Reserved), labels...)
			g.set(prefix+"capacity_units", "Capacity of the inventories, with their allocation ratios.",
				float64(row.Capacity), labels...)
			g.set(prefix+"used_units", "Units that consumers use.", float64(row.Used), labels...)
		}
		list := "classes"
		if by == placement.CapacityByAggregate {
			list = "aggregates"
		}
		g.setIncomplete(list, rows.Total() > len(rows.Items))
	}
	return nil
}

// addFits adds, for each flavor, bounds of how many more consumers fit.
func (m *cloudMetrics) addFits(ctx context.Context, g gauges, flavors []string) error {
	fits, err := graph.FitsNamed(ctx, m.store, flavors)
	if err != nil {
		return err
	}
	for name, fit := range fits {
		g.set("fits_at_least", "Lower bound of the consumers that still fit.", float64(fit.AtLeast), "flavor", name)
		g.set("fits_at_most", "Upper bound of the consumers that still fit.", float64(fit.AtMost), "flavor", name)
	}
	return nil
}

// addFailures adds the number of hosts, the number of hosts whose failure
// leaves consumers without a place, and the number of such consumers for each
// of the maxCloudHosts worst hosts.
func (m *cloudMetrics) addFailures(ctx context.Context, g gauges) error {
	found, unsurvived, err := m.store.Survival(ctx, nil, placement.ProviderFilter{},
		placement.FailingTogether{By: placement.FailureOfHost}, page.Request{First: new(maxCloudHosts)}, nil)
	if err != nil {
		return err
	}
	g.set("failures", "Hosts that can fail.", float64(found.Total()))
	g.set("failures_unsurvived", "Hosts whose consumers do not all fit elsewhere if the host fails.",
		float64(unsurvived))
	for _, failure := range found.Items {
		if len(failure.Unplaced) > 0 {
			g.set("failure_unplaced_consumers", "Consumers that do not fit elsewhere if the host fails.",
				float64(len(failure.Unplaced)), "root", failure.Name())
		}
	}
	g.setIncomplete("failures", unsurvived > maxCloudHosts)
	return nil
}

// addQuota adds the limits of projects with their use.
func (m *cloudMetrics) addQuota(ctx context.Context, g gauges) error {
	limits, isAll, err := m.store.FirstLimits(ctx, maxCloudRows)
	if err != nil {
		return err
	}
	for _, limit := range limits {
		labels := []string{"project", limit.ProjectID, "resource_class",
			limit.ResourceClass, "trait", text.OrEmpty(limit.Trait)}
		g.set("quota_limit_units", "Limit of a project.", float64(limit.Amount), labels...)
		g.set("quota_used_units", "Units that the project uses of its limit.", float64(limit.Used), labels...)
	}
	g.setIncomplete("quota", !isAll)
	return nil
}

// addDrift adds how many resources have metadata that breaks definitions, or keys
// without a definition, of the first maxCloudScan resources by uuid.
func (m *cloudMetrics) addDrift(ctx context.Context, g gauges) error {
	drifted, undefinedIn, broken, undefined := 0, 0, map[[2]string]int{}, map[string]int{}
	scan := resource.ProblemScan{Scan: resource.MaxScan}
	isComplete := false
	for scanned := 0; scanned < maxCloudScan && !isComplete; scanned += scan.Scan {
		found, err := m.store.MetadataProblems(ctx, scan)
		if err != nil {
			return err
		}
		counts, err := found.Counts([]resource.ProblemGrouping{resource.ByNamespace, resource.ByRule}, page.MaxSize)
		if err != nil {
			return err
		}
		for _, count := range counts {
			broken[[2]string{text.OrEmpty(count.Namespace), text.OrEmpty(count.Rule)}] += count.ResourceCount
		}
		for key, number := range found.Undefined {
			undefined[key] += number
		}
		drifted, undefinedIn = drifted+found.ResourceCount(), undefinedIn+found.UndefinedIn
		isComplete, scan.After = found.Complete, found.ScannedTo
	}
	g.set("drifted_resources", "Resources with metadata that breaks its definitions.", float64(drifted))
	g.set("undefined_resources", "Resources with a key that has no definition.", float64(undefinedIn))
	for _, of := range mostOf(broken) {
		g.set("drifted_rule_resources", "Resources with metadata that breaks the rule of the namespace.",
			float64(broken[of]), "namespace", of[0], "rule", access.EnumName(of[1]))
	}
	for _, key := range mostOf(undefined) {
		g.set("undefined_key_resources", "Resources with the key, which has no definition.",
			float64(undefined[key]), "key", key)
	}
	g.setIncomplete("resources", !isComplete)
	g.setIncomplete("drift", len(broken) > maxCloudDrift)
	g.setIncomplete("undefined", len(undefined) > maxCloudDrift)
	return nil
}

// mostOf returns the keys with the highest counts, maxCloudDrift at most.
func mostOf[K comparable](counts map[K]int) []K {
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b K) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
	return keys[:min(len(keys), maxCloudDrift)]
}
