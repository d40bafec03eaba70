package client_test

import (
	"context"
	"fmt"
	"log"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/client/optional"
)

// Writes metadata of a share in a demo, and shows all of its metadata.
func ExampleNew() {
	server := client.New("http://127.0.0.1:8080", client.WithToken("demo-member"))
	answer, err := client.SetMetadata(context.Background(), server, &client.SetMetadataInput{
		Resource: "ebf728f5-376a-5438-8ef0-c3a299ba60eb",
		Items:    []*client.KeyValueInput{{Key: "ticket", Value: "4711"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, item := range answer.SetMetadata.Resource.Metadata {
		fmt.Println(item.Key, item.Value)
	}
}

// Prints the hosts without a metadata item about their rack.
func ExampleResources() {
	ctx, server := context.Background(), client.New("http://127.0.0.1:8080", client.WithToken("demo-reader"))
	filter := &client.ResourceFilter{Types: optional.Value([]string{"physical:host"}),
		Where: optional.Value(client.ResourceCondition{
			Metadata: optional.Value(client.MetadataCondition{Key: "rack", Exists: optional.Value(false)}),
		})}
	for host, err := range client.Resources(ctx, server, filter, nil, nil, false) {
		if client.Code(err) == client.Forbidden {
			log.Fatal("this token may not read resources")
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(host.Uuid, host.Name)
	}
}

// Prints the changes of the resources of a project, from now on.
func ExampleResourceChanges() {
	server := client.New("http://127.0.0.1:8080", client.WithToken("demo-reader"))
	for event, err := range client.ResourceChanges(context.Background(), server, nil, nil) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(event.Change.What, event.Change.Key)
	}
}
