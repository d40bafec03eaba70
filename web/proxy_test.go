package web_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/web"
)

// TestTheAddressBehindATrustedProxyIsTheClients rate-limits one client behind a
// proxy, but not another. The server ignores the header of a peer that is not
// trusted.
func TestTheAddressBehindATrustedProxyIsTheClients(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		trusted          []string
		forwarded, other string // X-Forwarded-For of one client and of another
		seen             string // the address in the log
		apart            bool   // the other is another client
	}{
		"a trusted proxy": {[]string{"127.0.0.0/8"}, "192.0.2.1", "192.0.2.2", "192.0.2.1", true},
		"a chain of two": {[]string{"127.0.0.0/8", "10.0.0.0/8"}, "192.0.2.1, 10.1.2.3",
			"192.0.2.2,10.1.2.3", "192.0.2.1", true},
		"what the client invented": {[]string{"127.0.0.0/8"}, "198.51.100.7, 192.0.2.1",
			"198.51.100.8, 192.0.2.1", "192.0.2.1", false},
		"with a port": {[]string{"127.0.0.0/8"}, "192.0.2.1:4711", "192.0.2.1:4712", "192.0.2.1", false},
		"IPv6 in brackets": {[]string{"127.0.0.0/8"}, "[2001:db8::1]:4711",
			"2001:db8:0:1::1", "2001:db8::1", true},
		"one network of IPv6": {[]string{"127.0.0.0/8"}, "2001:db8::1", "2001:db8::2", "2001:db8::1", false},
		"IPv4 within IPv6":    {[]string{"127.0.0.0/8"}, "::ffff:192.0.2.1", "192.0.2.1", "192.0.2.1", false},
		"nothing but proxies": {[]string{"127.0.0.0/8"}, "127.0.0.2", "127.0.0.2", "127.0.0.2", false},
		"no address": {[]string{"127.0.0.0/8"}, "192.0.2.1, unknown",
			"192.0.2.2, unknown", "127.0.0.1", false},
		"another proxy":          {[]string{"10.0.0.0/8"}, "192.0.2.1", "192.0.2.2", "127.0.0.1", false},
		"none":                   {nil, "192.0.2.1", "192.0.2.2", "127.0.0.1", false},
		"one without the header": {[]string{"127.0.0.0/8"}, "", "", "127.0.0.1", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, func(o *web.Options) {
				o.Limits = web.DefaultLimits()
				o.Limits.AddressPoints = 0.001 // a burst of one, and a long time until the next point
				for _, network := range of.trusted {
					o.TrustedProxies = append(o.TrustedProxies, netip.MustParsePrefix(network))
				}
			})
			guess := func(forwarded string) string {
				return s.query("{ __typename }", "X-Auth-Token", "guess", "X-Forwarded-For", forwarded).code()
			}
			guess(of.forwarded) // takes all points of the bucket
			if second := guess(of.forwarded); second != "RATE_LIMITED" {
				t.Errorf("the same client: %s", second)
			}
			if other := guess(of.other); (other == "UNAUTHENTICATED") != of.apart {
				t.Errorf("the other client: %s", other)
			}
			if err := s.stop(); err != nil {
				t.Error(err)
			}
			if log := s.log.String(); !strings.Contains(log, `"address":"`+of.seen+`"`) {
				t.Errorf("the log lacks the address %s:\n%s", of.seen, log)
			}
		})
	}
}
