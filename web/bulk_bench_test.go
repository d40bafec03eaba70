package web_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/cadastre-dev/cadastre/store/storetest"
	"github.com/cadastre-dev/cadastre/web"
)

// BenchmarkLoad sends requests that create 1,000 things each, four at a time:
// hosts with 3 inventories and 5 traits, and resources with 8 metadata items.
// Each thing takes 9 database rows.
func BenchmarkLoad(b *testing.B) {
	for name, database := range map[string]func(testing.TB) string{"sqlite": storetest.SQLite,
		"postgres": storetest.Postgres} {
		for what, item := range map[string]func(n int64) any{"createResourceProviders": loadedHost,
			"createResources": loadedResource} {
			b.Run(name+"/"+what, func(b *testing.B) { benchmarkLoad(b, database(b), what, item) })
		}
	}
}

// rowsOfLoaded is the number of database rows of one thing in BenchmarkLoad.
const rowsOfLoaded = 9

func loadedHost(n int64) any {
	inventory := func(class string, total int, ratio float64) any {
		return map[string]any{"resourceClass": class, "total": total, "allocationRatio": ratio}
	}
	return map[string]any{"name": fmt.Sprintf("host-%09d", n), "uuid": uuid.NewString(),
		"traits": []string{"HW_CPU_X86_AVX2", "HW_CPU_X86_AVX", "STORAGE_DISK_SSD",
			"HW_CPU_X86_SSE41", "HW_CPU_X86_AESNI"},
		"inventories": []any{inventory("VCPU", 64, 16),
			inventory("MEMORY_MB", 262144, 1.5), inventory("DISK_GB", 2000, 1)}}
}

func loadedResource(n int64) any {
	var metadata []any
	for key := range 8 {
		metadata = append(metadata,
			map[string]any{"key": fmt.Sprint("key_", key), "value": fmt.Sprint("value ", (n*int64(key+1))%50)})
	}
	return map[string]any{"type": "OS::Nova::Flavor", "name": fmt.Sprintf("flavor-%09d", n), "uuid": uuid.NewString(),
		"visibility": "PUBLIC", "metadata": metadata}
}

func benchmarkLoad(b *testing.B, database, what string, item func(int64) any) {
	s := startOn(b, database, nil, web.ServeOptions{})
	query := fmt.Sprintf("mutation($input: C%sInput!) { %s(input: $input) { results { errors { code field message } } } }", what[1:], what)
	bodies := make([][]byte, b.N)
	var number int64
	for i := range bodies {
		items := make([]any, 1000)
		for k := range items {
			number++
			items[k] = item(number)
		}
		bodies[i], _ = json.Marshal(map[string]any{"query": query,
			"variables": map[string]any{"input": map[string]any{"items": items, "atomic": false}}})
	}
	b.ResetTimer()
	var senders sync.WaitGroup
	var next atomic.Int64
	for range 4 {
		senders.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(bodies)); i = next.Add(1) - 1 {
				sendLoad(b, s, bodies[i])
			}
		})
	}
	senders.Wait()
	b.ReportMetric(float64(b.N)*1000/b.Elapsed().Seconds(), "things/s")
	b.ReportMetric(float64(b.N)*1000*rowsOfLoaded/b.Elapsed().Seconds(), "rows/s")
}

func sendLoad(b *testing.B, s *server, body []byte) {
	request, err := http.NewRequest(http.MethodPost, s.url+"/graphql", bytes.NewReader(body))
	if err != nil {
		b.Error(err)
		return
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer admin-token")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		b.Error(err)
		return
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || bytes.Contains(text, []byte(`"code"`)) {
		b.Errorf("%d %.300s %v", response.StatusCode, text, err)
	}
}
