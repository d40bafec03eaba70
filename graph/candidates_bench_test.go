package graph_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// The benchmarks produce a page of candidates with all fields of the reference
// placement API. The executor runs a plan, including the search. For
// comparison, encoding/json encodes structs with the same data.
//
//	go test ./graph -run '^$' -bench 'Candidates' -benchmem
const (
	benchedHosts      = 1200
	benchedCandidates = `{
		allocationCandidates(first: 1000, resources: [{resourceClass: "VCPU", amount: 4}, {resourceClass: "MEMORY_MB", amount: 8192}, {resourceClass: "DISK_GB", amount: 40}],
			requiredAll: ["HW_CPU_X86_AVX2"]) {
			nodes {
				allocations { provider { uuid } resources { resourceClass amount } }
				mappings { suffix providers { uuid } }
			}
			providerSummaries {
				provider { uuid parent { uuid } root { uuid } }
				inventories { resourceClass capacity used }
				traits
			}
		}
	}`
)

// answeredCandidates is the data of the answer for encoding/json.
type answeredCandidates struct {
	AllocationCandidates struct {
		Nodes []struct {
			Allocations []struct {
				Provider  answeredUUID `json:"provider"`
				Resources []struct {
					ResourceClass string `json:"resourceClass"`
					Amount        int64  `json:"amount"`
				} `json:"resources"`
			} `json:"allocations"`
			Mappings []struct {
				Suffix    string         `json:"suffix"`
				Providers []answeredUUID `json:"providers"`
			} `json:"mappings"`
		} `json:"nodes"`
		ProviderSummaries []struct {
			Provider struct {
				UUID   string        `json:"uuid"`
				Parent *answeredUUID `json:"parent"`
				Root   answeredUUID  `json:"root"`
			} `json:"provider"`
			Inventories []struct {
				ResourceClass string `json:"resourceClass"`
				Capacity      int64  `json:"capacity"`
				Used          int64  `json:"used"`
			} `json:"inventories"`
			Traits []string `json:"traits"`
		} `json:"providerSummaries"`
	} `json:"allocationCandidates"`
}

type answeredUUID struct {
	UUID string `json:"uuid"`
}

// BenchmarkCandidatesWriter runs the plan for the page.
func BenchmarkCandidatesWriter(b *testing.B) {
	executor, operation := candidatesToRun(b)
	for b.Loop() {
		executor.Release(executor.Run(storetest.AsAdmin(), operation, 0).Data...)
	}
}

// BenchmarkCandidatesEncodingJSON writes the same bytes with encoding/json into
// a reused buffer.
func BenchmarkCandidatesEncodingJSON(b *testing.B) {
	encode := encodingOf(b, candidatesData(b))
	for b.Loop() {
		encode()
	}
}

// BenchmarkCandidatesWriterByEncodingJSON alternates between both and reports
// the ratio of their median times, which is stable on a busy machine.
func BenchmarkCandidatesWriterByEncodingJSON(b *testing.B) {
	executor, operation := candidatesToRun(b)
	encode := encodingOf(b, candidatesData(b))
	var written, encoded []time.Duration
	for b.Loop() {
		began := time.Now()
		executor.Release(executor.Run(storetest.AsAdmin(), operation, 0).Data...)
		between := time.Now()
		encode()
		written, encoded = append(written, between.Sub(began)), append(encoded, time.Since(between))
	}
	slices.Sort(written)
	slices.Sort(encoded)
	b.ReportMetric(float64(written[len(written)/2])/float64(encoded[len(encoded)/2]), "times-json")
}

// candidatesData returns the data of the answer.
func candidatesData(b *testing.B) []byte {
	b.Helper()
	executor, operation := candidatesToRun(b)
	return bytes.Join(executor.Run(storetest.AsAdmin(), operation, 0).Data, nil)
}

// encodingOf returns a function that encodes the data with encoding/json.
func encodingOf(b *testing.B, data []byte) func() {
	b.Helper()
	var answered answeredCandidates
	if err := json.Unmarshal(data, &answered); err != nil {
		b.Fatal(err)
	}
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	encode := func() {
		buffer.Reset()
		if err := encoder.Encode(answered); err != nil {
			b.Fatal(err)
		}
	}
	if encode(); !bytes.Equal(bytes.TrimSpace(buffer.Bytes()), data) {
		b.Fatalf("encoding/json writes other bytes:\n%.500s\n%.500s", buffer.Bytes(), data)
	}
	return encode
}

// candidatesToRun returns an executor with a world of hosts, and the operation
// that reads candidates.
func candidatesToRun(b *testing.B) (*graph.Executor, *document.Operation) {
	b.Helper()
	s, err := store.Open(b.Context(), store.Options{URL: storetest.SQLite(b), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	content := store.Content{}
	for i := range benchedHosts {
		provider := placement.Provider{UUID: storetest.UUID(i), Name: fmt.Sprint("host ", i)}
		for _, inventory := range []placement.Inventory{
			{ResourceClass: "DISK_GB", Total: 4_000}, {ResourceClass: "MEMORY_MB", Total: 262_144, Reserved: 4_096},
			{ResourceClass: "VCPU", Total: 64},
		} {
			inventory.MinUnit, inventory.MaxUnit, inventory.StepSize, inventory.AllocationRatio = 1, inventory.Total,
				1, 4
			provider.Inventories = append(provider.Inventories, inventory)
		}
		if i == 0 {
			for trait := range 8 {
				content.Traits = append(content.Traits, fmt.Sprintf("CUSTOM_RARE_%02d", trait))
			}
		}
		provider.Traits = append(append(provider.Traits, content.Traits...),
			"COMPUTE_SECURITY_UEFI_SECURE_BOOT", "COMPUTE_VOLUME_MULTI_ATTACH", "HW_CPU_X86_AVX2", "STORAGE_DISK_SSD")
		content.Providers = append(content.Providers, provider)
	}
	if err := s.FillEmpty(storetest.AsAdmin(), content); err != nil {
		b.Fatal(err)
	}
	executor := graph.NewExecutor(&graph.Resolver{Store: s}, slog.New(slog.DiscardHandler))
	operation := executor.Operation(benchedCandidates, nil)
	answer := executor.Run(storetest.AsAdmin(), operation, 0)
	if data := bytes.Join(answer.Data, nil); answer.Errors != nil || bytes.Count(data, []byte(`"mappings"`)) != 1000 {
		b.Fatalf("%v: %.500s", answer.Errors, data)
	}
	return executor, operation
}
