package demo

import "fmt"

// Greeting returns a text with the addresses of a demo, its tokens and a first
// query.
func Greeting(address string) string {
	return fmt.Sprintf(`
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
