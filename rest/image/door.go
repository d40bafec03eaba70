// Package image serves the metadata definitions of OpenStack's Image service:
// /v2/metadefs and its JSON Schemas, as Horizon and glanceclient call them.
package image

import (
	"context"
	"log/slog"
	"net/http"
	"strings"

	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/rest"
	"github.com/cadastre-dev/cadastre/store"
)

// door answers the routes of the Image service.
type door struct {
	store   *store.Store
	schemas map[string]object
	// asReference shows booleans and numbers that are defaults as strings.
	asReference bool
}

// New returns the door of the Image service.
func New(s *store.Store, asReference bool, log *slog.Logger) *rest.Door {
	d := &door{s, schemas(), asReference}
	door := &rest.Door{Service: "image", Mount: "/openstack/image", Store: s, Log: log, Pages: true}
	for _, r := range routes {
		hasBody := r.method == http.MethodPut || r.method == http.MethodPost && !strings.HasSuffix(r.path, "{tag}")
		door.Routes = append(door.Routes,
			rest.Route{Method: r.method, Path: r.path, Field: r.field, Work: rest.Statements, Bare: !hasBody,
				Handle: func(ctx context.Context, request *rest.Request) (rest.Answer, error) {
					return r.handle(d, ctx, request)
				}})
	}
	return door
}

// route is a row in the table of routes. Its field is the field of Query or
// Mutation with the same permission.
type route struct {
	method, path, field string
	handle              func(*door, context.Context, *rest.Request) (rest.Answer, error)
}

const (
	namespaces = "/v2/metadefs/namespaces"
	namespace  = namespaces + "/{namespace}"
)

var routes = []route{
	{http.MethodGet, "/", "", listVersions(http.StatusMultipleChoices)},
	{http.MethodGet, "/versions", "", listVersions(http.StatusOK)},
	{http.MethodGet, "/v2/schemas/metadefs/{schema}", "namespaces", (*door).showSchema},
	{http.MethodGet, "/v2/metadefs/resource_types", "resourceTypes", (*door).listResourceTypes},
	{http.MethodGet, namespaces, "namespaces", (*door).listNamespaces},
	{http.MethodPost, namespaces, "createNamespace", (*door).createNamespace},
	{http.MethodGet, namespace, "namespace", (*door).showNamespace},
	{http.MethodPut, namespace, "updateNamespace", (*door).updateNamespace},
	{http.MethodDelete, namespace, "deleteNamespace", (*door).deleteNamespace},
	{http.MethodGet, namespace + "/resource_types", "namespace", (*door).listAssociations},
	{http.MethodPost, namespace + "/resource_types", "associateResourceType", (*door).associate},
	{http.MethodDelete, namespace + "/resource_types/{type}", "disassociateResourceType", (*door).disassociate},
	{http.MethodGet, namespace + "/properties", "namespace", (*door).listProperties},
	{http.MethodPost, namespace + "/properties", "createProperty", (*door).createProperty},
	{http.MethodDelete, namespace + "/properties", "deleteNamespaceContents",
		deleteContents(metadef.ContentProperties)},
	{http.MethodGet, namespace + "/properties/{property}", "namespace", (*door).showProperty},
	{http.MethodPut, namespace + "/properties/{property}", "updateProperty", (*door).updateProperty},
	{http.MethodDelete, namespace + "/properties/{property}", "deleteProperty", (*door).deleteProperty},
	{http.MethodGet, namespace + "/objects", "namespace", (*door).listObjects},
	{http.MethodPost, namespace + "/objects", "createObject", (*door).createObject},
	{http.MethodDelete, namespace + "/objects", "deleteNamespaceContents", deleteContents(metadef.ContentObjects)},
	{http.MethodGet, namespace + "/objects/{object}", "namespace", (*door).showObject},
	{http.MethodPut, namespace + "/objects/{object}", "updateObject", (*door).updateObject},
	{http.MethodDelete, namespace + "/objects/{object}", "deleteObject", (*door).deleteObject},
	{http.MethodGet, namespace + "/tags", "namespace", (*door).listTags},
	{http.MethodPost, namespace + "/tags", "setTags", (*door).setTags},
	{http.MethodDelete, namespace + "/tags", "deleteNamespaceContents", deleteContents(metadef.ContentTags)},
	{http.MethodGet, namespace + "/tags/{tag}", "namespace", (*door).showTag},
	{http.MethodPost, namespace + "/tags/{tag}", "setTags", (*door).createTag},
	{http.MethodPut, namespace + "/tags/{tag}", "updateTag", (*door).updateTag},
	{http.MethodDelete, namespace + "/tags/{tag}", "deleteTag", (*door).deleteTag},
}

// listVersions returns the handler that answers the versions of the service.
func listVersions(status int) func(*door, context.Context, *rest.Request) (rest.Answer, error) {
	return func(_ *door, _ context.Context, r *rest.Request) (rest.Answer, error) {
		type object = map[string]any
		return rest.Answer{Status: status, Body: object{"versions": []object{{
			"id": "v2.9", "status": "CURRENT", "links": []object{{"rel": "self", "href": r.Mount + "/v2/"}},
		}}}}, nil
	}
}
