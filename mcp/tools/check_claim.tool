Dry run of a claim: whether each provider could give these amounts to a consumer now, with the inventory of each provider that could not. It writes nothing.
- allocations claims 8 also=providers required | The amounts by the uuid of each provider, such as {"UUID": {"VCPU": 4}}; a candidate has them.
- consumer string 36 | The uuid of the consumer, to see what it has already.
---
query check_claim($a: ResourceProviderFilter = {uuids: []}, $b: ResourceProviderFilter = {uuids: []}, $c: ResourceProviderFilter = {uuids: []},
  $d: ResourceProviderFilter = {uuids: []}, $e: ResourceProviderFilter = {uuids: []}, $f: ResourceProviderFilter = {uuids: []},
  $g: ResourceProviderFilter = {uuids: []}, $h: ResourceProviderFilter = {uuids: []}, $providers: [UUID!]!,
  $consumer: UUID = "00000000-0000-0000-0000-000000000000") {
  a: resourceProviders(filter: $a, first: 1) { nodes { uuid } }
  b: resourceProviders(filter: $b, first: 1) { nodes { uuid } }
  c: resourceProviders(filter: $c, first: 1) { nodes { uuid } }
  d: resourceProviders(filter: $d, first: 1) { nodes { uuid } }
  e: resourceProviders(filter: $e, first: 1) { nodes { uuid } }
  f: resourceProviders(filter: $f, first: 1) { nodes { uuid } }
  g: resourceProviders(filter: $g, first: 1) { nodes { uuid } }
  h: resourceProviders(filter: $h, first: 1) { nodes { uuid } }
  resourceProviders(filter: {uuids: $providers}, first: 8) {
    nodes { uuid name inventories { resourceClass capacity used free minUnit maxUnit stepSize } }
  }
  consumer(uuid: $consumer) { generation allocations { resourceClass used provider { name } } }
}
---
{{$data := .data}}{{$asked := .given.allocations}}{{range .data.resourceProviders.nodes}}{{$of := index $asked .uuid}}{{if fits $data .uuid}}- {{say .name}} ({{.uuid}}) can give all of it.
{{else}}- {{say .name}} ({{.uuid}}) cannot give it. {{range .inventories}}{{$amount := index $of .resourceClass}}{{if $amount}}{{.resourceClass}}: {{$amount}} asked, {{.free}} free of {{.capacity}} ({{.used}} used), from {{.minUnit}} to {{.maxUnit}} in steps of {{.stepSize}}. {{end}}{{end}}{{$inventories := .inventories}}{{range $class, $amount := $of}}{{if not (has $inventories "resourceClass" $class)}}It has no {{say $class}}. {{end}}{{end}}
{{end}}{{end}}{{range $uuid, $of := $asked}}{{if not (has $data.resourceProviders.nodes "uuid" $uuid)}}- There is no provider {{say $uuid}}.
{{end}}{{end}}{{with .data.consumer}}The consumer has allocations already, at generation {{.generation}}: {{range $i, $of := .allocations}}{{if $i}}, {{end}}{{.resourceClass}} {{.used}} on {{say .provider.name}}{{end}}. A claim replaces them.
{{end}}A claim decides again.
