package web

import (
	"net/http"
	"net/netip"
	"strings"
)

// clientAddress is where a request came from, without the port: the peer or,
// where that is a proxy that is trusted, the last address before it in
// X-Forwarded-For that is none. What stands before that one anybody could have
// written.
func clientAddress(r *http.Request, trusted []netip.Prefix) string {
	peer, ok := addressIn(r.RemoteAddr)
	if !ok {
		return r.RemoteAddr
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && isWithin(peer, trusted); i-- {
		hop, ok := addressIn(strings.TrimSpace(hops[i]))
		if !ok {
			break
		}
		peer = hop
	}
	return peer.String()
}

// addressIn reads an address, with or without a port.
func addressIn(text string) (netip.Addr, bool) {
	ip, err := netip.ParseAddr(strings.Trim(text, "[]"))
	if err != nil {
		with, err := netip.ParseAddrPort(text)
		if err != nil {
			return ip, false
		}
		ip = with.Addr()
	}
	return ip.Unmap().WithZone(""), true
}

func isWithin(ip netip.Addr, networks []netip.Prefix) bool {
	for _, network := range networks {
		if network.Contains(ip) {
			return true
		}
	}
	return false
}

// neighbourhood is the key of an address's bucket: an IPv4 address, or the /64 of
// an IPv6 address, which one client has to itself.
func neighbourhood(address string) string {
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
