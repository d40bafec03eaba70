// Package sync reads a running OpenStack and writes its things to a server: as
// resources, providers, allocations and metadata definitions.
package sync

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/internal/pause"
)

// Cloud is an OpenStack in which the caller is signed in.
type Cloud struct {
	Provider *gophercloud.ProviderClient
	// At is the region, and the endpoints to use in it.
	At gophercloud.EndpointOpts
	// buckets are token buckets by the address of an endpoint. All regions share them.
	buckets *sync.Map
	// contents are the providers with their contents as last read, by uuid. The
	// passes over hosts and over providers share them, one after the other.
	contents map[string]*readProvider
}

// endpoint is a service of the cloud, and the bucket of its requests.
type endpoint struct {
	*gophercloud.ServiceClient
	bucket *rate.Limiter
}

// bucket returns the token bucket of an endpoint.
func (c *Cloud) bucket(address string) *rate.Limiter {
	c.buckets = cmp.Or(c.buckets, new(sync.Map))
	bucket, _ := c.buckets.LoadOrStore(address, rate.NewLimiter(maxRate, maxRate))
	return bucket.(*rate.Limiter)
}

const (
	// tries is how often a request to a busy service is sent at most, and how
	// often a changing list is read at most.
	tries = 5
	// maxRate is the number of requests to an endpoint in a second, after a burst of as
	// many. The first read of 10,000 hosts and 100,000 servers is 140,000 requests.
	maxRate = 300
	// maxConcurrent is the maximum number of concurrent requests to an endpoint.
	maxConcurrent = 8
	// longestWait is the longest time that a busy service may ask for.
	longestWait = time.Minute
)

// offers reports whether the catalogue of the cloud has the service of a kind. It
// does not request the versions of the service, which may be down.
func (c *Cloud) offers(kind Kind) bool {
	provider := *c.Provider
	provider.EndpointLocator = func(of gophercloud.EndpointOpts) (string, error) {
		of.Version = 0
		return c.Provider.EndpointLocator(of)
	}
	_, err := kind.service(&provider, c.At)
	var missing *gophercloud.ErrEndpointNotFound
	return !errors.As(err, &missing)
}

// serviceOf returns the service of a kind, in the kind's version. It waits if
// the service is too busy to list its versions.
func (c *Cloud) serviceOf(ctx context.Context, kind Kind) (*endpoint, error) {
	for try := 1; ; try++ {
		service, err := kind.service(c.Provider, c.At)
		if err == nil {
			service.Microversion = kind.microversion
			return &endpoint{service, c.bucket(service.Endpoint)}, nil
		}
		var answer gophercloud.ErrUnexpectedResponseCode
		isBusy := errors.As(err, &answer) && slices.Contains(busy, answer.Actual)
		if !isBusy || !waitFor(ctx, answer.ResponseHeader, try) {
			return nil, fmt.Errorf("find the service of %s: %w", kind.Name, err)
		}
	}
}

// read returns all things of a kind, and the number of rows that the service
// could not read. If there are such rows, other things can be missing.
func (c *Cloud) read(ctx context.Context, kind Kind,
	progress func(things int)) (things []Thing, unknown int, err error) {
	service, err := c.serviceOf(ctx, kind)
	if err != nil {
		return nil, 0, err
	}
	if things, unknown, err = c.readLists(ctx, service, kind, progress); err != nil || kind.witness == nil {
		return things, unknown, err
	}
	_, down, err := c.readLists(ctx, service, *kind.witness, func(int) {})
	return things, unknown + down, err
}

// readLists returns the things of the lists of a kind, and the number of rows
// that the service could not read.
func (c *Cloud) readLists(ctx context.Context, service *endpoint, kind Kind,
	progress func(things int)) (things []Thing, unknown int, err error) {
	rows, err := readRows(ctx, service, kind, progress)
	if err != nil {
		return nil, 0, err
	}
	join := func(*Thing, row) {}
	if kind.joined != nil {
		joined, err := c.readJoined(ctx, kind.joined)
		if err != nil {
			return nil, 0, err
		}
		join = kind.join(joined)
	}
	for _, row := range rows {
		thing := kind.thing(row)
		if thing.IsUnknown {
			unknown++
			continue
		}
		join(&thing, row)
		things = append(things, thing)
	}
	return things, unknown, nil
}

// readJoined returns the rows of joined lists. A list has none if the catalogue
// lacks its service, or if the service is too old for its microversion.
func (c *Cloud) readJoined(ctx context.Context, kinds []Kind) ([][]row, error) {
	joined := make([][]row, len(kinds))
	for i, kind := range kinds {
		if !c.offers(kind) {
			continue
		}
		service, err := c.serviceOf(ctx, kind)
		if err == nil {
			joined[i], err = readRows(ctx, service, kind, func(int) {})
		}
		if err != nil && !gophercloud.ResponseCodeIs(err, http.StatusNotAcceptable) {
			return nil, err
		}
	}
	return joined, nil
}

// readRows returns the rows of the lists of a kind.
func readRows(ctx context.Context, service *endpoint, kind Kind, progress func(things int)) (all []row, err error) {
	if kind.of != nil {
		return readRowsOf(ctx, service, kind, progress)
	}
	for _, list := range kind.lists {
		rows, err := readList(ctx, service, kind, list, progress)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", kind.Name, err)
		}
		all = append(all, rows...)
	}
	return all, nil
}

// each calls a function for all elements, at most maxConcurrent at the same time,
// until a call fails or ctx ends. It returns the first error of a call, or the
// error of ctx.
func each[T any](ctx context.Context, all []T, do func(ctx context.Context, i int, one T) error) error {
	group, running := errgroup.WithContext(ctx)
	group.SetLimit(maxConcurrent)
	for i, one := range all {
		if running.Err() != nil {
			break
		}
		group.Go(func() error { return do(running, i, one) })
	}
	return cmp.Or(group.Wait(), ctx.Err())
}

// readRowsOf reads the list kind.of, and returns the rows of the separate list of
// each of its rows. It fails if none of the separate lists exists, since the
// service may not have such lists.
func readRowsOf(ctx context.Context, service *endpoint, kind Kind, progress func(things int)) (all []row, err error) {
	owners, err := readRows(ctx, service, *kind.of, func(int) {})
	if err != nil {
		return nil, err
	}
	found := make([][]row, len(owners))
	var unknown atomic.Int64
	err = each(ctx, owners, func(ctx context.Context, i int, owner row) error {
		rows, err := readList(ctx, service, kind, fmt.Sprintf(kind.lists[0], owner.text("id")), progress)
		if gophercloud.ResponseCodeIs(err, http.StatusNotFound) && unknown.Add(1) < int64(len(owners)) {
			return nil // deleted meanwhile
		}
		if err != nil {
			return fmt.Errorf("list %s of %s: %w", kind.Name, owner.text("id"), err)
		}
		for _, one := range rows {
			one["of"] = map[string]any(owner)
		}
		found[i] = rows
		return nil
	})
	return slices.Concat(found...), err
}

// errChanged means that a list changed, so that its next page is unknown.
var errChanged = errors.New("the list changes faster than it can be read")

// readList returns the rows of a list. If the list changes while it is read,
// readList begins again. After the last of its tries it returns errChanged.
func readList(ctx context.Context, service *endpoint, kind Kind, list string,
	progress func(things int)) (rows []row, err error) {
	for range tries {
		rows = nil
		isRead := map[string]bool{}
		for next := service.ServiceURL(list); next != ""; {
			if isRead[next] {
				err = fmt.Errorf("%w: it comes back to %s", errChanged, next)
				break
			}
			isRead[next] = true
			var found []row
			if found, next, err = page(ctx, service, kind, next, rows); err != nil {
				break
			}
			rows = append(rows, found...)
			progress(len(found))
		}
		if !errors.Is(err, errChanged) {
			break
		}
	}
	return rows, err
}

// page returns the rows of a page that the pages before it lack, and the
// address of the next page, "" for the last one. before has the rows of earlier
// pages. If the list changed meanwhile, it returns errChanged.
func page(ctx context.Context, service *endpoint, kind Kind, address string,
	before []row) (rows []row, next string, err error) {
	body, err := get(ctx, service, address, kind.rows)
	if len(before) > 0 && (gophercloud.ResponseCodeIs(err, http.StatusBadRequest) ||
		gophercloud.ResponseCodeIs(err, http.StatusNotFound)) {
		return nil, "", fmt.Errorf("%w: %w", errChanged, err) // the row after which the page begins was deleted
	}
	if err != nil {
		return nil, "", err
	}
	list, ok := body[kind.rows].([]any)
	if !ok {
		return nil, "", fmt.Errorf("%q in the answer of %s is no list", kind.rows, address)
	}
	if body["truncated"] == true {
		return nil, "", fmt.Errorf("the answer of %s ends at list_limit: raise that setting of Keystone", address)
	}
	for _, one := range list {
		object, ok := one.(map[string]any)
		if !ok {
			return nil, "", fmt.Errorf("a row of %s is not an object", address)
		}
		rows = append(rows, object)
	}
	if kind.countsRows {
		return after(address, before, rows)
	}
	next, err = linkOf(body, kind, address, rows)
	return rows, next, err
}

// fullPage is the number of rows from which a page may be full.
const fullPage = 100

// linkOf returns the address of the page after some rows, "" for none. Glance
// names a path, Keystone a link, and the other services have a list of links.
func linkOf(body row, kind Kind, address string, rows []row) (string, error) {
	href := cmp.Or(body.text("next"), body.object("links").text("next"))
	links, isList := body[kind.rows+"_links"].([]any)
	if !isList {
		links, _ = body[strings.TrimSuffix(kind.rows, "s")+"_links"].([]any) // Cinder's types
	}
	for _, link := range links {
		if one, ok := link.(map[string]any); ok && row(one).text("rel") == "next" {
			href = row(one).text("href")
		}
	}
	here, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	if href == "" {
		if !kind.hides || len(rows) < fullPage {
			return "", nil
		}
		query := here.Query()
		query.Set("marker", rows[len(rows)-1].text("id"))
		href = "?" + query.Encode()
	}
	there, err := url.Parse(href)
	if err != nil {
		return "", fmt.Errorf("parse the address of the page after %s: %w", address, err)
	}
	here.RawQuery = there.RawQuery // services behind a proxy name themselves as they see it
	return here.String(), nil
}

// maxInstances is the maximum number of instances of a share: replicas and
// migrations, deleted ones, too.
const maxInstances = 100

// after is page for a list with an offset. Manila counts each instance of a
// share in the offset and in the limit, but a page has the share once. So the
// next page begins within this one, at its last row or before it. If it begins
// with a row that no page had, rows were deleted meanwhile and moved the
// others, and after returns errChanged. A page with one row is the last.
func after(address string, before, rows []row) ([]row, string, error) {
	here, err := url.Parse(address)
	if err != nil {
		return nil, "", err
	}
	query := here.Query()
	offset, _ := strconv.Atoi(query.Get("offset")) // 0 for the first page
	isRead := lists.Set(before, func(one row) string { return one.text("id") })
	if len(before) > 0 &&
		(len(rows) == 0 || !isRead[rows[0].text("id")] || offset > maxInstances*len(before)) {
		return nil, "", errChanged
	}
	next := ""
	if len(rows) > 1 {
		query.Set("offset", strconv.Itoa(offset+len(rows)-1))
		here.RawQuery = query.Encode()
		next = here.String()
	}
	return slices.DeleteFunc(rows, func(one row) bool { return isRead[one.text("id")] }), next, nil
}

// get returns the JSON object at an address, which must have the field. It waits
// for the token bucket, and a few times for a busy service.
func get(ctx context.Context, service *endpoint, address, field string) (body map[string]any, err error) {
	for try := 1; ; try++ {
		if err := service.bucket.Wait(ctx); err != nil {
			return nil, err
		}
		response, err := service.Get(ctx, address, nil,
			&gophercloud.RequestOpts{KeepResponseBody: true, OkCodes: append([]int{http.StatusOK}, busy...)})
		if err != nil {
			return nil, err
		}
		if response.StatusCode == http.StatusOK {
			defer response.Body.Close()
			decoder := json.NewDecoder(response.Body)
			decoder.UseNumber()
			if err := decoder.Decode(&body); err != nil || body[field] != nil {
				return body, err
			}
			return nil, fmt.Errorf("the answer of %s has no %q", address, field)
		}
		_ = response.Body.Close()
		if !waitFor(ctx, response.Header, try) {
			return nil, fmt.Errorf("%s is busy: %s", strings.SplitN(address, "?", 2)[0], response.Status)
		}
	}
}

// busy are the statuses of a service that is busy.
var busy = []int{http.StatusTooManyRequests, http.StatusServiceUnavailable}

// waitFor waits as long as the header of a busy service asks. It reports whether
// to send the request again.
func waitFor(ctx context.Context, header http.Header, try int) bool {
	wait := waitOf(header.Get("Retry-After"), try)
	return try < tries && wait <= longestWait && pause.For(ctx, wait)
}

// waitOf returns the time that a busy service asks for, in seconds or as a date,
// by default try seconds.
func waitOf(retryAfter string, try int) time.Duration {
	if seconds, err := strconv.Atoi(retryAfter); err == nil && seconds >= 0 {
		return time.Duration(seconds) * time.Second
	}
	if date, err := http.ParseTime(retryAfter); err == nil {
		return time.Until(date)
	}
	return time.Duration(try) * time.Second
}
