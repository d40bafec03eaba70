package web_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/store/storetest"
	"github.com/cadastre-dev/cadastre/web"
)

// definitionFile returns the file of a namespace with a number of properties.
func definitionFile(name string, properties int) string {
	var list []string
	for i := range properties {
		list = append(list, fmt.Sprintf(`"p%d": {"title": "P", "type": "string", "description": "}{ \" %d"}`, i, i))
	}
	return fmt.Sprintf(`{"namespace": %q, "visibility": "public", "owner": "operations", "properties": {%s}}`, name,
		strings.Join(list, ", "))
}

// patient extends the operation time for imports on a busy machine.
func patient(t *testing.T) func(*web.Options) {
	return func(o *web.Options) {
		o.Limits = web.DefaultLimits()
		o.Limits.OperationTime = patience.Of(t, time.Minute)
	}
}

// imported is the answer to an import.
type imported struct {
	Data struct {
		ImportNamespaces *struct {
			Reports []struct {
				Namespace, Outcome string
				Errors             []string
			}
		}
	}
}

func importedOf(t *testing.T, got answer) (of imported) {
	t.Helper()
	if err := json.Unmarshal([]byte(got.body), &of); err != nil || of.Data.ImportNamespaces == nil {
		t.Fatalf("%d %.500s", got.status, got.body)
	}
	return of
}

// namespaces returns the number of namespaces with a prefix.
func (s *server) namespaces(prefix string) int {
	s.t.Helper()
	var got struct {
		Data struct {
			Namespaces struct{ Nodes []struct{ Name string } }
		}
	}
	answer := s.query(`{ namespaces(first: 200) { nodes { name } } }`)
	if err := json.Unmarshal([]byte(answer.body), &got); err != nil {
		s.t.Error(err)
	}
	count := 0
	for _, of := range got.Data.Namespaces.Nodes {
		if strings.HasPrefix(of.Name, prefix) {
			count++
		}
	}
	return count
}

// TestOneBodyIsImportedAsAWhole imports 20,000 properties in one body while
// other clients write and read. No reader sees only some of the namespaces. A
// second import changes nothing.
func TestOneBodyIsImportedAsAWhole(t *testing.T) {
	t.Parallel()
	const count = 20
	var files []string
	for i := range count {
		files = append(files, definitionFile(fmt.Sprintf("Large %d", i), 1000))
	}
	body := strings.Join(files, "\n")
	storetest.EachURL(t, func(t *testing.T, database string) {
		s := startOn(t, database, patient(t), web.ServeOptions{})
		stop, others := make(chan struct{}), sync.WaitGroup{}
		wrote := make([]int, 3)
		for writer := range wrote {
			others.Go(func() {
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					case <-time.After(20 * time.Millisecond):
					}
					if got := s.query(fmt.Sprintf(`mutation { createNamespace(input: {name: "w%d-%d"}) { namespace { id } } }`, writer, n)); got.code() == "" {
						wrote[writer]++
					}
					if seen := s.namespaces("Large"); seen != 0 && seen != count {
						t.Errorf("%d namespaces of %d are visible", seen, count)
					}
				}
			})
		}
		reports := importedOf(t, s.send(http.MethodPost, "/import", body)).Data.ImportNamespaces.Reports
		close(stop)
		others.Wait()
		if len(reports) != count || s.namespaces("Large") != count || wrote[0]+wrote[1]+wrote[2] == 0 {
			t.Fatalf("%d reports, others wrote %v", len(reports), wrote)
		}
		for _, report := range reports {
			if report.Outcome != "CREATED" {
				t.Errorf("%+v", report)
			}
		}
		if again := importedOf(t,
			s.send(http.MethodPost, "/import?variables="+url.QueryEscape(`{"input":{"mode":"OVERWRITE"}}`),
				files[3])); again.Data.ImportNamespaces.Reports[0].Outcome != "UNCHANGED" {
			t.Errorf("imported again: %+v", again)
		}
	})
}

// TestEveryBadFileIsReportedAndNothingStored covers unreadable files and files
// that the database refuses.
func TestEveryBadFileIsReportedAndNothingStored(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, database string) {
		s := startOn(t, database, nil, web.ServeOptions{})
		s.send(http.MethodPost, "/import", `{"namespace": "Kept", "protected": true, "tags": [{"name": "a"}]}`)
		overwrite := "/import?variables=" + url.QueryEscape(`{"input":{"mode":"OVERWRITE"}}`)
		const good, other = `{"namespace": "Good 1"}`, "another document failed"
		for body, want := range map[string][]string{
			good +
				`{"namespace": 1} {"namespace": "Good 2"} {"namespace": "Bad", "tags": {}}`: {other, "$.namespace",
				other, "$.tags"},
			good +
				` {"namespace": "Kept"} {"namespace": "Good 2", "resource_type_associations": []} {"properties" 1}`: {other, other, other, "$"},
			good +
				` {"namespace": "Kept"} {"namespace": "Good 2"}`: {other, "protected", other},
			good + ` {"namespace": "Good 2"} ` +
				good: {other, other, "already defined by documents[0]"},
			good +
				` {"namespace": "Good 2", "properties": {`: {other, "$"},
		} {
			reports := importedOf(t, s.send(http.MethodPost, overwrite, body)).Data.ImportNamespaces.Reports
			if len(reports) != len(want) {
				t.Errorf("%s: %+v", body, reports)
				continue
			}
			for i, report := range reports {
				if report.Outcome != "FAILED" || !strings.Contains(strings.Join(report.Errors, "; "), want[i]) {
					t.Errorf("%s: %+v, want %s", body, report, want[i])
				}
			}
			if stored := s.namespaces("Good"); stored != 0 {
				t.Errorf("%s: %d namespaces were stored", body, stored)
			}
		}
	})
}

// TestABodyThatIsCutOffStoresNothing cuts the connection inside a file and
// between two files.
func TestABodyThatIsCutOffStoresNothing(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, database string) {
		s := startOn(t, database, nil, web.ServeOptions{})
		body := definitionFile("Cut 1", 100) + definitionFile("Cut 2", 100)
		for _, header := range []string{fmt.Sprintf("Content-Length: %d", len(body)), "Transfer-Encoding: chunked"} {
			for _, sent := range []int{len(body) / 4, len(body) / 2} {
				connection, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
				if err != nil {
					t.Fatal(err)
				}
				text := body[:sent]
				if strings.HasPrefix(header, "Transfer") {
					text = fmt.Sprintf("%x\r\n%s\r\n", sent, text)
				}
				_, err = fmt.Fprintf(connection,
					"POST /import HTTP/1.1\r\nHost: localhost\r\nX-Auth-Token: admin-token\r\nContent-Type: application/json\r\n%s\r\n\r\n%s", header, text)
				if err := errors.Join(err, connection.(*net.TCPConn).CloseWrite()); err != nil {
					t.Fatal(err)
				}
				answered, err := io.ReadAll(connection)
				if err != nil || !strings.HasPrefix(string(answered), "HTTP/1.1 400") || s.namespaces("Cut") != 0 {
					t.Errorf("%s, %d bytes: %.200s %v, %d stored", header, sent, answered, err, s.namespaces("Cut"))
				}
				_ = connection.Close()
			}
		}
	})
}

// TestWhatIsNoImport checks the bounds of the two paths, and that they run no
// other operation.
func TestWhatIsNoImport(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	file := definitionFile("N", 1)
	query := func(text string) string { return "/import?query=" + url.QueryEscape(text) }
	for name, of := range map[string]struct {
		path, body string
		headers    []string
		status     int
		code       string
	}{
		"a reader":     {"/import", file, []string{"X-Auth-Token", "reader-token"}, 200, "FORBIDDEN"},
		"nobody":       {"/import", file, []string{"X-Auth-Token", ""}, 401, "UNAUTHENTICATED"},
		"no JSON":      {"/import", file, []string{"Content-Type", "text/plain"}, 415, "BAD_REQUEST"},
		"another page": {"/import", file, []string{"Origin", "https://evil.example"}, 403, "FORBIDDEN"},
		"documents twice": {"/import?variables=" + url.QueryEscape(`{"input":{"documents":[]}}`), file, nil, 400,
			"BAD_REQUEST"},
		"no input": {"/import?variables=" + url.QueryEscape(`{"input":1}`), file, nil, 400, "BAD_REQUEST"},
		"another operation": {query(`mutation { createNamespace(input: {name: "N"}) { namespace { id } } }`), file,
			nil, 400, "BAD_REQUEST"},
		"another field": {query(`mutation($input: ImportNamespacesInput!) { importNamespaces(input: $input) { reports { outcome } } deleteNamespace(input: {name: "N"}) { namespace { id } } }`), file, nil, 400, "BAD_REQUEST"},
		"a fragment":    {query(`mutation { ...F } fragment F on Mutation { createNamespace(input: {name: "N"}) { namespace { id } } }`), file, nil, 400, "BAD_REQUEST"},
		"an unknown argument": {"/import?variables=" + url.QueryEscape(`{"input":{"modes":"SKIP"}}`), file,
			nil, 200, "GRAPHQL_VALIDATION_FAILED"},
	} {
		if got := s.send(http.MethodPost, of.path, of.body, of.headers...); got.status != of.status ||
			got.code() != of.code {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if s.namespaces("N") != 0 {
		t.Error("something was stored")
	}
	request, err := http.NewRequest(http.MethodPost, s.url+"/import", io.LimitReader(spaces{}, 64<<20+1)) // streamed
	if err != nil {
		t.Fatal(err)
	}
	request.Header = http.Header{"X-Auth-Token": {"admin-token"}, "Content-Type": {"application/json"}}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if _ = response.Body.Close(); response.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("65 MiB: %d", response.StatusCode)
	}
	for path, status := range map[string]int{"/export": 400, "/export?name=a&name=b": 400,
		"/export?name=a&portable=2": 400, "/export?name=None": 200} {
		if got := s.send(http.MethodGet, path, ""); got.status != status || got.code() == "" {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
}

// TestFilesTakeRoom checks that an import reserves the memory for its file
// before the server reads it.
func TestFilesTakeRoom(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *web.Options) { o.Memory = 1 << 30 })
	connection, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	_, err = io.WriteString(connection,
		"POST /import HTTP/1.1\r\nHost: localhost\r\nX-Auth-Token: admin-token\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{")
	if err != nil {
		t.Fatal(err)
	}
	if !patience.Until(t, 10*time.Second, func() bool {
		return s.metric("cadastre_body_bytes_in_use ") == 24_000_000
	}) {
		t.Errorf("a file of a megabyte takes %.0f bytes", s.metric("cadastre_body_bytes_in_use "))
	}
}

// spaces is endless white space.
type spaces struct{}

func (spaces) Read(into []byte) (int, error) {
	for i := range into {
		into[i] = ' '
	}
	return len(into), nil
}

// TestAnImportHasAQueryOfItsOwn imports with a custom query and other
// variables, as a dry run and with an idempotency key.
func TestAnImportHasAQueryOfItsOwn(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *web.Options) { o.Profile = web.Locked })
	parameters := url.Values{
		"query":     {`mutation M($input: ImportNamespacesInput!, $first: Int) { importNamespaces(input: $input, problems: {first: $first}) { reports { outcome } problems { complete } } }`},
		"variables": {`{"input": {"dryRun": true}, "first": 3}`},
	}
	const tried = `{"data":{"importNamespaces":{"reports":[{"outcome":"CREATED"}],"problems":{"complete":true}}}`
	if got := s.send(http.MethodPost, "/import?"+parameters.Encode(),
		`{"namespace": "N"}`); !strings.HasPrefix(got.body, tried) || s.namespaces("N") != 0 {
		t.Errorf("a dry run: %s", got.body)
	}
	for range 2 {
		if got := importedOf(t, s.send(http.MethodPost, "/import", `{"namespace": "N"}`, "Idempotency-Key",
			"k")); got.Data.ImportNamespaces.Reports[0].Outcome != "CREATED" {
			t.Errorf("under a key: %+v", got)
		}
	}
	exported := s.send(http.MethodGet, "/export?name=N&portable=true", "")
	if !strings.Contains(exported.body,
		`{\n    \"namespace\": \"N\",\n    \"visibility\": \"public\",\n    \"protected\": false\n}\n`) {
		t.Errorf("exported: %s", exported.body)
	}
}
