// Package sync reads a running OpenStack, and writes its things as resources of
// a server by syncs.
package sync

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/cadastre-dev/cadastre/internal/pause"
)

// Cloud is an OpenStack in which the caller is signed in.
type Cloud struct {
	Provider *gophercloud.ProviderClient
	Region   string
}

const (
	// tries is how often a request is sent to a service that is busy.
	tries = 5
	// longestWait is the longest time that a busy service may ask for.
	longestWait = time.Minute
	// fullPage is the number of rows of a full page, as the lists ask for.
	fullPage = 1000
)

// read returns all things of a kind.
func (c *Cloud) read(ctx context.Context, kind Kind, progress func(things int)) (things []Thing, err error) {
	service, err := kind.service(c.Provider, gophercloud.EndpointOpts{Region: c.Region})
	if err != nil {
		return nil, fmt.Errorf("find the service of %s: %w", kind.Name, err)
	}
	service.Microversion = kind.microversion
	for _, list := range kind.lists {
		for next := service.ServiceURL(list); next != ""; {
			rows, link, err := page(ctx, service, kind, next)
			if err != nil {
				return nil, fmt.Errorf("list %s: %w", kind.Name, err)
			}
			for _, row := range rows {
				things = append(things, kind.thing(row))
			}
			progress(len(rows))
			next = link
		}
	}
	return things, nil
}

// page returns a page of a list, and the address of the next one.
func page(ctx context.Context, service *gophercloud.ServiceClient, kind Kind, address string) (rows []row, next string, err error) {
	body, err := get(ctx, service, address)
	if err != nil {
		return nil, "", err
	}
	list, ok := body[kind.rows].([]any)
	if !ok {
		return nil, "", fmt.Errorf("the answer of %s has no list %q", address, kind.rows)
	}
	for _, one := range list {
		object, ok := one.(map[string]any)
		if !ok {
			return nil, "", fmt.Errorf("a row of %s is no object", address)
		}
		rows = append(rows, object)
	}
	next, err = nextOf(body, kind, address, len(rows))
	return rows, next, err
}

// nextOf returns the address of the page after one with some rows. Manila counts
// rows, Glance names a path, the other services name a link.
func nextOf(body map[string]any, kind Kind, address string, rows int) (string, error) {
	if kind.countsRows {
		return after(address, rows)
	}
	href := row(body).text("next")
	links, _ := body[kind.rows+"_links"].([]any)
	for _, link := range links {
		if one, ok := link.(map[string]any); ok && row(one).text("rel") == "next" {
			href = row(one).text("href")
		}
	}
	if href == "" {
		return "", nil
	}
	here, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	there, err := url.Parse(href)
	if err != nil {
		return "", fmt.Errorf("the next page of %s: %w", address, err)
	}
	here.RawQuery = there.RawQuery // services behind a proxy name themselves as they see it
	if here.String() == address {
		return "", fmt.Errorf("the next page of %s is the page itself", address)
	}
	return here.String(), nil
}

// after returns the address of the page that begins after some more rows.
func after(address string, rows int) (string, error) {
	if rows < fullPage {
		return "", nil
	}
	here, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	query := here.Query()
	offset, _ := strconv.Atoi(query.Get("offset")) // 0 on the first page
	query.Set("offset", strconv.Itoa(offset+rows))
	here.RawQuery = query.Encode()
	return here.String(), nil
}

// get requests a page. It waits for a service that is busy.
func get(ctx context.Context, service *gophercloud.ServiceClient, address string) (body map[string]any, err error) {
	for try := 1; ; try++ {
		response, err := service.Get(ctx, address, nil, &gophercloud.RequestOpts{KeepResponseBody: true, OkCodes: []int{200, 429, 503}})
		if err != nil {
			return nil, err
		}
		if response.StatusCode == http.StatusOK {
			defer response.Body.Close()
			decoder := json.NewDecoder(response.Body)
			decoder.UseNumber()
			return body, decoder.Decode(&body)
		}
		_ = response.Body.Close()
		wait := waitOf(response.Header.Get("Retry-After"), try)
		if try == tries || wait > longestWait || !pause.For(ctx, wait) {
			return nil, fmt.Errorf("%s is busy: %s", strings.SplitN(address, "?", 2)[0], response.Status)
		}
	}
}

// waitOf returns the time that a busy service asks for.
func waitOf(retryAfter string, try int) time.Duration {
	if seconds, err := strconv.Atoi(retryAfter); err == nil && seconds >= 0 {
		return time.Duration(seconds) * time.Second
	}
	return time.Duration(try) * time.Second
}
