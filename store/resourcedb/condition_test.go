package resourcedb_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/resource/resourcetest"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

const list = `["aes", "mmx", "aux"]`

// operatorTable lists examples of scheduler requirements: N01 to N40 in the
// order of the list of behaviour, then more. The value "absent" means that
// there is none.
var operatorTable = []struct {
	requirement, value, want string // Y, n, or refused
}{
	{"x86_64", "x86_64", "Y"}, {"x86_64", "X86_64", "n"}, {"a b", "a b", "Y"}, {"a b", "a", "n"},
	{"= 123", "124", "Y"}, {"= 234", "34", "n"}, {"=", "34", "refused"}, {"== 12", "12.0", "Y"}, {"!= 2.0", "2", "n"},
	{">= 1", "abc", "n"}, {"== 2.1.0", "2.1.0", "refused"}, {"s== 2.1.0", "2.1.0", "Y"},
	{">= 10", "9", "n"}, {"s>= 10", "9", "Y"},
	{"s>= 234", "1000", "n"}, {"> 2", "4", "Y"}, {">=5", "5", "refused"},
	{"  == 5", "5", "Y"}, {"== 5 6", "5", "refused"},
	{"<in> 11", "12311321", "Y"}, {"<in> 99 <in> 11", "12311321", "refused"},
	{"<in> ae", list, "n"}, {"<all-in> aes mmx", list, "Y"},
	{"<all-in> a", list, "n"}, {"<all-in> aes txt", list, "n"},
	{"<all-in> aes,mmx", list, "Y"}, {"<all-in>", list, "refused"},
	{"<or> aes <or> mmx", list, "Y"}, {"<or> 11 <or> 12", "12", "Y"},
	{"<or> 11 <or> 12 <or>", "12", "Y"}, {"<or> 11 <or> 12", "13", "n"},
	{"<or> 11 12", "12", "refused"}, {"<or> 11,12", "11", "Y"},
	{"<or> intel <or> amd", "Intel", "n"}, {"<or>", "x", "refused"},
	{"<is> yes", "True", "refused"}, {"s!= x", "", "Y"}, {"s!= x", "absent", "n"},
	{"<range-in> [ 10 20 )", "20", "refused"}, {"== 1", "True", "n"},
	{"<or> 11 <or> 12 <or>", "13", "n"},     // N41
	{"<in> 12311321 <in>", "12311321", "Y"}, // N42: an operator at the end, where <or> is allowed, too
	{"<in> 11 <in>", "12310321", "n"}, {"<in> <in>", "<in>", "refused"},
	{"<or> nvme", `["ssd", "nvme"]`, "Y"},            // N47
	{"s!= ssd", `["ssd", "nvme"]`, "Y"},              // N47: any value is enough
	{"<in> aes", list, "Y"}, {"<in> es", "aes", "Y"}, // members, and text
	{"<= 9007199254740992", "9007199254740993", "n"}, // compared without rounding
	{"s< b", "a", "Y"}, {"s<= a", "a", "Y"}, {"s> é", "f", "n"}, {"s> Z", "a", "Y"}, {"s< z", "é", "n"},
	// without operator: the whole value
	{"", "", "Y"}, {"", "x", "n"}, {"   ", "x", "n"}, {"   ", "   ", "Y"}, {"1", "", "n"},
	{"<all-in> ,", list, "refused"},
	{"< 2", "4", "n"}, {"64", "64.0", "Y"}, {"64", "065", "n"}, {"<or> 64 <or> 128", "128.0", "Y"},
	{"<or> NVIDIA A2 <or> NVIDIA A100", "NVIDIA A100", "Y"}, {"<or> NVIDIA A2 <or> NVIDIA A100", "NVIDIA", "n"},
	{"<or> NVIDIA A2,NVIDIA A100", "NVIDIA A2", "Y"}, {`<or> "NVIDIA A2"`, "NVIDIA A2", "Y"},
	{`<or> "a,b" <or> c`, "a,b", "Y"}, {`<or> "a,b","c <or> d"`, "c <or> d", "Y"},
	{`s== "NVIDIA A2"`, "NVIDIA A2", "Y"}, {`s== "a \"b\" \\"`, `a "b" \`, "Y"}, {`s== ""`, "", "Y"},
	{`s== "<or> x"`, "<or> x", "Y"}, {`"x"`, "x", "n"},
	{`<in> "A1 0"`, "NVIDIA A1 00", "Y"}, {`<all-in> "a b" c`, `["c", "a b"]`, "Y"}, {`s== "a`, "a", "refused"},
	{`<or> "a" b <or> c`, "a", "refused"},
	{"<or> VMware vCenter", "VMware vCenter", "refused"}, {"<or> <or> a", "a", "refused"}, {`<or> "a"`, `"a"`, "n"},
}

// TestRequirements checks the table with both evaluators.
func TestRequirements(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx := storetest.AsAdmin()
		for i, row := range operatorTable {
			name := fmt.Sprintf("row-%02d", i+1)
			input := resource.Input{Type: "physical:host", Name: name}
			facts := resourcetest.Facts{Capabilities: map[string]string{}}
			if row.value != "absent" {
				input.Capabilities = []metadef.KeyValue{{Key: name, Value: row.value}}
				facts.Capabilities[name] = row.value
			} else if _, err := s.CreateCapability(ctx, "physical:host", name, nil); err != nil {
				t.Fatal(err)
			}
			if _, err := s.CreateResource(ctx, input); err != nil {
				t.Fatal(err)
			}
			requirement := resource.Requirement{Key: "capabilities:" + name, Requirement: row.requirement}
			var problems problem.Problems
			oracle := "n"
			if resourcetest.Matches(requirement.Condition(&problems, ""), facts) {
				oracle = "Y"
			}
			if len(problems) > 0 {
				oracle = "refused"
			}
			asked := "n"
			n, err := s.CountResources(ctx, resource.Filter{Requirements: []resource.Requirement{requirement}})
			switch {
			case err != nil:
				asked = "refused"
			case n > 0:
				asked = "Y"
			}
			if oracle != row.want || asked != row.want {
				t.Errorf("N%02d %q of %q: the oracle says %s, the database %s (%v), want %s", i+1, row.requirement,
					row.value, oracle, asked, err, row.want)
			}
		}
	})
}

func asMember(project string) context.Context {
	return access.WithViewer(context.Background(),
		access.Viewer{UserID: "mel", ProjectID: project, Roles: []string{access.RoleMember}})
}

// TestConditionsMeanTheSameInTheDatabase compares the oracle and the database
// for random conditions on random resources.
func TestConditionsMeanTheSameInTheDatabase(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx := storetest.AsAdmin()
		random := rand.New(rand.NewPCG(7, 11))
		values := []string{"", "1", "2", "10", "10.0", "-3", "a", "b", "ab", "A", "é", "007", "1e1", `["1", "a"]`,
			`["10", "b", "ab"]`, `[]`, "%", "_", `\`, strings.Repeat("x", 70) + "a", strings.Repeat("x", 70) + "b"}
		pick := func(from []string) string { return from[random.IntN(len(from))] }
		facts := map[string]resourcetest.Facts{}
		for i := range 40 {
			of := resourcetest.Facts{Metadata: map[string]string{}, Capabilities: map[string]string{}}
			input := resource.Input{Type: "physical:host", Name: fmt.Sprintf("r%02d", i)}
			for _, name := range []string{"k", "l", "m"} {
				if random.IntN(3) > 0 {
					of.Metadata[name] = pick(values[1:]) // metadata has no empty value
					input.Metadata = append(input.Metadata, metadef.KeyValue{Key: name, Value: of.Metadata[name]})
				}
				if random.IntN(3) > 0 || i == 0 {
					of.Capabilities[name] = pick(values)
					input.Capabilities = append(input.Capabilities,
						metadef.KeyValue{Key: name, Value: of.Capabilities[name]})
				}
			}
			if _, err := s.CreateResource(ctx, input); err != nil {
				t.Fatal(err)
			}
			facts[input.Name] = of
		}
		for range 300 {
			where := randomCondition(random, pick, values, 3)
			var problems problem.Problems
			condition := where.Condition(&problems, "where")
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			var want []string
			for name, of := range facts {
				if resourcetest.Matches(condition, of) {
					want = append(want, name)
				}
			}
			slices.Sort(want)
			page, err := s.Resources(ctx, resource.Filter{Where: &where}, page.Order{Field: "NAME"}, page.Request{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range page.Items {
				got = append(got, r.Name)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%+v: the database finds %v, the oracle %v", condition, got, want)
			}
		}
	})
}

func randomCondition(random *rand.Rand, pick func([]string) string, values []string,
	depth int) resource.ConditionInput {
	members := func() []resource.ConditionInput {
		list := []resource.ConditionInput{}
		for range random.IntN(4) {
			list = append(list, randomCondition(random, pick, values, depth-1))
		}
		return list
	}
	operand, name := pick(values), pick([]string{"k", "l", "m"})
	if depth > 0 {
		switch random.IntN(6) {
		case 0:
			return resource.ConditionInput{All: members()}
		case 1:
			return resource.ConditionInput{Any: members()}
		case 2:
			inner := randomCondition(random, pick, values, depth-1)
			return resource.ConditionInput{Not: &inner}
		}
	}
	there := random.IntN(2) == 0
	if random.IntN(2) == 0 {
		return resource.ConditionInput{Metadata: &[]resource.MetadataCondition{
			{Key: name, Exists: &there}, {Key: name, Equals: &operand},
			{Key: name, In: []string{operand, pick(values)}},
			{Key: name, Prefix: &operand}, {Key: name, Contains: &operand},
		}[random.IntN(5)]}
	}
	return resource.ConditionInput{Capability: &[]resource.CapabilityCondition{
		{Name: name, Exists: &there}, {Name: name, Equals: &operand}, {Name: name, In: []string{operand, pick(values)}},
		{Name: name, Gte: &operand}, {Name: name, Lte: &operand}, {Name: name, Contains: &operand},
	}[random.IntN(6)]}
}
