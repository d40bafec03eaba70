Claims: replaces all allocations of a consumer, or changes nothing. Run check_claim first.
- consumer string 36 required | The uuid of the consumer.
- project string 255 required | The project of the consumer.
- user string 255 required | The user of the consumer.
- type string 255 | The type of the consumer, such as INSTANCE; its own when absent.
- generation integer 1..2147483647 | The generation of the consumer as check_claim or show tell it; absent for a consumer without allocations.
- allocations claims 8 required | The amounts by the uuid of each provider, such as {"UUID": {"VCPU": 4}}.
---
mutation claim($consumer: UUID!, $project: String!, $user: String!, $type: String, $generation: Int, $allocations: [ProviderAllocationInput!]!) {
  setAllocations(input: {consumers: [{uuid: $consumer, projectId: $project, userId: $user, type: $type, generation: $generation, allocations: $allocations}]}) {
    consumers { uuid generation allocations { resourceClass used provider { name uuid } } }
  }
}
---
{{range .data.setAllocations.consumers}}Consumer {{.uuid}} has, at generation {{.generation}}:
{{range .allocations}}- {{.resourceClass}} {{.used}} on {{say .provider.name}} ({{.provider.uuid}})
{{end}}{{end}}
