package client_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/client/optional"
	"github.com/cadastre-dev/cadastre/demo"
	"github.com/cadastre-dev/cadastre/demo/demotest"
	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// resourceChanged is an event of the subscription followed.
type resourceChanged struct {
	ResourceChanged struct{ Change struct{ What, Key string } }
}

const followed = `subscription($after: String) { resourceChanged(after: $after) { cursor change { what key } } }`

// TestFollowMissesNothing follows through a proxy that keeps cutting all
// connections while another client writes. Each change must come once, in
// order.
func TestFollowMissesNothing(t *testing.T) {
	t.Parallel()
	address := demotest.Serve(t)
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(at)
	}, FlushInterval: -1})
	t.Cleanup(proxy.Close)
	writer, reader := client.New(address, client.WithToken(demo.AdminToken)),
		client.New(proxy.URL, client.WithToken(demo.ReaderToken))
	latest, err := client.LatestChange(t.Context(), writer, nil)
	if err != nil {
		t.Fatal(err)
	}
	const writes = 60
	var want, got []string
	for n := range writes {
		want = append(want, "CREATED "+storetest.UUID(n))
	}
	ctx, stop := context.WithTimeout(t.Context(), patience.Of(t, 30*time.Second))
	defer stop()
	go func() {
		for n := range writes {
			uuid := storetest.UUID(n)
			_, err := client.CreateResource(ctx, writer,
				&client.CreateResourceInput{Uuid: optional.Value(uuid), Type: "physical:host",
					Name: fmt.Sprint("followed ", n), Visibility: optional.Value(client.VisibilityPublic)})
			if err != nil {
				t.Error(err)
			}
			if n%4 == 3 {
				proxy.CloseClientConnections()
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	for event, err := range client.Follow[resourceChanged](ctx, reader, followed,
		map[string]any{"after": latest.Changes.Latest}) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, event.ResourceChanged.Change.What+" "+
			event.ResourceChanged.Change.Key); len(got) == writes {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("followed %v", got)
	}
}

// TestFollowMissesNothingBeforeItsFirstEvent cuts a stream without a cursor
// before its first event, and makes a change before the next stream.
func TestFollowMissesNothingBeforeItsFirstEvent(t *testing.T) {
	t.Parallel()
	address := demotest.Serve(t)
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	writer := client.New(address, client.WithToken(demo.AdminToken))
	streams := 0
	behind := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(at) }, FlushInterval: -1}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept") == "text/event-stream" {
			if streams++; streams == 1 {
				w.Header().Set("Content-Type", "text/event-stream")
				return
			}
			_, err := client.CreateResource(r.Context(), writer, &client.CreateResourceInput{
				Type: "physical:host", Name: "between", Visibility: optional.Value(client.VisibilityPublic)})
			if err != nil {
				t.Error(err)
			}
		}
		behind.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	ctx, stop := context.WithTimeout(t.Context(), patience.Of(t, 10*time.Second))
	defer stop()
	reader := client.New(proxy.URL, client.WithToken(demo.ReaderToken))
	for event, err := range client.ResourceChanges(ctx, reader, nil, nil) {
		if err != nil || event.Resource.Name != "between" {
			t.Errorf("%v, %v", event, err)
		}
		return
	}
	t.Error("the change was missed")
}

// TestFollowSkipsOtherEvents follows a stream with events that clients must
// ignore.
func TestFollowSkipsOtherEvents(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "event: ping\ndata: 1\n\ndata: 2\n\nevent: next\n\nevent: next\n"+
			"data: {\"data\": {\"resourceChanged\":\ndata: {\"cursor\": \"c\", \"change\": {\"key\": \"k\"}}}}\n\n")
	}))
	t.Cleanup(server.Close)
	ctx, stop := context.WithTimeout(t.Context(), patience.Of(t, 10*time.Second))
	defer stop()
	for event, err := range client.Follow[resourceChanged](ctx, client.New(server.URL), followed,
		map[string]any{"after": "a"}) {
		if err != nil || event.ResourceChanged.Change.Key != "k" {
			t.Errorf("%v, %v", event, err)
		}
		return
	}
	t.Error("the event was missed")
}

// TestFollowEndsWhereItIsRefused follows without a token, with an invalid
// document, without a server, and until its context ends.
func TestFollowEndsWhereItIsRefused(t *testing.T) {
	t.Parallel()
	address := demotest.Serve(t)
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "<html>Sign in</html>")
	}))
	t.Cleanup(page.Close)
	soon, stop := context.WithTimeout(t.Context(), patience.Of(t, 20*time.Second))
	defer stop()
	for name, of := range map[string]struct {
		server   *client.Client
		document string
		code     client.ErrorCode
	}{
		"nobody": {client.New(address), followed, client.Unauthenticated},
		"no cursor": {client.New(address, client.WithToken(demo.ReaderToken)),
			`subscription { resourceChanged(after: "x") { cursor } }`, client.BadUserInput},
		"no field": {client.New(address, client.WithToken(demo.ReaderToken)),
			`subscription { x }`, client.ValidationFailed},
		"no server":  {client.New("127.0.0.1:1"), followed, ""},
		"no stream":  {client.New(page.URL), followed, ""},
		"no address": {client.New("ftp://x"), followed, ""},
	} {
		events, failed := 0, error(nil)
		for _, err := range client.Follow[resourceChanged](soon, of.server, of.document, nil) {
			events, failed = events+1, err
		}
		if events != 1 || failed == nil || client.Code(failed) != of.code {
			t.Errorf("%s: %d events, %v", name, events, failed)
		}
	}
	ctx, stop := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer stop()
	for _, err := range client.Follow[resourceChanged](ctx,
		client.New(address, client.WithToken(demo.ReaderToken)), followed, nil) {
		t.Errorf("an event or an error: %v", err)
	}
}

// TestCandidatesAreFollowed follows the candidates for a request: the current
// ones, and new ones after their cursor once a host is full.
func TestCandidatesAreFollowed(t *testing.T) {
	t.Parallel()
	server := client.New(demotest.Serve(t), client.WithToken(demo.AdminToken))
	ctx, stop := context.WithTimeout(t.Context(), patience.Of(t, 30*time.Second))
	defer stop()
	few := 3
	request := client.CandidateRequest{Resources: []*client.ResourceAmountInput{{ResourceClass: "VCPU", Amount: 1}},
		First: &few}
	var first *client.CandidateChange
	for event, err := range client.CandidateChanges(ctx, server, request, nil) {
		if err != nil || len(event.AllocationCandidates.Nodes) != few || event.Cursor == "" {
			t.Fatalf("%v, %v", event, err)
		}
		first = event
		break
	}
	gone := first.AllocationCandidates.Nodes[0].Allocations[0].Provider
	if _, err := client.SetProviderTraits(ctx, server,
		&client.SetProviderTraitsInput{Provider: gone.Uuid, Traits: []string{"COMPUTE_STATUS_DISABLED"}}); err != nil {
		t.Fatal(err)
	}
	request.Forbidden = []string{"COMPUTE_STATUS_DISABLED"}
	for event, err := range client.CandidateChanges(ctx, server, request, &first.Cursor) {
		if err != nil || event.AllocationCandidates.Nodes[0].Allocations[0].Provider.Uuid == gone.Uuid {
			t.Fatalf("%v, %v", event, err)
		}
		break
	}
	request.Forbidden = []string{"NONE"}
	for event, err := range client.CandidateChanges(ctx, server, request, nil) {
		if client.Code(err) != client.BadUserInput {
			t.Errorf("%v, %v", event, err)
		}
	}
}
