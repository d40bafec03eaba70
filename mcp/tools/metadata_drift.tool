Finds drift: resources whose metadata break the definitions that apply to them now, with the broken rules.
- type string 255 also=types | Only resources of this type.
- namespace string 80 | Only where a definition of this namespace is broken.
- key string 255 | Only of this metadata key.
- rule string 40 | Only of this rule, such as ENUM, TYPE, MINIMUM, MAXIMUM or PATTERN.
- limit integer 1..50 default=15 | Resources at most.
- after string 1000 | The cursor of the page before.
---
query metadata_drift($types: [String!], $namespace: String, $key: String, $rule: ViolationRule, $limit: Int!, $after: String) {
  metadataProblems(filter: {namespace: $namespace, key: $key, rule: $rule, resources: {types: $types}}, first: $limit, after: $after) {
    scanned complete resourceCount problemCount
    nodes { resource { name uuid type { name } } problems { key value rule message namespace } }
    pageInfo { hasNextPage endCursor }
  }
}
---
{{with .data.metadataProblems}}{{.resourceCount}} of {{.scanned}} resources drift, with {{.problemCount}} problems{{if not .complete}}, as far as this page looked{{end}}.
{{range .nodes}}- {{say .resource.name}} ({{say .resource.type.name}}, {{.resource.uuid}}): {{range $i, $of := .problems}}{{if $i}}; {{end}}{{say .key}} = {{say .value}} breaks {{.rule}}: {{say .message}}{{with .namespace}} ({{say .}}){{end}}{{end}}
{{end}}{{if .pageInfo.hasNextPage}}There may be more: after {{say .pageInfo.endCursor}}{{end}}{{end}}
