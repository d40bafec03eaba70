package placement_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	. "github.com/cadastre-dev/cadastre/placement"
)

func TestCapacityIsTheWholePartOfTheProduct(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		total, reserved int32
		ratio           float64
		want            int64
	}{
		{3, 0, 1.5, 4},
		{10, 10, 16, 0},
		{10, 0, 0, 0},
		{3, 4, 1, -1},
		{3, 4, 0.5, 0},
		{100, 0, 0.29, 28}, // 100 × 0.29 is a little less than 29 in float64
		{math.MaxInt32, 0, 1, math.MaxInt32},
		{math.MaxInt32, 0, 3.40282e38, math.MaxInt64},
		{1, math.MaxInt32, 3.40282e38, math.MinInt64},
		{1, 0, math.NaN(), 0},
	} {
		if got := Capacity(c.total, c.reserved, c.ratio); got != c.want {
			t.Errorf("Capacity(%d, %d, %g) = %d, want %d", c.total, c.reserved, c.ratio, got, c.want)
		}
	}
}

func TestCapacityDecidesAsTheFloatComparisonDoes(t *testing.T) {
	t.Parallel()
	for total := range int32(200) {
		for _, ratio := range []float64{0, 0.1, 0.29, 0.5, 1, 1.1, 1.5, 3.3, 16} {
			product := float64(total) * ratio
			for amount := range int64(300) {
				if (amount <= Capacity(total, 0, ratio)) != (float64(amount) <= product) {
					t.Fatalf("%d of %d × %g", amount, total, ratio)
				}
			}
		}
	}
}

func TestInventoryBounds(t *testing.T) {
	t.Parallel()
	good := Inventory{ResourceClass: "VCPU", Total: 8, MinUnit: 1, MaxUnit: 8, StepSize: 1, AllocationRatio: 1}
	for name, c := range map[string]struct {
		change func(i *Inventory)
		want   string
	}{
		"good":            {func(*Inventory) {}, ""},
		"all reserved":    {func(i *Inventory) { i.Reserved = 8 }, ""},
		"ratio 0":         {func(i *Inventory) { i.AllocationRatio = 0 }, ""},
		"min beyond max":  {func(i *Inventory) { i.MinUnit, i.MaxUnit = 9, 3 }, ""},
		"step beyond all": {func(i *Inventory) { i.StepSize = 100 }, ""},
		"rounds to none":  {func(i *Inventory) { i.Reserved, i.AllocationRatio = 9, 0.5 }, ""},
		"total 0":         {func(i *Inventory) { i.Total = 0 }, "i.total: must be between 1 and 2147483647"},
		"reserved":        {func(i *Inventory) { i.Reserved = -1 }, "i.reserved: must be between 0 and 2147483647"},
		"min":             {func(i *Inventory) { i.MinUnit = 0 }, "i.minUnit: must be between 1 and 2147483647"},
		"max":             {func(i *Inventory) { i.MaxUnit = 0 }, "i.maxUnit: must be between 1 and 2147483647"},
		"step":            {func(i *Inventory) { i.StepSize = 0 }, "i.stepSize: must be between 1 and 2147483647"},
		"ratio": {func(i *Inventory) {
			i.AllocationRatio = -1
		}, "i.allocationRatio: must be between 0 and 3.40282e38"},
		"ratio too large": {func(i *Inventory) {
			i.AllocationRatio = 1e39
		}, "i.allocationRatio: must be between 0 and 3.40282e38"},
		"2^63": {func(i *Inventory) {
			i.AllocationRatio = math.Exp2(60)
		}, "i.allocationRatio: must leave a capacity below 2^63"},
		"almost 2^63":    {func(i *Inventory) { i.AllocationRatio = math.Nextafter(math.Exp2(60), 0) }, ""},
		"all of nothing": {func(i *Inventory) { i.Reserved, i.AllocationRatio = 8, MaxAllocationRatio }, ""},
		"negative":       {func(i *Inventory) { i.Reserved = 10 }, "i.reserved: must not leave a negative capacity"},
		"class": {func(i *Inventory) {
			i.ResourceClass = "vcpu"
		}, "i.resourceClass: must be 1 to 255 of A-Z, 0-9 and _"},
	} {
		inventory := good
		c.change(&inventory)
		if got := strings.Join(texts(ValidateInventory("i", inventory)), "; "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	twice := texts(ValidateInventories("input.inventories", []Inventory{good, good}))
	if want := []string{"input.inventories[1].resourceClass: duplicate resource class \"VCPU\""}; !slices.Equal(twice,
		want) {
		t.Errorf("%q", twice)
	}
}

func TestWriteRule(t *testing.T) {
	t.Parallel()
	inventory := Inventory{Total: 10, MinUnit: 2, MaxUnit: 8, StepSize: 2, AllocationRatio: 1, Capacity: 10}
	for _, c := range []struct {
		others, own, amount int64
		want                AllocationCheck
	}{
		{0, 0, 8, AllocationFits},
		{0, 0, 1, BelowMinUnit},
		{0, 0, 10, AboveMaxUnit},
		{0, 0, 3, NotStepMultiple},
		{2, 0, 8, AllocationFits},
		{4, 0, 8, InsufficientCapacity},
		{4, 8, 8, AllocationFits},        // over already, the same again
		{4, 8, 6, AllocationFits},        // shrinking to what fits
		{10, 8, 6, AllocationFits},       // shrinking and still over
		{10, 6, 8, InsufficientCapacity}, // over and growing
		{10, 0, 2, InsufficientCapacity}, // full to the brim
		{4, 6, 8, InsufficientCapacity},  // full, not over, growing
	} {
		if got := CheckAllocation(inventory, c.others, c.own, c.amount); got != c.want {
			t.Errorf("%d others, %d own, %d asked: %v, want %v", c.others, c.own, c.amount, got, c.want)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"CUSTOM_A": true, "CUSTOM_1_": true, "CUSTOM_": false, "VCPU": false,
		"CUSTOM_a": false, "CUSTOM_Ä": false, "": false,
		"CUSTOM_" + strings.Repeat("A", 248): true, "CUSTOM_" + strings.Repeat("A", 249): false,
	} {
		if got := IsCustomName(name); got != want || (ValidateCustomName("n", name) == nil) != want {
			t.Errorf("IsCustomName(%q) = %v", name, got)
		}
	}
	for name, want := range map[string]bool{"INSTANCE": true, "A_1": true, "": false,
		"a": false, strings.Repeat("A", 256): false} {
		if (ValidateName("t", name) == nil) != want {
			t.Errorf("consumer type %q", name)
		}
	}
	for name, want := range map[string]bool{
		"host": true, "": false, strings.Repeat("é", 200): true,
		strings.Repeat("é", 201): false, "a\x00b": false, "\xff": false,
	} {
		if provider := (NewProvider{Name: name}); (provider.Validate("n") == nil) != want {
			t.Errorf("provider name %q", name)
		}
	}
}

func TestUUIDsInEverySpelling(t *testing.T) {
	t.Parallel()
	const want = "4e8e5957-649f-477b-9e5b-f1f75b21c03c"
	for _, text := range []string{
		want, "4E8E5957-649F-477B-9E5B-F1F75B21C03C", "4e8e5957649f477b9e5bf1f75b21c03c",
		"{4e8e5957-649f-477b-9e5b-f1f75b21c03c}", "urn:uuid:4e8e5957-649f-477b-9e5b-f1f75b21c03c",
		"URN:UUID:4e8e5957649f477b9e5bf1f75b21c03c", "{4e8e5957649f477b9e5bf1f75b21c03c}",
	} {
		if got, ok := CanonicalUUID(text); !ok || got != want {
			t.Errorf("CanonicalUUID(%q) = %q, %v", text, got, ok)
		}
	}
	for _, text := range []string{
		"", "{}", "urn:uuid:", "4e8e5957-649f-477b-9e5b-f1f75b21c03", "4e8e5957-649f-477b-9e5b-f1f75b21c03cc",
		"4e8e5957x649f-477b-9e5b-f1f75b21c03c", "4e8e5957-649f-477b-9e5b-f1f75b21c03g",
		"4e8e5957-649f477b-9e5b-f1f7-5b21c03c",
		"{4e8e5957-649f-477b-9e5b-f1f75b21c03c", " 4e8e5957-649f-477b-9e5b-f1f75b21c03c",
	} {
		if got, ok := CanonicalUUID(text); ok {
			t.Errorf("CanonicalUUID(%q) = %q", text, got)
		}
	}
}

func TestClaimNamesEveryProblem(t *testing.T) {
	t.Parallel()
	lower, generation := "lower", int64(1)
	claim := Claim{Consumers: []ConsumerClaim{
		{UUID: uuidOf(1), ProjectID: "p", UserID: "u", Generation: &generation, Allocations: []ProviderAllocation{
			{Provider: uuidOf(2), Resources: amounts(Amount{"VCPU", 1}, Amount{"VCPU", 0})},
			{Provider: strings.ToUpper(uuidOf(2))},
			{Provider: "elsewhere", Resources: amounts(Amount{"vcpu", 1})},
		}, Mappings: []Mapping{{Suffix: ""}, {Suffix: "", Providers: []string{"x"}},
			{Suffix: "!", Providers: []string{uuidOf(2)}}}},
		{UUID: strings.ReplaceAll(uuidOf(1), "-", ""), UserID: strings.Repeat("u", 256),
			Type: &lower, Mappings: []Mapping{}},
	}}
	got := texts(claim.Validate("input"))
	want := []string{
		"input.consumers[0].allocations[0].resources[1].resourceClass: duplicate resource class \"VCPU\"",
		"input.consumers[0].allocations[0].resources[1].amount: must be between 1 and 2147483647",
		"input.consumers[0].allocations[1].provider: duplicate uuid " + uuidOf(2),
		"input.consumers[0].allocations[1].resources: must name at least one amount",
		"input.consumers[0].allocations[2].provider: must be a UUID",
		"input.consumers[0].allocations[2].resources[0].resourceClass: must be 1 to 255 of A-Z, 0-9 and _",
		"input.consumers[0].mappings[0].providers: must name at least one provider",
		"input.consumers[0].mappings[1].suffix: duplicate suffix \"\"",
		"input.consumers[0].mappings[1].providers[0]: must be a UUID",
		"input.consumers[0].mappings[2].suffix: must be empty or 1 to 64 of A-Z, a-z, 0-9, _ and -",
		"input.consumers[1].uuid: duplicate uuid " + uuidOf(1),
		"input.consumers[1].projectId: must be 1 to 255 characters of UTF-8 without U+0000",
		"input.consumers[1].userId: must be 1 to 255 characters of UTF-8 without U+0000",
		"input.consumers[1].type: must be 1 to 255 of A-Z, 0-9 and _",
		"input.consumers[1].mappings: must name at least one group",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	if got := texts((&Claim{}).Validate("input")); !slices.Equal(got,
		[]string{"input.consumers: must name at least one consumer"}) {
		t.Errorf("%q", got)
	}
	empty := Claim{Consumers: []ConsumerClaim{{UUID: uuidOf(1), ProjectID: "p", UserID: "u"}}}
	if got := empty.Validate("input"); got != nil {
		t.Errorf("clearing a consumer: %q", texts(got))
	}
}

func TestReshapeNamesEveryProblem(t *testing.T) {
	t.Parallel()
	if got := texts((&Reshape{}).Validate("input")); !slices.Equal(got,
		[]string{"input.inventories: must name at least one provider"}) {
		t.Errorf("%q", got)
	}
	reshape := Reshape{Inventories: []ProviderInventories{
		{Provider: uuidOf(1)},
		{Provider: uuidOf(1),
			Inventories: []Inventory{{ResourceClass: "VCPU", Total: 3, Reserved: 9, MinUnit: 1,
				MaxUnit: 1, StepSize: 1, AllocationRatio: 1}}},
	}}
	want := []string{
		"input.inventories[1].provider: duplicate uuid " + uuidOf(1),
		"input.inventories[1].inventories[0].reserved: must not leave a negative capacity",
	}
	if got := texts(reshape.Validate("input")); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestLimitsOfARequest(t *testing.T) {
	t.Parallel()
	w := NewWorld(cloudNames, nil)
	r := deviceGroups(65, GroupPolicyNone)
	got := texts(Validate(w, r))
	if want := []string{"groups: has 65 entries, at most 64 are allowed"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	r = &Request{Unsuffixed: threeClasses(1)}
	r.Unsuffixed.RequiredAny = slices.Repeat([]string{"CUSTOM_RARE"}, 257)
	if got := texts(Validate(w, r)); !slices.Equal(got,
		[]string{"requiredAny: has 257 entries, at most 256 are allowed"}) {
		t.Errorf("%q", got)
	}
}
