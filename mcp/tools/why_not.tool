Explains why a request has no or few allocation candidates: how many providers each constraint eliminates, and which trees almost fit. Takes the arguments of find_candidates.
- resources amounts 16 | The amounts, such as {"VCPU": 4, "MEMORY_MB": 8192, "DISK_GB": 20}.
- flavor string 36 | The uuid of a flavor, or of another resource, whose metadata make the request. The other arguments do not count then.
- required strings 32 | Traits that the providers must have, all of them.
- forbidden strings 32 | Traits that no provider may have.
- aggregates strings 32 | Only in one of these aggregates, by uuid.
- in_tree string 36 | Only in the tree that holds the provider with this uuid: why does this host not fit?
- hosts needs 16 inside=requirements | Requirements on the capabilities of the host, such as {"arch": "x86_64", "ssd": "true"}.
! resources flavor
---
query why_not($resources: [ResourceAmountInput!], $required: [String!], $forbidden: [String!], $aggregates: [UUID!], $in_tree: UUID,
  $hosts: ResourceFilter, $flavor: UUID = "00000000-0000-0000-0000-000000000000", $has_flavor: Boolean!) {
  allocationCandidates(resources: $resources, requiredAll: $required, forbidden: $forbidden, memberOf: [{anyOf: $aggregates}], inTree: $in_tree,
    hosts: $hosts, first: 0) @skip(if: $has_flavor) { ...Explanation }
  resource(uuid: $flavor) @include(if: $has_flavor) {
    name
    allocationCandidates(first: 0) { ...Explanation }
  }
}

fragment Explanation on AllocationCandidateConnection {
  totalCount totalCountIsExact
  explain {
    considered
    steps { constraint eliminated remaining }
    nearest { provider { name uuid } missing { resourceClass short } traits }
  }
}
---
{{define "explanation"}}{{with .}}{{if not .totalCountIsExact}}More than {{end}}{{.totalCount}} candidates.
{{with .explain}}{{.considered}} providers considered:
{{range .steps}}- {{say .constraint}}: {{.eliminated}} eliminated, {{.remaining}} left
{{end}}{{range .nearest}}- {{say .provider.name}} ({{.provider.uuid}}) almost fits{{if some .missing}}; it lacks {{amounts .missing "short"}}{{end}}{{if some .traits}}; it lacks the traits {{list .traits}}{{end}}
{{end}}{{end}}{{end}}{{end}}{{template "explanation" .data.allocationCandidates}}{{with .data.resource}}{{if .allocationCandidates}}{{say .name}}: {{template "explanation" .allocationCandidates}}{{else}}The metadata of {{say .name}} make no request.{{end}}{{else}}{{if .given.flavor}}You see no resource of this uuid.{{end}}{{end}}
