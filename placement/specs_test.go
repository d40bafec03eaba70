package placement_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	. "github.com/cadastre-dev/cadastre/placement"
)

// describeSpecs writes the request of extra specs as one line.
func describeSpecs(r SpecRequest) string {
	var parts []string
	group := func(g Group) {
		for _, amount := range g.Resources {
			parts = append(parts, fmt.Sprintf("%s%s:%d", prefixOf(g), amount.ResourceClass, amount.Amount))
		}
		for _, trait := range g.RequiredAll {
			parts = append(parts, prefixOf(g)+"+"+trait)
		}
		for _, set := range g.RequiredAnySets {
			parts = append(parts, prefixOf(g)+"any("+strings.Join(set.AnyOf, "|")+")")
		}
		for _, trait := range g.Forbidden {
			parts = append(parts, prefixOf(g)+"-"+trait)
		}
	}
	group(r.Request.Unsuffixed)
	for _, g := range r.Request.Groups {
		group(g)
	}
	if r.Request.Policy == GroupPolicyIsolate {
		parts = append(parts, "isolate")
	}
	for _, subtree := range r.Request.SameSubtree {
		parts = append(parts, "subtree("+strings.Join(subtree.Suffixes, ",")+")")
	}
	for _, capability := range r.Capabilities {
		parts = append(parts, fmt.Sprintf("host(%s %s)", capability.Key, capability.Value))
	}
	for _, ignored := range r.Ignored {
		parts = append(parts, fmt.Sprintf("ignored(%s %s)", ignored.Key, ignored.Reason))
	}
	for _, problem := range r.Problems {
		parts = append(parts, fmt.Sprintf("problem(%s: %s)", problem.Key, problem.Message))
	}
	return strings.Join(parts, " ")
}

func prefixOf(g Group) string {
	if g.Suffix == "" {
		return ""
	}
	return "[" + g.Suffix + "]"
}

// specCases has metadata items, the rule that applies to them, and the expected
// request.
var specCases = []struct{ rule, specs, want string }{
	{"vcpus is VCPU, ram MEMORY_MB, disk DISK_GB", "vcpus=4 ram=8192 disk=40", "VCPU:4 MEMORY_MB:8192 DISK_GB:40"},
	{"ephemeral is added to the disk", "disk=40 ephemeral=20 vcpus=1", "VCPU:1 DISK_GB:60"},
	{"swap is in mebibytes, rounded up to gibibytes", "disk=40 swap=1 vcpus=1", "VCPU:1 DISK_GB:41"},
	{"ephemeral and swap are rounded up together", "ephemeral=1 swap=1025", "DISK_GB:3"},
	{"an amount of 0 asks for nothing", "vcpus=2 disk=0", "VCPU:2 ignored(disk ZERO_AMOUNT)"},
	{"resources: asks for a class in the unsuffixed group", "resources:CUSTOM_GOLD=3", "CUSTOM_GOLD:3"},
	{"resources: overrides how large the flavor is", "vcpus=4 ram=512 resources:VCPU=2",
		"VCPU:2 MEMORY_MB:512 ignored(vcpus OVERRIDDEN)"},
	{"resources: of 0 removes the class", "vcpus=4 ram=512 resources:VCPU=0",
		"MEMORY_MB:512 ignored(resources:VCPU ZERO_AMOUNT) ignored(vcpus OVERRIDDEN)"},
	{"resources: of DISK_GB overrides disk, ephemeral and swap",
		"vcpus=1 disk=1 ephemeral=1 swap=1 resources:DISK_GB=9",
		"DISK_GB:9 VCPU:1 ignored(disk OVERRIDDEN) ignored(ephemeral OVERRIDDEN) ignored(swap OVERRIDDEN)"},
	{"a numbered group overrides, too", "vcpus=4 ram=512 resources1:VCPU=2",
		"MEMORY_MB:512 [1]VCPU:2 ignored(vcpus OVERRIDDEN)"},
	{"a suffix is the text after the word, the underscore included",
		"resources_NIC:SRIOV_NET_VF=1 resources2:VCPU=1", "[2]VCPU:1 [_NIC]SRIOV_NET_VF:1"},
	{"trait=required is required", "vcpus=1 trait:HW_CPU_X86_AVX=required", "VCPU:1 +HW_CPU_X86_AVX"},
	{"trait=forbidden is forbidden", "vcpus=1 trait:CUSTOM_RARE=forbidden", "VCPU:1 -CUSTOM_RARE"},
	{"a trait of a group concerns the group", "resources1:VCPU=1 trait1:HW_CPU_X86_AVX=required",
		"[1]VCPU:1 [1]+HW_CPU_X86_AVX"},
	{"a trait is required or forbidden, nothing else", "vcpus=1 trait:CUSTOM_RARE=preferred",
		"VCPU:1 problem(trait:CUSTOM_RARE: must be required or forbidden)"},
	{"required with in: is any of several traits", "vcpus=1 required=in:HW_CPU_X86_AVX,CUSTOM_RARE",
		"VCPU:1 any(HW_CPU_X86_AVX|CUSTOM_RARE)"},
	{"any of several traits in a group", "resources_A:VCPU=1 required_A=in:HW_CPU_X86_AVX,CUSTOM_RARE",
		"[_A]VCPU:1 [_A]any(HW_CPU_X86_AVX|CUSTOM_RARE)"},
	{"required without in: is all of them, and none of those with !", "vcpus=1 required=HW_CPU_X86_AVX,!CUSTOM_RARE",
		"VCPU:1 +HW_CPU_X86_AVX -CUSTOM_RARE"},
	{"any-of and forbidden do not mix", "vcpus=1 required=in:HW_CPU_X86_AVX,!CUSTOM_RARE",
		"VCPU:1 problem(required: must not combine in: and !)"},
	{"required that is no list of traits is something else", "vcpus=1 required=nfs required_service=yes",
		"VCPU:1 ignored(required NO_RULE) ignored(required_service NO_RULE)"},
	{"group_policy=isolate separates the groups", "resources1:VCPU=1 resources2:VCPU=1 group_policy=isolate",
		"[1]VCPU:1 [2]VCPU:1 isolate"},
	{"without a policy groups may share a provider", "resources1:VCPU=1 resources2:VCPU=1", "[1]VCPU:1 [2]VCPU:1"},
	{"a policy is none or isolate", "vcpus=1 group_policy=some",
		"VCPU:1 problem(group_policy: must be none or isolate)"},
	{"same_subtree names groups", "resources_A:VCPU=1 resources_B:CUSTOM_GOLD=1 same_subtree=_A,_B",
		"[_A]VCPU:1 [_B]CUSTOM_GOLD:1 subtree(_A,_B)"},
	{"several same_subtree have a text each",
		"resources_A:VCPU=1 trait_B:HW_CPU_X86_AVX=required trait_C:CUSTOM_RARE=required same_subtree1=_A,_B same_subtree2=_A,_C",
		"[_A]VCPU:1 [_B]+HW_CPU_X86_AVX [_C]+CUSTOM_RARE subtree(_A,_B) subtree(_A,_C)"},
	{"same_subtree names groups that are there", "resources_A:VCPU=1 same_subtree=_A,_B",
		"[_A]VCPU:1 subtree(_A,_B) problem(same_subtree: must be the suffix of a group)"},
	{"a group without resources stands in a same_subtree", "vcpus=1 trait_B:CUSTOM_RARE=required",
		"VCPU:1 [_B]+CUSTOM_RARE problem(trait_B:CUSTOM_RARE: must name an amount unless the group is named in sameSubtree)"},
	{"capabilities: is required of the host", "vcpus=1 capabilities:gpu=>=_2", "VCPU:1 host(capabilities:gpu >=_2)"},
	{"keys of other scopes ask for nothing", "vcpus=1 hw:cpu_policy=dedicated os_type=linux",
		"VCPU:1 ignored(hw:cpu_policy NO_RULE) ignored(os_type NO_RULE)"},
	{"an unknown class is a problem", "resources:NOTHING=1",
		"NOTHING:1 problem(resources:NOTHING: unknown resource class \"NOTHING\")"},
	{"what no class can be called is a problem", "resources:vcpu=1",
		"vcpu:1 problem(resources:vcpu: must be 1 to 255 of A-Z, 0-9 and _)"},
	{"an unknown trait is a problem", "vcpus=1 trait:CUSTOM_NOTHING=required",
		"VCPU:1 +CUSTOM_NOTHING problem(trait:CUSTOM_NOTHING: unknown trait \"CUSTOM_NOTHING\")"},
	{"an unknown trait of an any-of set is a problem", "vcpus=1 required=in:HW_CPU_X86_AVX,CUSTOM_NOTHING",
		"VCPU:1 any(HW_CPU_X86_AVX|CUSTOM_NOTHING) problem(required: unknown trait \"CUSTOM_NOTHING\")"},
	{"amounts are whole numbers", "ram=512 vcpus=1.5 resources:CUSTOM_GOLD=many disk=-1 swap=+1",
		"MEMORY_MB:512 problem(disk: must be a whole number from 0 to 2147483647) problem(resources:CUSTOM_GOLD: must be a whole number from 0 to 2147483647) " +
			"problem(swap: must be a whole number from 0 to 2147483647) problem(vcpus: must be a whole number from 0 to 2147483647)"},
	{"amounts have 31 bits", "ram=2147483648 vcpus=2147483647",
		"VCPU:2147483647 problem(ram: must be a whole number from 0 to 2147483647)"},
	{"what is required is not forbidden", "vcpus=1 trait:CUSTOM_RARE=required required=!CUSTOM_RARE",
		"VCPU:1 +CUSTOM_RARE -CUSTOM_RARE problem(trait:CUSTOM_RARE: must not also be forbidden in the same group)"},
	{"traits alone ask for nothing", "trait:CUSTOM_RARE=required",
		"+CUSTOM_RARE problem(trait:CUSTOM_RARE: must name an amount when other arguments of the unsuffixed group are given) problem(trait:CUSTOM_RARE: must name an amount here or in a group)"},
	{"what asks for nothing is a problem", "os_type=linux",
		"ignored(os_type NO_RULE) problem(: no key requests resources)"},
}

// specsOf parses `key=value` pairs separated by spaces.
func specsOf(text string) []ExtraSpec {
	var specs []ExtraSpec
	for field := range strings.FieldsSeq(text) {
		key, value, _ := strings.Cut(field, "=")
		specs = append(specs, ExtraSpec{key, value})
	}
	return specs
}

func TestExtraSpecsAreReadByTheirRules(t *testing.T) {
	t.Parallel()
	names := Names{Traits: []string{"HW_CPU_X86_AVX", "CUSTOM_RARE"},
		ResourceClasses: []string{"VCPU", "MEMORY_MB", "DISK_GB", "SRIOV_NET_VF", "CUSTOM_GOLD"}}
	w := NewWorld(names, nil)
	if len(specCases) < 25 {
		t.Errorf("%d cases", len(specCases))
	}
	for _, c := range specCases {
		specs := specsOf(c.specs)
		read := ReadSpecs(w, specs)
		if got := describeSpecs(read); got != c.want {
			t.Errorf("%s: %s\ngot  %s\nwant %s", c.rule, c.specs, got, c.want)
		}
		if problems := Validate(w, &read.Request); len(read.Problems) == 0 && len(problems) > 0 {
			t.Errorf("%s: the request has problems that no key has: %v", c.rule, problems)
		}
		rand.Shuffle(len(specs), func(i, k int) { specs[i], specs[k] = specs[k], specs[i] })
		if got := describeSpecs(ReadSpecs(w, specs)); got != c.want {
			t.Errorf("%s: in another order: %s", c.rule, got)
		}
	}
}

// TestEverySpecIsAccountedFor reads random specs. Each key is in the request,
// is ignored or has a problem, and a request without problems is valid.
func TestEverySpecIsAccountedFor(t *testing.T) {
	t.Parallel()
	w := NewWorld(Names{Traits: []string{"CUSTOM_A"}, ResourceClasses: []string{"VCPU", "MEMORY_MB", "DISK_GB"}}, nil)
	keys := []string{"vcpus", "ram", "disk", "ephemeral", "swap", "resources:VCPU", "resources1:VCPU",
		"resources_A:DISK_GB", "resources:NONE", "resources:", "resources",
		"trait:CUSTOM_A", "trait1:CUSTOM_A", "trait_A:", "required", "required1", "required_A", "group_policy",
		"same_subtree", "same_subtree1", "capabilities:x", "hw:x", ":", "resources!:VCPU"}
	values := []string{"0", "1", "4", "x", "required", "forbidden", "in:CUSTOM_A", "in:", "in:CUSTOM_A,!CUSTOM_A",
		"CUSTOM_A,!CUSTOM_A", "!CUSTOM_A", "none", "isolate", "1,_A", "_A", ""}
	for seed := range uint64(20_000) {
		chance := rand.New(rand.NewPCG(seed, 12))
		var specs []ExtraSpec
		for _, i := range chance.Perm(len(keys))[:chance.IntN(8)] {
			specs = append(specs, ExtraSpec{keys[i], values[chance.IntN(len(values))]})
		}
		read := ReadSpecs(w, specs)
		text := describeSpecs(read)
		if problems := Validate(w, &read.Request); (len(problems) > 0) != (len(read.Problems) > 0) &&
			len(read.Problems) == 0 {
			t.Fatalf("%v: %s\n%v", specs, text, problems)
		}
		for i, spec := range specs {
			without := append(append([]ExtraSpec{}, specs[:i]...), specs[i+1:]...)
			if describeSpecs(ReadSpecs(w, without)) == text && spec != (ExtraSpec{"group_policy", "none"}) {
				t.Fatalf("%v: %v leaves no trace in %s", specs, spec, text)
			}
		}
	}
}
