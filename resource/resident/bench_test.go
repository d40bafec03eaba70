package resident_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/cadastre-dev/cadastre/internal/soak"
	"github.com/cadastre-dev/cadastre/resource/resident"
)

// BenchmarkCounts counts resources with 8 items each: 100,000, or 1,000,000 if
// CADASTRE_TEST_PART is 1. Two of three have the pair key-1 value-0, and each
// has its own value of key-4. It also reports their memory.
func BenchmarkCounts(b *testing.B) {
	count := 100_000
	if soak.Full() {
		count = 1_000_000
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	held := manyResources(count)
	runtime.GC()
	runtime.ReadMemStats(&after)
	items := func(key string) resident.Column { return resident.Column{Kind: resident.OfItem, Key: key} }
	public, frequent := resident.Has(resident.Column{Kind: resident.OfVisibility}, "PUBLIC"),
		resident.Has(items("key-1"), "value-0")
	for name, do := range map[string]func(){
		"count":  func() { held.CountMatching([]resident.Clause{public, frequent}) },
		"keys":   func() { held.CountKeys([]resident.Clause{public}, "", 100) },
		"values": func() { held.CountValues(items("key-0"), []resident.Clause{public}, "", 20) },
		"own":    func() { held.CountValues(items("key-4"), []resident.Clause{public}, "", 20) },
		"explain": func() {
			held.Explain(public, []resident.Clause{frequent, resident.Has(items("key-2"), "value-7")})
		},
		"matching": func() { held.Matching([]resident.Clause{public, frequent}) },
		"with":     func() { held.With([]string{"none"}, manyResources(1)) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				do()
			}
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(count), "B/resource")
			b.ReportMetric(float64(held.Bytes())/float64(count), "reckoned-B/resource")
		})
	}
}

func manyResources(count int) *resident.Resources {
	built := resident.NewBuilder()
	for n := range count {
		number := built.Resource(fmt.Sprintf("00000000-0000-4000-8000-%012d", n), int64(n), int64(n), int64(n))
		built.Value(number, resident.Column{Kind: resident.OfType}, "1")
		built.Value(number, resident.Column{Kind: resident.OfProject}, "demo")
		built.Value(number, resident.Column{Kind: resident.OfVisibility}, "PUBLIC")
		for key := range 8 {
			value := fmt.Sprint("value-", n%500)
			switch {
			case key == 1 && n%3 != 0:
				value = "value-0"
			case key == 4:
				value = fmt.Sprint("own-", n)
			}
			built.Value(number, resident.Column{Kind: resident.OfItem, Key: fmt.Sprint("key-", key)}, value)
		}
	}
	return built.Resources()
}
