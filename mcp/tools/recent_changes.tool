Tells what changed. Without after: the resources, namespaces and providers that changed last, and a cursor. With that cursor as after: every change since, in order.
- after string 1000 | The cursor of an earlier answer.
- kinds strings 8 | Only changes of these kinds: NAMESPACE, RESOURCE_TYPE, RESOURCE, CAPABILITY, RESOURCE_PROVIDER, TRAIT, RESOURCE_CLASS, CONSUMER. Only with after.
- keys strings 32 | Only changes of things with these names or uuids. Only with after.
- limit integer 1..50 default=10 | Changes at most.
---
query recent_changes($after: String, $kinds: [ChangeKind!], $keys: [String!], $limit: Int!, $has_after: Boolean!) {
  changes(filter: {kinds: $kinds, keys: $keys}, first: $limit, after: $after) @include(if: $has_after) {
    nodes { changedAt kind key what }
    pageInfo { hasNextPage }
    cursor
  }
  now: changes(first: 0) @skip(if: $has_after) { latest }
  resources(orderBy: {field: UPDATED_AT, direction: DESC}, first: $limit) @skip(if: $has_after) { nodes { updatedAt name uuid type { name } } }
  namespaces(orderBy: {field: UPDATED_AT, direction: DESC}, first: $limit) @skip(if: $has_after) { nodes { updatedAt name } }
  resourceProviders(orderBy: {field: UPDATED_AT, direction: DESC}, first: $limit) @skip(if: $has_after) { nodes { updatedAt name uuid } }
}
---
{{with .data.changes}}{{if some .nodes}}Changes, oldest first:{{else}}Nothing changed that you see.{{end}}
{{range .nodes}}- {{.changedAt}} {{.kind}} {{say .key}} {{.what}}
{{end}}{{if .pageInfo.hasNextPage}}There are more. {{end}}Continue after {{say .cursor}}{{end}}{{with .data.now}}Follow with after {{say .latest}}
{{end}}{{with .data.resources}}Resources that changed last:
{{range .nodes}}- {{.updatedAt}} {{say .name}} ({{say .type.name}}, {{.uuid}})
{{end}}{{end}}{{with .data.namespaces}}Namespaces that changed last:
{{range .nodes}}- {{.updatedAt}} {{say .name}}
{{end}}{{end}}{{with .data.resourceProviders}}Providers that changed last:
{{range .nodes}}- {{.updatedAt}} {{say .name}} ({{.uuid}})
{{end}}{{end}}
