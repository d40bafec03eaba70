Sums the capacity of the providers: how much of each resource class is there, used and free, in all or by aggregate, trait or tree (host).
- resource_classes strings 32 | Only these classes, such as ["VCPU", "MEMORY_MB"].
- group_by enum 0 one=RESOURCE_CLASS,AGGREGATE,TRAIT,ROOT default=RESOURCE_CLASS | One row for each class, or for each class and aggregate, trait or root of a tree.
- required strings 32 | Only providers with all of these traits.
- in_tree string 36 | Only providers of the tree that holds the provider with this uuid.
- aggregates strings 32 | Only providers in one of these aggregates, by uuid.
- limit integer 1..50 default=20 | Rows at most.
- after string 1000 | The cursor of the page before.
---
query capacity($resource_classes: [String!], $group_by: CapacityGrouping!, $required: [String!], $in_tree: UUID, $aggregates: [UUID!],
  $limit: Int!, $after: String) {
  capacity(filter: {requiredAll: $required, inTree: $in_tree, memberOf: [{anyOf: $aggregates}]}, groupBy: $group_by,
    resourceClasses: $resource_classes, first: $limit, after: $after) {
    totalCount
    nodes { resourceClass aggregate trait root { name uuid } capacity used free providers }
    pageInfo { hasNextPage endCursor }
  }
}
---
{{$by := .given.group_by}}{{with .data.capacity}}{{if some .nodes}}Free amounts:{{else}}No provider has an inventory like this.{{end}}
{{range .nodes}}- {{if eq $by "AGGREGATE"}}aggregate {{say .aggregate}}, {{end}}{{if eq $by "TRAIT"}}trait {{say .trait}}, {{end}}{{with .root}}{{say .name}} ({{.uuid}}), {{end}}{{.resourceClass}}: {{.free}} free of {{.capacity}}, {{.used}} used, on {{.providers}} providers
{{end}}{{if .pageInfo.hasNextPage}}There are {{.totalCount}} rows in all: after {{say .pageInfo.endCursor}}{{end}}{{end}}
