// Package share serves the metadata of OpenStack's Shared File Systems service
// (Manila): the same operations for every kind of resource of its metadata
// specification, and the resources that have the metadata.
package share

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"

	"github.com/cadastre-dev/cadastre/rest"
	"github.com/cadastre-dev/cadastre/store"
)

// kind is a kind of resources with metadata.
type kind struct {
	path     string // of its collection
	resource string // its resource type
	name     string // name of one in answers
	list     string // name of several in answers
	inside   string // the path of the parent's collection, "" for none
}

// kinds are the kinds of resources that Manila's specification gives metadata.
var kinds = []kind{
	{"shares", "OS::Manila::Share", "share", "shares", ""},
	{"snapshots", "OS::Manila::ShareSnapshot", "snapshot", "snapshots", ""},
	{"share-replicas", "OS::Manila::ShareReplica", "share_replica", "share_replicas", ""},
	{"share-access-rules", "OS::Manila::ShareAccessRule", "access", "access_list", ""},
	{"share-groups", "OS::Manila::ShareGroup", "share_group", "share_groups", ""},
	{"share-group-snapshots", "OS::Manila::ShareGroupSnapshot", "share_group_snapshot", "share_group_snapshots", ""},
	{"share-networks", "OS::Manila::ShareNetwork", "share_network", "share_networks", ""},
	{"security-services", "OS::Manila::SecurityService", "security_service", "security_services", ""},
	{"export_locations", "OS::Manila::ShareExportLocation", "export_location", "export_locations", "shares"},
	{"subnets", "OS::Manila::ShareNetworkSubnet", "share_network_subnet", "share_network_subnets", "share-networks"},
}

// door answers the routes of the Shared File Systems service.
type door struct{ store *store.Store }

// New returns the door of the Shared File Systems service.
func New(s *store.Store, log *slog.Logger) *rest.Door {
	d := door{s}
	made := &rest.Door{Service: "shared-file-system", Mount: "/openstack/share", Store: s, Log: log, Form: form}
	add := func(method, path, field string, handle rest.Handler) {
		made.Routes = append(made.Routes,
			rest.Route{Method: method, Path: path, Field: field, Work: rest.Statements, Handle: handle})
	}
	add(http.MethodGet, "/", "", d.versions)
	add(http.MethodGet, "/v2", "", d.versions)
	for _, base := range []string{"/v2", "/v2/{project}"} { // clients from 2.60 send no project
		for _, k := range kinds {
			d.addRoutes(base, k, add)
		}
	}
	return made
}

func (d door) addRoutes(base string, k kind, add func(method, path, field string, handle rest.Handler)) {
	collection := base + "/" + k.path
	if k.inside != "" {
		collection = base + "/" + k.inside + "/{parent}/" + k.path
	}
	one := collection + "/{id}"
	list := func(ctx context.Context, r *rest.Request) (rest.Answer, error) { return d.list(ctx, r, k) }
	add(http.MethodGet, collection, "resources", list)
	if k.inside == "" {
		add(http.MethodGet, collection+"/detail", "resources", list)
	}
	add(http.MethodGet, one, "resource", d.on(k, d.show))
	add(http.MethodGet, one+"/metadata", "resource", d.on(k, d.metadata))
	add(http.MethodPost, one+"/metadata", "setMetadata", d.on(k, d.merge))
	add(http.MethodPut, one+"/metadata", "replaceMetadata", d.on(k, d.replace))
	add(http.MethodGet, one+"/metadata/{key}", "resource", d.on(k, d.item))
	add(http.MethodPost, one+"/metadata/{key}", "setMetadata", d.on(k, d.setItem))
	add(http.MethodPut, one+"/metadata/{key}", "setMetadata", d.on(k, d.setItem))
	add(http.MethodDelete, one+"/metadata/{key}", "deleteMetadata", d.on(k, d.deleteItem))
}

// versions answers the versions of the service.
func (d door) versions(_ context.Context, r *rest.Request) (rest.Answer, error) {
	type object = map[string]any
	return rest.Answer{Body: object{"versions": []object{{
		"id": "v2.0", "status": "CURRENT", "version": "2.95", "min_version": "2.0", "updated": "2015-08-27T11:33:21Z",
		"links":       []object{{"rel": "self", "href": r.Mount + "/v2/"}},
		"media-types": []object{{"base": "application/json", "type": "application/vnd.openstack.share+json;version=1"}},
	}}}}, nil
}

// names are the names of faults by status.
var names = map[int]string{
	http.StatusBadRequest: "badRequest", http.StatusUnauthorized: "unauthorized", http.StatusForbidden: "forbidden",
	http.StatusNotFound: "itemNotFound", http.StatusConflict: "conflictingRequest",
	http.StatusRequestEntityTooLarge: "overLimit", http.StatusTooManyRequests: "overLimit",
}

// form returns a fault as the service writes it.
func form(fault *rest.Fault) any {
	name := cmp.Or(names[fault.Status], "computeFault")
	return map[string]any{name: map[string]any{"code": fault.Status, "message": fault.Detail}}
}
