package web

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/cadastre-dev/cadastre/graph"
)

// CheckOrigin returns an error for a text that is not an origin such as
// https://dash.example.org or http://localhost:3000: scheme and host, no path.
func CheckOrigin(origin string) error {
	address, err := url.Parse(origin)
	if err != nil || address.Scheme != "http" && address.Scheme != "https" || address.Host == "" || address.Scheme+"://"+address.Host != origin {
		return fmt.Errorf("%q is not an origin: write it as https://dash.example.org, without a path", origin)
	}
	return nil
}

// crossOrigin answers the pages of allowed origins, and refuses requests that a
// browser sends for pages of other ones.
func crossOrigin(next *transport) http.Handler {
	allowed := next.AllowedOrigins
	protection := http.NewCrossOriginProtection()
	for _, origin := range allowed {
		if err := protection.AddTrustedOrigin(origin); err != nil {
			panic(err) // the caller is to use CheckOrigin
		}
	}
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.refuse(w, r, mediaJSON, refusal{status: http.StatusForbidden, code: graph.CodeForbidden,
			message: "requests from pages of other sites are refused"})
	}))
	protected := protection.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Add("Vary", "Origin")
		if origin := r.Header.Get("Origin"); origin != "" && slices.Contains(allowed, origin) {
			header.Set("Access-Control-Allow-Origin", origin)
			header.Set("Access-Control-Expose-Headers", "Retry-After, X-Request-Id")
			if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
				header.Set("Access-Control-Allow-Methods", "GET, POST")
				header.Set("Access-Control-Allow-Headers", "Accept, Authorization, Content-Type, X-Auth-Token, X-Request-Id")
				header.Set("Access-Control-Max-Age", "600")
				w.WriteHeader(http.StatusNoContent)
				return
			}
		}
		protected.ServeHTTP(w, r)
	})
}
