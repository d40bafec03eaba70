package sync_test

import (
	"maps"
	"reflect"
	"testing"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/client/optional"
	"github.com/cadastre-dev/cadastre/sync"
)

// reserve gives the fake a host of Blazar for the hypervisor, with capabilities, and
// one that Nova lacks. Each property is private or not.
func (f *fake) reserve(capabilities object, private map[string]bool) {
	host := object{"id": "1", "hypervisor_hostname": "compute-1.example", "hypervisor_type": "QEMU",
		"hypervisor_version": 2010001, "vcpus": 4,
		"cpu_info": "{'arch': 'x86_64'}", "memory_mb": 8192, "local_gb": 100, "service_name": "b", "reservable": true,
		"status": nil, "availability_zone": "south",
		"trust_id": "5f67f11215cf4c52906453a181bfcfea", "created_at": "2017-12-27 10:00:00",
		"updated_at": nil, "disabled": false}
	other := maps.Clone(host)
	other["id"], other["hypervisor_hostname"] = "2", "lost"
	maps.Copy(host, capabilities)
	f.lists[reserved] = []object{other, host}
	f.lists[properties], f.lists[properties+" all"] = []object{}, []object{}
	for name, isPrivate := range private {
		f.lists[properties+" all"] = append(f.lists[properties+" all"], object{"property": name})
		if !isPrivate {
			f.lists[properties] = append(f.lists[properties], object{"property": name})
		}
	}
}

// private returns whether registered capabilities of hosts are private.
func (s *syncing) private(names ...string) map[string]bool {
	s.t.Helper()
	found := map[string]bool{}
	for _, name := range names {
		answer, err := client.ReadCapability(s.t.Context(), s.server, "physical:host", name, nil)
		if err != nil {
			s.t.Fatal(err)
		}
		if one := answer.ResourceType.Capability; one != nil {
			found[name] = one.Private
		}
	}
	return found
}

// TestAHostHasTheCapabilitiesOfBlazar syncs a host of Blazar whose capabilities are
// private and public, and become the other. Then Blazar fails, and loses the host. At
// last the cloud has no Blazar.
func TestAHostHasTheCapabilitiesOfBlazar(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newSyncing(t, f)
	s.compares = true
	register := &client.CreateCapabilityInput{ResourceType: "physical:host",
		Name: "known", Private: optional.Value(false)}
	if _, err := client.CreateCapability(t.Context(), s.server, register); err != nil {
		t.Fatal(err)
	}
	own := map[string]string{"cpu_info:arch": "x86_64", "cpu_info:features": `["aes","vmx"]`,
		"cpu_info:topology:cores": "8", "availability_zone": "north", "rack": `["1","2"]`}
	all := maps.Clone(own)
	maps.Copy(all, map[string]string{"blazar.gpu": "True", "known": "", "blazar.tier": "gold", "rack": "9"})
	check := func(when string, capabilities map[string]string, reservable string, private map[string]bool) {
		t.Helper()
		host := s.stored("hypervisors")[root]
		if got := host["capabilities"]; !reflect.DeepEqual(got, capabilities) {
			t.Errorf("%s: capabilities %v, want %v", when, got, capabilities)
		}
		if got := host["metadata"].(map[string]string)["reservable"]; got != reservable {
			t.Errorf("%s: reservable is %q, want %q", when, got, reservable)
		}
		if got := s.private("blazar.gpu", "known", "blazar.tier"); !maps.Equal(got, private) {
			t.Errorf("%s: private %v, want %v", when, got, private)
		}
	}
	pass := func() sync.Result {
		t.Helper()
		result, err := s.pass("hypervisors")
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	has := object{"blazar.gpu": "True", "known": "", "blazar.tier": "gold", "rack": "9"}
	is := map[string]bool{"blazar.gpu": false, "known": true, "blazar.tier": true}
	listed := map[string]bool{"rack": false, "trust_id": false, "status": false, "another": true}
	maps.Copy(listed, is)
	f.reserve(has, listed)
	pass()
	check("first", all, "true", is)
	if result := pass(); result.Unchanged != 1 {
		t.Errorf("once more: %+v", result)
	}
	is["blazar.gpu"], listed["blazar.gpu"], listed["blazar.tier"] = true, true, false
	f.reserve(has, listed)
	pass()
	check("the other visibility", all, "true", is)

	f.objects = map[string]object{properties: {"error_message": "later"}}
	if _, err := s.pass("hypervisors"); err == nil {
		t.Error("a pass without the properties succeeds")
	}
	f.objects = nil
	check("a Blazar that fails", all, "true", is)
	f.lists[reserved] = f.lists[reserved][:1]
	pass()
	check("a host that Blazar lacks", own, "", is)
	f.reserve(has, listed)
	pass()
	check("the host is back", all, "true", is)
	f.lacks = "reservation"
	s.cloud = f.start(t)
	pass()
	check("a cloud without Blazar", own, "", is)
}
