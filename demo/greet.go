package demo

import (
	"fmt"
	"io"
)

// Greet tells where a demo is served, its tokens, and a first thing to ask.
func Greet(to io.Writer, address string) {
	fmt.Fprintf(to, `
Cadastre serves a demo cloud.

  IDE      %[1]s/
  API      %[1]s/graphql
  tokens   %[2]s  %[3]s  %[4]s

Ask where a port on either of two physical networks still fits:

  curl -sG %[1]s/graphql -H 'Authorization: Bearer %[2]s' --data-urlencode 'query=
    { allocationCandidates(resources: [{resourceClass: "SRIOV_NET_VF", amount: 1}],
        requiredAny: ["CUSTOM_PHYSNET_PUBLIC", "CUSTOM_PHYSNET_STORAGE"], first: 3) {
      nodes { allocations { provider { name } resources { resourceClass amount } } } } }'

`, address, AdminToken, MemberToken, ReaderToken)
}
