Finds resources (images, flavors, volumes, shares, instances, hosts and all other types) by conditions that must all hold. Returns names, uuids, types and projects; show has the rest.
- type string 255 also=types | Only of this type, such as OS::Nova::Flavor or physical:host.
- name string 255 | With exactly this name.
- name_contains string 255 | With this text in the name, ignoring case.
- search string 200 | With this text in the name, the description or a value of metadata, ignoring case.
- project string 255 | Of this project.
- tags tags 16 | With all of these tags.
- metadata pairs 16 | With all of these keys and values of metadata, compared exactly.
- requirements needs 16 | Meeting these requirements on capabilities, in the syntax of extra specs, such as {"vcpus": ">= 64", "cpu_info:features": "<all-in> avx2 aes"}.
- ancestor string 36 | Below the resource with this uuid, at any depth.
- limit integer 1..50 default=10 | Resources at most.
- after string 1000 | The cursor of the page before.
---
query find_resources($types: [String!], $name: String, $name_contains: String, $search: String, $project: String, $tags: [TagFilter!],
  $metadata: [KeyValueInput!], $requirements: [RequirementInput!], $ancestor: UUID, $limit: Int!, $after: String) {
  resources(filter: {types: $types, name: $name, nameContains: $name_contains, search: $search, projectId: $project, tags: $tags,
    metadata: $metadata, requirements: $requirements, ancestor: $ancestor}, first: $limit, after: $after) {
    totalCount
    nodes { uuid name projectId visibility description tags type { name } }
    pageInfo { hasNextPage endCursor }
  }
}
---
{{with .data.resources}}{{.totalCount}} resources match{{if some .nodes}}:{{else}}. Ask explain_resources with the same conditions which of them leaves none.{{end}}
{{range .nodes}}- {{say .name}} ({{say .type.name}}, {{.uuid}}, project {{say .projectId}}{{if eq .visibility "PUBLIC"}}, public{{end}}){{if some .description}}: {{say .description}}{{end}}{{if some .tags}} Tags: {{list .tags}}.{{end}}
{{end}}{{if .pageInfo.hasNextPage}}There are more: after {{say .pageInfo.endCursor}}{{end}}{{end}}
