Explains why find_resources finds few or no resources: for each condition, how many resources pass it alone, and how many pass it and all conditions before it.
- type string 255 also=types | Only of this type, such as OS::Nova::Flavor or physical:host.
- name string 255 | With exactly this name.
- name_contains string 255 | With this text in the name, ignoring case.
- search string 200 | With this text in the name, the description or a value of metadata, ignoring case.
- project string 255 | Of this project.
- tags tags 16 | With all of these tags.
- metadata pairs 16 | With all of these keys and values of metadata, compared exactly.
- requirements needs 16 | Meeting these requirements on capabilities, in the syntax of extra specs, such as {"vcpus": ">= 64"}.
- ancestor string 36 | Below the resource with this uuid, at any depth.
! type name name_contains search project tags metadata requirements ancestor
---
query explain_resources($types: [String!], $name: String, $name_contains: String, $search: String, $project: String, $tags: [TagFilter!],
  $metadata: [KeyValueInput!], $requirements: [RequirementInput!], $ancestor: UUID) {
  explainResources(filter: {types: $types, name: $name, nameContains: $name_contains, search: $search, projectId: $project, tags: $tags,
    metadata: $metadata, requirements: $requirements, ancestor: $ancestor}) {
    considered
    clauses { clause passing remaining ignored notNumbers }
  }
}
---
{{with .data.explainResources}}You see {{.considered}} resources.
{{range .clauses}}- {{say .clause}}: {{.passing}} pass it alone, {{.remaining}} are left{{if .ignored}}; it was ignored{{end}}{{if some .notNumbers}}; {{.notNumbers}} have a value that is no number{{end}}
{{end}}{{end}}
