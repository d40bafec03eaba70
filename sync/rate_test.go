package sync_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/cadastre-dev/cadastre/sync"
)

// timed answers lists of a row in each page, and keeps the times of requests by
// host. Every tenth request is answered that the service is busy.
type timed struct {
	pages int
	times map[string][]time.Time
}

// RoundTrip answers a request.
func (s *timed) RoundTrip(r *http.Request) (*http.Response, error) {
	host := r.URL.Host
	s.times[host] = append(s.times[host], time.Now())
	answer := &http.Response{Request: r, Header: http.Header{}, StatusCode: http.StatusOK}
	if len(s.times[host])%10 == 0 {
		answer.StatusCode = http.StatusTooManyRequests
		answer.Header.Set("Retry-After", "0")
	}
	page := 0
	_, _ = fmt.Sscan(r.URL.Query().Get("marker"), &page)
	next := ""
	if page++; page < s.pages {
		next = fmt.Sprintf(`{"rel": "next", "href": "http://inside/?marker=%d"}`, page)
	}
	name := "flavors"
	if strings.Contains(r.URL.Path, "types") {
		name = "volume_types"
	}
	answer.Body = io.NopCloser(strings.NewReader(fmt.Sprintf(`{%q: [{"id": "%d", "name": "a"}], "%s_links": [%s]}`,
		name, page, name, next)))
	return answer, nil
}

// TestRequestsToAServiceHaveARate reads long lists of two services and two regions, with
// a clock that advances only while all wait.
func TestRequestsToAServiceHaveARate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &timed{pages: 3 * sync.MaxRate, times: map[string][]time.Time{}}
		provider := &gophercloud.ProviderClient{HTTPClient: http.Client{Transport: s},
			EndpointLocator: func(of gophercloud.EndpointOpts) (string, error) {
				return "http://" + of.Type + "/", nil
			}}
		cloud := &sync.Cloud{Provider: provider}
		kinds, _ := sync.Kinds([]string{"flavors", "volume_types"})
		for _, region := range []string{"one", "two"} {
			for _, kind := range kinds {
				if things, err := cloud.In(region).Read(t.Context(), kind); err != nil || things != s.pages {
					t.Fatalf("%s: %d things, %v", kind.Name, things, err)
				}
			}
		}
		if len(s.times) != 2 {
			t.Errorf("requests to %v, want two services", s.times)
		}
		for host, times := range s.times {
			for i := range times[2*sync.MaxRate:] {
				if took := times[i+2*sync.MaxRate].Sub(times[i]); took < time.Second {
					t.Fatalf("%s: %d requests in %v", host, 2*sync.MaxRate+1, took)
				}
			}
			if took := times[sync.MaxRate-1].Sub(times[0]); took > 0 {
				t.Errorf("%s: the first %d requests took %v", host, sync.MaxRate, took)
			}
		}
	})
}
