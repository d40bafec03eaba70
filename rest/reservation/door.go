// Package reservation serves the properties of OpenStack's Reservation service
// (Blazar): the discovery of capabilities in the form of its specification, and
// in the form that the service released for hosts.
package reservation

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"

	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/rest"
	"github.com/cadastre-dev/cadastre/store"
)

// hosts is the resource type of the released form.
const hosts = "physical:host"

// door answers the routes of the Reservation service.
type door struct{ store *store.Store }

// New returns the door of the Reservation service.
func New(s *store.Store, log *slog.Logger) *rest.Door {
	d := door{s}
	return &rest.Door{Service: "reservation", Mount: "/openstack/reservation", Store: s,
		Log: log, Form: form, Routes: []rest.Route{
			{Method: http.MethodGet, Path: "/", Handle: d.versions},
			{Method: http.MethodGet, Path: "/v1/os-hosts/properties", Field: "resourceType",
				Work: rest.Statements, Handle: d.released},
			{Method: http.MethodPatch, Path: "/v1/os-hosts/properties/{property}", Field: "setCapabilityVisibility",
				Work: rest.Statements, Handle: d.update},
			{Method: http.MethodGet, Path: "/v1/{type}/properties", Field: "resourceType",
				Work: rest.Statements, Handle: d.specified},
			{Method: http.MethodGet, Path: "/v1/{type}/properties/{property}", Field: "resourceType",
				Work: rest.Statements, Handle: d.show},
			{Method: http.MethodPatch, Path: "/v1/{type}/properties/{property}", Field: "setCapabilityVisibility",
				Work: rest.Statements, Handle: d.update},
		}}
}

// form returns a fault as the service writes it.
func form(fault *rest.Fault) any {
	return map[string]any{"error_code": fault.Status, "error_message": fault.Detail, "error_name": fault.Status}
}

// versions answers the versions of the service.
func (d door) versions(_ context.Context, r *rest.Request) (rest.Answer, error) {
	type object = map[string]any
	return rest.Answer{Status: http.StatusMultipleChoices, Body: object{"versions": []object{{
		"id": "v1.0", "status": "CURRENT", "links": []object{{"rel": "self", "href": r.Mount + "/v1"}},
	}}}}, nil
}

// property is a capability with its values, which are nil unless requested.
type property struct {
	*resource.Capability
	values []string
}

// mostValues bounds the values of one property in an answer.
const mostValues = page.MaxSize

// properties returns the capabilities of a resource type that the viewer may
// discover, with the private ones and with values if the caller wants them.
func (d door) properties(ctx context.Context, resourceType string, withPrivate, withValues bool) ([]property, error) {
	of, err := d.store.ResourceTypeNamed(ctx, resourceType)
	if err != nil {
		return nil, err
	}
	found, err := d.store.Capabilities(ctx, []int64{of.ID}, withPrivate)
	if err != nil {
		return nil, err
	}
	list := make([]property, len(found[of.ID]))
	for i, c := range found[of.ID] {
		list[i].Capability = c
	}
	if withValues {
		err = d.addValues(ctx, list)
	}
	return list, err
}

// addValues sets the values of properties: of each the first mostValues.
func (d door) addValues(ctx context.Context, list []property) error {
	ids := make([]int64, len(list))
	for i, p := range list {
		ids[i] = p.ID
	}
	size := mostValues
	pages, err := d.store.CapabilityValues(ctx, ids, "", page.Request{First: &size})
	for i, p := range list {
		list[i].values = []string{}
		for _, value := range pages[p.ID].Items {
			list[i].values = append(list[i].values, value.Value)
		}
	}
	return err
}

// isSet reports whether a flag of the URL is set. The reference takes any value
// for true, even "false"; here an empty value, false, False and 0 are false.
func isSet(r *rest.Request, key string) bool {
	value, ok := r.Last(key)
	return ok && value != "" && value != "false" && value != "False" && value != "0"
}

type valueForm struct {
	Value string `json:"value"`
}

func valueForms(values []string) []valueForm {
	forms := make([]valueForm, len(values))
	for i, value := range values {
		forms[i].Value = value
	}
	return forms
}

// specified answers the properties of a type in the form of the specification:
// a list of names, with their values if detail is set.
func (d door) specified(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	forms, err := d.forms(ctx, r, r.Path["type"], func(form map[string]any, p property) {
		form["values"] = valueForms(p.values)
	})
	return rest.Answer{Body: forms}, err
}

// released answers the properties of hosts in the form of the released service.
func (d door) released(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	forms, err := d.forms(ctx, r, hosts, func(form map[string]any, p property) {
		form["values"], form["private"] = p.values, p.Private
	})
	return rest.Answer{Body: map[string]any{"resource_properties": forms}}, err
}

// forms returns the properties of a type, with the private ones if all is set.
// If detail is set, add adds the values of each.
func (d door) forms(
	ctx context.Context, r *rest.Request, resourceType string, add func(form map[string]any, p property),
) ([]map[string]any, error) {
	list, err := d.properties(ctx, resourceType, isSet(r, "all"), isSet(r, "detail"))
	forms := make([]map[string]any, len(list))
	for i, p := range list {
		forms[i] = map[string]any{"property": p.Name}
		if p.values != nil {
			add(forms[i], p)
		}
	}
	return forms, err
}

// show answers one property with its values.
func (d door) show(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	of, err := d.store.ResourceTypeNamed(ctx, typeOf(r))
	if err != nil {
		return rest.Answer{}, err
	}
	answers, err := d.store.CapabilitiesNamed(ctx, []int64{of.ID}, r.Path["property"])
	if err != nil {
		return rest.Answer{}, err
	}
	found, ok := answers[of.ID]
	switch {
	case ok && found.Refused != nil:
		return rest.Answer{}, found.Refused
	case !ok || found.Capability == nil:
		return rest.Answer{}, problem.Refuse(problem.ErrNotFound,
			"resource type %q has no property %q", of.Name, r.Path["property"])
	}
	list := []property{{Capability: found.Capability}}
	err = d.addValues(ctx, list)
	return rest.Answer{Body: map[string]any{"private": list[0].Private, "values": valueForms(list[0].values)}}, err
}

// typeOf returns the resource type that a path names; os-hosts means hosts.
func typeOf(r *rest.Request) string {
	if name := r.Path["type"]; name != "" && name != "os-hosts" {
		return name
	}
	return hosts
}

// update sets whether a property is private. The specification's form answers
// 204, the released form 200 with the property.
func (d door) update(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	if err := r.CheckJSON(); err != nil {
		return rest.Answer{}, err
	}
	var body map[string]*bool
	if err := json.Unmarshal(r.Body, &body); err != nil || len(body) != 1 || body["private"] == nil {
		return rest.Answer{}, problem.Invalid("private", "must be true or false, and the only member of the body")
	}
	changed, err := d.store.SetCapabilityVisibility(ctx, typeOf(r), r.Path["property"], *body["private"])
	if err != nil {
		return rest.Answer{}, err
	}
	if _, ok := r.Path["type"]; ok {
		return rest.Answer{Status: http.StatusNoContent}, nil
	}
	return rest.Answer{Body: map[string]any{"resource_property": map[string]any{
		"id": changed.UUID, "resource_type": hosts, "property_name": changed.Name, "private": changed.Private,
	}}}, nil
}
