package web

import (
	"net/http"
	"net/netip"
	"strings"
)

// clientAddress returns the address of a request, without the port. This is the
// peer's address or, if the peer is a trusted proxy, the last address in
// X-Forwarded-For that is not a trusted proxy. The addresses before it could be
// forged.
func clientAddress(r *http.Request, trusted []netip.Prefix) string {
	peer, ok := parseAddress(r.RemoteAddr)
	if !ok {
		return r.RemoteAddr
	}
	if !isWithin(peer, trusted) {
		return peer.String()
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && isWithin(peer, trusted); i-- {
		hop, ok := parseAddress(strings.TrimSpace(hops[i]))
		if !ok {
			break
		}
		peer = hop
	}
	return peer.String()
}

// parseAddress parses an address with or without a port.
func parseAddress(text string) (netip.Addr, bool) {
	pair, err := netip.ParseAddrPort(text)
	ip := pair.Addr()
	if err != nil {
		ip, err = netip.ParseAddr(strings.Trim(text, "[]"))
	}
	return ip.Unmap().WithZone(""), err == nil
}

func isWithin(ip netip.Addr, networks []netip.Prefix) bool {
	for _, network := range networks {
		if network.Contains(ip) {
			return true
		}
	}
	return false
}

// rateLimitKey returns the key of an address's bucket: an IPv4 address, or the
// /64 of an IPv6 address because one client has all of a /64.
func rateLimitKey(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil || ip.Is4() {
		return address
	}
	prefix, err := ip.Prefix(64)
	if err != nil {
		return address
	}
	return prefix.String()
}
