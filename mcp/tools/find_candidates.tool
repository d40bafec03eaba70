Finds allocation candidates: on which providers a request fits now. Give amounts and traits, or a flavor (or image) whose metadata make the request. It reserves nothing.
- resources amounts 16 | The amounts, such as {"VCPU": 4, "MEMORY_MB": 8192, "DISK_GB": 20}.
- flavor string 36 | The uuid of a flavor, or of another resource, whose metadata make the request. The arguments other than limit do not count then.
- required strings 32 | Traits that the providers must have, all of them.
- forbidden strings 32 | Traits that no provider may have.
- aggregates strings 32 | Only in one of these aggregates, by uuid.
- in_tree string 36 | Only in the tree (host) that holds the provider with this uuid.
- hosts needs 16 inside=requirements | Requirements on the capabilities of the host, such as {"arch": "x86_64", "ssd": "true"}.
- limit integer 1..20 default=5 | Candidates at most.
! resources flavor
---
query find_candidates($resources: [ResourceAmountInput!], $required: [String!], $forbidden: [String!], $aggregates: [UUID!], $in_tree: UUID,
  $hosts: ResourceFilter, $flavor: UUID = "00000000-0000-0000-0000-000000000000", $limit: Int!, $has_flavor: Boolean!) {
  allocationCandidates(resources: $resources, requiredAll: $required, forbidden: $forbidden, memberOf: [{anyOf: $aggregates}], inTree: $in_tree,
    hosts: $hosts, orderBy: BREADTH_FIRST, first: $limit) @skip(if: $has_flavor) { ...Candidates }
  resource(uuid: $flavor) @include(if: $has_flavor) {
    name
    allocationCandidates(orderBy: BREADTH_FIRST, first: $limit) { ...Candidates }
  }
}

fragment Candidates on AllocationCandidateConnection {
  totalCount totalCountIsExact
  nodes { allocations { provider { name uuid } resources { resourceClass amount } } }
}
---
{{define "candidates"}}{{with .}}{{if not .totalCountIsExact}}More than {{end}}{{.totalCount}} candidates{{if some .nodes}}; one of each tree first:{{else}}. Ask why_not with the same arguments.{{end}}
{{range .nodes}}- {{range $i, $of := .allocations}}{{if $i}}; {{end}}{{say .provider.name}} ({{.provider.uuid}}) gives {{amounts .resources "amount"}}{{end}}
{{end}}{{end}}{{end}}{{template "candidates" .data.allocationCandidates}}{{with .data.resource}}{{if .allocationCandidates}}{{say .name}} fits: {{template "candidates" .allocationCandidates}}{{else}}The metadata of {{say .name}} make no request.{{end}}{{else}}{{if .given.flavor}}You see no resource of this uuid.{{end}}{{end}}
