Finds definitions of metadata: the namespaces that define properties of resources, with the allowed values of one property when key is given.
- search string 200 | Text in the name, title or description of a namespace, a property, an object or a tag, ignoring case.
- resource_type string 255 also=types | Only what applies to this type, such as OS::Glance::Image; the keys then carry the prefix of the type.
- key string 255 | Only what defines this metadata key, such as hw_disk_bus or hw:cpu_policy; its definition is shown in full.
- limit integer 1..20 default=5 | Namespaces at most.
---
query find_definitions($search: String, $types: [String!], $resource_type: String, $key: String, $limit: Int!) {
  namespaces(filter: {search: $search, resourceTypes: $types, definesKey: $key}, first: $limit) {
    totalCount
    nodes {
      name displayName description
      properties(resourceType: $resource_type) { ...Property }
      objects(resourceType: $resource_type) { properties { ...Property } }
      resourceTypeAssociations { prefix resourceType { name } }
    }
  }
}

fragment Property on PropertyDefinition {
  name baseName title description type enum itemEnum default minimum maximum minLength maxLength pattern operators
}
---
{{$given := .given}}{{with .data.namespaces}}{{.totalCount}} namespaces match{{if some .nodes}}:{{else}}.{{end}}
{{range .nodes}}- {{say .name}} ({{say .displayName}}): {{properties . $given.key $given.search}}
{{if not $given.resource_type}}  It applies to {{range $i, $of := .resourceTypeAssociations}}{{if $i}}, {{end}}{{if lt $i 12}}{{say .resourceType.name}}{{if .prefix}} with the prefix {{say .prefix}}{{end}}{{end}}{{else}}no type{{end}}.{{end}}
{{end}}{{end}}
