package catalog

import (
	"strings"
	"testing"
)

// The example bodies of the two specifications, in structure and in every
// oddity; their prose is replaced.
const (
	seedBasicNamespace = `{"namespace": "MyNamespace", "display_name": "A namespace", "description": "d", "visibility": "public", "protected": true}`
	seedAssociation    = `{"name": "OS::Cinder::Volume", "properties_target": "image_metadata", "prefix": "hw_",
		"created_at": "2014-08-28T17:13:06Z", "updated_at": "2014-08-28T17:13:06Z"}`
	seedListed = `{"namespace": "OS::Compute::Quota", "display_name": "Quota", "description": "d", "visibility": "public", "protected": true, "owner": "admin",
		"resource_type_associations": [{"name": "OS::Nova::Flavor", "created_at": "2014-08-28T17:13:06Z", "updated_at": "2014-08-28T17:13:06Z"}],
		"created_at": "2014-08-28T17:13:06Z", "updated_at": "2014-08-28T17:13:06Z",
		"self": "/v2/metadefs/namespaces/OS::Compute::Quota", "schema": "/v2/schemas/metadefs/namespace"}`
	seedWhole = `{"namespace": "MyNamespace", "display_name": "A namespace", "description": "d",
		"resource_type_associations": [
			{"name": "OS::Nova::Aggregate", "created_at": "2014-08-28T17:13:06Z", "updated_at": "2014-08-28T17:13:06Z"},
			{"name": "OS::Nova::Flavor", "prefix": "aggregate_instance_extra_specs:", "created_at": "2014-08-28T17:13:06Z", "updated_at": "2014-08-28T17:13:06Z"}],
		"properties": {"nsprop1": {"title": "First", "description": "d", "type": "boolean", "default": true}},
		"visibility": "public", "protected": true, "owner": "The Test Owner"}`
	seedStorageQOS = `{"name": "StorageQOS", "description": "d", "required": ["minIOPS"], "properties": {
		"minIOPS": {"type": "integer", "description": "d", "default": 100, "minimum": 100, "maximum": 30000},
		"burstIOPS": {"type": "integer", "description": "d", "default": 1000, "minimum": 100, "maximum": 30000}}}`
	seedObjectList = `{"objects": [{"name": "object1", "namespace": "my-namespace", "description": "d",
			"properties": {"prop1": {"title": "P", "description": "d", "type": "boolean", "default": true}}}],
		"first": "/v2/metadefs/objects?limit=1", "next": "/v2/metadefs/objects?marker=object1&limit=1", "schema": "/v2/schema/metadefs/objects"}`
	seedHypervisor = `{"name": "hypervisor_type", "type": "array", "description": "d", "items": {"type": "string", "enum": ["hyperv", "qemu", "kvm"]}}`
	seedLibvirt    = `{"objects": {"name": "LibVirtDriverOptions", "properties": {
		"hw_video_model": {"type": "array", "description": "d", "items": {"type": "string", "enum": ["vga", "cirrus", "vmvga", "xen", "gxl"]}},
		"hw_machine_type": {"type": "string", "description": "over
			two lines"},
		"hw_rng_model": {"type": "string", "description": "d", "defaultValue": "virtio"}}}}`
	seedHostGroups = `{"namespace": "MyHostGroups", "title": "Host groups", "description": "d",
		"resource_type_associations": [{"name": "OS::Nova::Aggregate"}, {"name": "OS::Nova::Flavor", "prefix": "aggregate_instance_extra_specs:"}],
		"objects": {"name": "SSD", "properties": {"MyHostGroups:SSD": {"title": "SSD", "description": "d", "type": "boolean", "default": true}}},
		"visibility": "public", "protected": true, "owner": "The Test Owner"}`
	seedSample = `{"namespace": "MyNamespace", "display_name": "A namespace", "description": "d",
		"resource_type_associations": [
			{"name": "OS::Glance::Image", "prefix": "hw_", "created_at": "2014-08-28T17:13:06Z", "updated_at": "2014-08-28T17:13:06Z"},
			{"name": "OS::Cinder::Volume", "prefix": "hw_", "properties_target": "image_metadata", "created_at": "2014-08-28T17:13:06Z", "updated_at": "2014-08-28T17:13:06Z"},
			{"name": "OS::Nova::Flavor", "prefix": "filter1:", "created_at": "2014-08-28T17:13:06Z", "updated_at": "2014-08-28T17:13:06Z"}],
		"properties": {"nsprop1": {"title": "First", "description": "d", "type": "boolean", "default": true},
			"nsprop2": {"title": "Second", "description": "d", "type": "string", "default": "value1"}},
		"objects": [
			{"name": "object1", "namespace": "MyNamespace", "description": "d", "properties": {"prop1": {"title": "P", "description": "d", "type": "array", "items": {"type": "string"}}}},
			{"name": "object2", "namespace": "MyNamespace", "description": "d", "properties": {"prop1": {"title": "P", "description": "d", "type": "integer", "default": 20}}}],
		"visibility": "public", "protected": true, "owner": "The Test Owner"}`
	seedFeatures = `{"title": "Features", "description": "d", "operators": ["<or>", "<all-in>"], "type": "array",
		"items": {"type": "string", "enum": ["aes", "vme", "de"]}}`
	seedFeaturesBefore = `{"title": "Features", "description": "d", "type": "array", "items": {"type": "string", "enum": ["aes", "vme", "de"]}}`
	seedOperatorObject = `{"name": "object1", "namespace": "my-namespace", "description": "d",
		"properties": {"prop1": {"title": "P", "description": "d", "operators": ["<all-in>"], "type": "string", "readonly": true}}}`
	seedOperatorQOS = `{"name": "StorageQOS", "description": "d", "required": ["MyProperty"], "properties": {"MyProperty": {
		"type": "string", "readonly": false, "description": "d", "operators": ["<or>"], "enum": ["type1", "type2"]}}}`
)

func inNamespace(kind, body string) string {
	return `{"namespace": "N", "` + kind + `": ` + body + `}`
}

func seedCases() []documentCase {
	return []documentCase{
		{"namespace", seedBasicNamespace, nil, nil},
		{"list of namespaces with placeholders", `{"namespaces": [{namespace1Here}, {namespace2Here}]}`, []string{"$"}, nil},
		{"list of namespaces", `{"first": "/v2", "namespaces": [` + seedListed + `], "schema": "/v2"}`,
			[]string{"$.namespace"}, []string{"$.first", "$.namespaces", "$.schema"}},
		{"namespace of a list", seedListed, nil, []string{"$.created_at", "$.updated_at", "$.self", "$.schema",
			"$.resource_type_associations[0].created_at", "$.resource_type_associations[0].updated_at"}},
		{"whole namespace", seedWhole, nil, []string{
			"$.resource_type_associations[0].created_at", "$.resource_type_associations[0].updated_at",
			"$.resource_type_associations[1].created_at", "$.resource_type_associations[1].updated_at"}},
		{"list of associations", `{"resource_type_associations": [` + seedAssociation + `]}`, []string{"$.namespace"}, []string{
			"$.resource_type_associations[0].created_at", "$.resource_type_associations[0].updated_at"}},
		{"association", seedAssociation, []string{"$.namespace"}, []string{"$.created_at", "$.name", "$.prefix", "$.properties_target", "$.updated_at"}},
		{"association in a namespace", inNamespace("resource_type_associations", "["+seedAssociation+"]"), nil, []string{
			"$.resource_type_associations[0].created_at", "$.resource_type_associations[0].updated_at"}},
		{"object", seedStorageQOS, []string{"$.namespace"}, []string{"$.name", "$.properties.burstIOPS.title", "$.properties.minIOPS.title", "$.required"}},
		{"object in a namespace", inNamespace("objects", "["+seedStorageQOS+"]"), nil,
			[]string{"$.objects[0].properties.burstIOPS.title", "$.objects[0].properties.minIOPS.title"}},
		{"list of objects", seedObjectList, []string{"$.namespace"}, []string{"$.first", "$.next", "$.objects[0].namespace", "$.schema"}},
		{"property", seedHypervisor, []string{"$.namespace"}, []string{"$.items", "$.name", "$.type"}},
		{"property in a namespace", inNamespace("properties", `{"hypervisor_type": `+seedHypervisor+`}`), nil,
			[]string{"$.properties.hypervisor_type.name", "$.properties.hypervisor_type.title"}},
		{"objects as one map", seedLibvirt, []string{"$"}, nil},
		{"objects as one map without the broken line", strings.ReplaceAll(seedLibvirt, "over\n", "over"), []string{"$"}, nil},
		{"objects as one map on good lines", `{"namespace": "N", ` + strings.ReplaceAll(seedLibvirt, "over\n\t\t\t", "over ")[1:], nil,
			[]string{"$.objects", "$.objects.properties.hw_machine_type.title", "$.objects.properties.hw_rng_model.defaultValue",
				"$.objects.properties.hw_rng_model.title", "$.objects.properties.hw_video_model.title"}},
		{"host groups", seedHostGroups, nil, []string{"$.objects", "$.title"}},
		{"sample", seedSample, nil, []string{"$.objects[0].namespace", "$.objects[1].namespace",
			"$.resource_type_associations[0].created_at", "$.resource_type_associations[0].updated_at",
			"$.resource_type_associations[1].created_at", "$.resource_type_associations[1].updated_at",
			"$.resource_type_associations[2].created_at", "$.resource_type_associations[2].updated_at"}},
		{"features before operators", inNamespace("properties", `{"cpu_info:features": `+seedFeaturesBefore+`}`), nil, nil},
		{"features", inNamespace("properties", `{"cpu_info:features": `+seedFeatures+`}`), nil, nil},
		{"list of objects with operators", `{"objects": [` + seedOperatorObject + `], "first": "/v2", "next": "/v2", "schema": "/v2"}`,
			[]string{"$.namespace"}, []string{"$.first", "$.next", "$.objects[0].namespace", "$.schema"}},
		{"object with operators", inNamespace("objects", "["+seedOperatorObject+"]"), nil, []string{"$.objects[0].namespace"}},
		{"object of operators", inNamespace("objects", "["+seedOperatorQOS+"]"), nil, []string{"$.objects[0].properties.MyProperty.title"}},
		{"schema of namespaces", `{"required": ["namespace"], "properties": {"namespace": {"type": "string", "description": "d", "maxLength": 80}, "additionalProperties": false}}`,
			[]string{"$.namespace", "$.properties.additionalProperties"}, []string{"$.properties.namespace.title", "$.required"}},
	}
}

func TestParseDocumentTakesTheSpecificationsExamples(t *testing.T) {
	t.Parallel()
	for _, c := range seedCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			document, warnings, problems := ParseDocument(c.text)
			wantPaths(t, "problems", problems, c.problems...)
			wantPaths(t, "warnings", warnings, c.warnings...)
			if len(problems) == 0 {
				checkRoundTrip(t, document)
			}
		})
	}
}

func TestParseDocumentRepairsTheSpecificationsExamples(t *testing.T) {
	t.Parallel()
	document, _, _ := ParseDocument(seedHostGroups)
	if document.DisplayName == nil || *document.DisplayName != "Host groups" {
		t.Errorf("the title did not become the display name: %+v", document)
	}
	if len(document.Objects) != 1 || document.Objects[0].Name != "SSD" || document.Objects[0].Properties[0].Name != "MyHostGroups:SSD" {
		t.Errorf("objects %+v", document.Objects)
	}
	document, _, _ = ParseDocument(`{"namespace": "N", ` + strings.ReplaceAll(seedLibvirt, "over\n\t\t\t", "over ")[1:])
	if p := document.Objects[0].Properties[2]; p.Title != "hw_rng_model" || *p.Default != `"virtio"` {
		t.Errorf("property %+v", p)
	}
	document, _, _ = ParseDocument(inNamespace("objects", "["+seedStorageQOS+"]"))
	if object := document.Objects[0]; len(object.Required) != 1 || object.Required[0] != "minIOPS" {
		t.Errorf("required was lost: %+v", object)
	}
}
