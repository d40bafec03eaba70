package placement_test

import (
	"testing"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestAPutConfirmsAHeldConsumer replaces the allocations of a held consumer.
func TestAPutConfirmsAHeldConsumer(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		c := serve(t, s, true)
		c.want(20, "POST", "/resource_providers", `{"uuid":"`+host+`","name":"host"}`, 200, "")
		c.want(26, "PUT", "/resource_providers/"+host+"/inventories",
			`{"resource_provider_generation":0,"inventories":{"VCPU":{"total":4}}}`, 200, "")
		_, _, err := s.Place(storetest.AsAdmin(), placement.Placing{Atomic: true, HoldFor: new(placement.MaxHold),
			Consumers: []placement.NewConsumer{{UUID: vm, ProjectID: "p", UserID: "u"}},
			Request:   placement.Request{Unsuffixed: placement.Group{Resources: []placement.Amount{{ResourceClass: "VCPU", Amount: 1}}}}}, false)
		if err != nil {
			t.Fatal(err)
		}
		if held, err := s.ConsumerByUUID(storetest.AsAdmin(), vm); err != nil || held.ExpiresAt == nil {
			t.Fatalf("the placed consumer is %+v, %v", held, err)
		}
		c.want(28, "PUT", "/allocations/"+vm, `{"allocations":{"`+host+
			`":{"resources":{"VCPU":2}}},"project_id":"p","user_id":"u","consumer_generation":1}`, 204, "")
		if claimed, err := s.ConsumerByUUID(storetest.AsAdmin(), vm); err != nil || claimed.ExpiresAt != nil {
			t.Errorf("the claimed consumer is %+v, %v", claimed, err)
		}
	})
}
