Shows a resource, a provider or a consumer in full, by its uuid or its exact name: metadata, capabilities, violations, tags, allocations, inventories, traits, aggregates.
- uuid string 36 also=uuids | The uuid.
- name string 255 | The exact name, such as compute-01 or m1.large.
! uuid name
---
query show($uuid: UUID = "00000000-0000-0000-0000-000000000000", $uuids: [UUID!], $name: String) {
  resources(filter: {uuids: $uuids, name: $name}, first: 3) {
    totalCount
    nodes {
      uuid name projectId visibility description tags
      type { name }
      parent { name }
      children(first: 12) { totalCount nodes { name } }
      metadata { key value }
      metadataReport { items { key violations { message } } }
      capabilities { name value }
      provider { name uuid }
      allocations { resourceClass used provider { name uuid } }
    }
  }
  resourceProviders(filter: {uuids: $uuids, name: $name}, first: 1) {
    nodes {
      uuid name generation traits aggregates
      parent { name uuid }
      root { name uuid }
      children(first: 12) { totalCount nodes { name uuid } }
      inventories { resourceClass total reserved allocationRatio minUnit maxUnit stepSize capacity used free }
      treeCapacity { resourceClass capacity used free }
    }
  }
  consumer(uuid: $uuid) {
    uuid projectId type generation
    allocations { resourceClass used provider { name uuid } }
  }
}
---
{{$data := .data}}{{with .data.resources}}{{range .nodes}}Resource {{say .name}} ({{say .type.name}}, {{.uuid}}, project {{say .projectId}}{{if eq .visibility "PUBLIC"}}, public{{end}}){{if some .description}}: {{say .description}}{{end}}
{{if some .tags}}- tags: {{list .tags}}{{end}}
{{with .parent}}- below {{say .name}}{{end}}
{{if some .children.totalCount}}- above {{.children.totalCount}}: {{list .children.nodes "name"}}{{end}}
{{range .metadata}}- {{say .key}} = {{say .value}}
{{end}}{{with .metadataReport}}{{range .items}}{{$key := .key}}{{range .violations}}- {{say $key}} breaks its definition: {{say .message}}
{{end}}{{end}}{{end}}{{if some .capabilities}}- capabilities: {{range $i, $of := .capabilities}}{{if $i}}, {{end}}{{say .name}} = {{say .value}}{{end}}{{end}}
{{with .provider}}- its provider is {{say .name}} ({{.uuid}}){{end}}
{{range .allocations}}- uses {{.resourceClass}} {{.used}} of {{say .provider.name}} ({{.provider.uuid}})
{{end}}{{end}}{{end}}
{{range .data.resourceProviders.nodes}}Provider {{say .name}} ({{.uuid}}), generation {{.generation}}{{with .parent}}, below {{say .name}} ({{.uuid}}){{end}}
{{range .inventories}}- {{.resourceClass}}: {{.free}} free of {{.capacity}} (total {{.total}}, reserved {{.reserved}}, ratio {{.allocationRatio}}, used {{.used}}), from {{.minUnit}} to {{.maxUnit}} in steps of {{.stepSize}}
{{end}}{{if some .traits}}- traits: {{list .traits}}{{end}}
{{if some .aggregates}}- aggregates: {{list .aggregates}}{{end}}
{{if some .children.totalCount}}- below it {{.children.totalCount}}: {{range $i, $of := .children.nodes}}{{if $i}}, {{end}}{{say .name}} ({{.uuid}}){{end}}
- the whole tree: {{range $i, $of := .treeCapacity}}{{if $i}}, {{end}}{{.resourceClass}} {{.free}} free of {{.capacity}}{{end}}{{end}}
{{end}}{{with .data.consumer}}Consumer {{.uuid}} ({{say .type}}, project {{say .projectId}}), generation {{.generation}}
{{if not (some $data.resources.nodes)}}{{range .allocations}}- uses {{.resourceClass}} {{.used}} of {{say .provider.name}} ({{.provider.uuid}})
{{end}}{{end}}{{end}}
{{if not (some .data.resources.nodes)}}{{if not (some .data.resourceProviders.nodes)}}{{if not .data.consumer}}You see nothing of this name or uuid.{{end}}{{end}}{{end}}
{{if gt (len .data.resources.nodes) 1}}{{.data.resources.totalCount}} resources have this name; name one by its uuid.{{end}}
