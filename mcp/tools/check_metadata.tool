Checks keys and values of metadata against the definitions of a resource type, without writing: which are accepted, which rule each breaks, and which values are allowed. Tells the right spelling of a misspelt key.
- resource_type string 255 | The type, such as OS::Glance::Image. Needed unless resource is given.
- resource string 36 | The uuid of the resource that would get the metadata.
- metadata pairs 20 required | The keys with their values, such as {"os_distro": "debian"}.
! resource_type resource
---
query check_metadata($resource_type: String, $resource: UUID, $metadata: [KeyValueInput!]!) {
  validateMetadata(resourceType: $resource_type, resource: $resource, values: $metadata) {
    valid accepted strict
    items {
      key isCustom suggestion values accepted
      violations { rule message }
      definitions {
        name title description type enum itemEnum default minimum maximum minLength maxLength pattern operators
        namespace { name }
      }
    }
  }
}
---
{{with .data.validateMetadata}}{{if .valid}}All items keep their definitions.{{else if .accepted}}Some items break their definitions, but a write is accepted: the type is not strict.{{else}}A write is refused.{{end}}
{{range .items}}- {{say .key}} = {{list .values}}: {{if .violations}}{{range .violations}}{{.rule}}: {{say .message}} {{end}}{{else if .isCustom}}no definition knows the key{{else}}valid{{end}}{{with .suggestion}}; did you mean {{say .}}?{{end}}
{{range .definitions}}  {{say .namespace.name}} defines {{property .}}
{{end}}{{end}}{{end}}
