package placement_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/cadastre-dev/cadastre/placement"
)

var update = flag.Bool("update", false, "rewrite the candidates listed in testdata; the numbers stay")

// A scenario file is a sequence of worlds and cases, each ended by an empty line; # begins a comment.
//
//	world
//	cn1 [A] {COMPUTE_NODE}: VCPU 8 used 3, MEMORY_MB 2048 min 1024 step 128 max 2048 reserved 0 ratio 1.5
//	  numa0: ...                                  # indented: a child
//
//	case what it shows
//	unsuffixed: resources VCPU:1 DISK_GB:1; requiredAll T; requiredAny T U; anyOf T U; forbidden T; memberOf A B !C; inTree cn1
//	group _NET: ...
//	policy isolate
//	sameSubtree _NET _CPU
//	rootRequired T
//	rootForbidden T
//	summaries 3                                   # number of provider summaries
//	=> 1                                          # number of candidates, then each of them in order
//	cn1 VCPU:1 | =cn1 _NET=cn1                    # what each gives | who serves which group
//
// Instead of "=> n" a case may say "violation path: rule" once or more. A "filter: ..." line asks for
// providers; its "=>" lists names. Providers are ordered as written: uuids are numbered from the top.
// Inventories default to maxUnit = total.
type scenario struct {
	t      *testing.T
	names  map[string]string // uuid by name
	byUUID map[string]string
	world  *World
	list   []Provider
}

func TestScenarios(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scenarios", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var rewritten []string
			s := &scenario{t: t}
			for _, block := range strings.Split(strings.TrimRight(string(text), "\n"), "\n\n") {
				rewritten = append(rewritten, s.run(t, block))
			}
			if *update {
				if err := os.WriteFile(file, []byte(strings.Join(rewritten, "\n\n")+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// run reads one block and returns it with the candidates that were found.
func (s *scenario) run(t *testing.T, block string) string {
	lines := strings.Split(block, "\n")
	first := slices.IndexFunc(lines, func(line string) bool { return !strings.HasPrefix(line, "#") })
	if first < 0 {
		return block
	}
	head, rest := lines[first], lines[first+1:]
	switch {
	case head == "world":
		s.build(rest)
	case strings.HasPrefix(head, "case "):
		t.Run(strings.TrimPrefix(head, "case "), func(t *testing.T) {
			s.t = t
			rest = s.check(rest)
		})
		return strings.Join(append(lines[:first+1:first+1], rest...), "\n")
	default:
		t.Fatalf("neither world nor case: %q", head)
	}
	return block
}

func (s *scenario) build(lines []string) {
	s.names, s.byUUID, s.list = map[string]string{}, map[string]string{}, nil
	names := Names{Traits: []string{TraitShares}, ResourceClasses: []string{"DISK_GB", "MEMORY_MB", "VCPU", "VGPU"}}
	var above []string // uuid per level of indentation
	for _, line := range lines {
		line, _, _ = strings.Cut(line, "#")
		if strings.TrimSpace(line) == "" {
			continue
		}
		level := (len(line) - len(strings.TrimLeft(line, " "))) / 2
		head, content, _ := strings.Cut(line, ":")
		p := Provider{UUID: fmt.Sprintf("%08x-0000-4000-8000-%012x", len(s.list)+1, len(s.list)+1), Version: 1}
		if level > 0 {
			p.Parent = above[level-1]
		}
		above = append(above[:level], p.UUID)
		var list *[]string
		for _, word := range strings.Fields(strings.NewReplacer("[", " [ ", "]", " ] ", "{", " { ", "}", " } ").Replace(head)) {
			switch {
			case word == "[":
				list = &p.Aggregates
			case word == "{":
				list = &p.Traits
			case word == "]" || word == "}":
				list = nil
			case list == &p.Aggregates:
				p.Aggregates = append(p.Aggregates, s.aggregate(word))
			case list == &p.Traits:
				p.Traits = append(p.Traits, word)
			default:
				p.Name = word
			}
		}
		for _, part := range strings.Split(content, ",") {
			if fields := strings.Fields(part); len(fields) > 0 {
				p.Inventories = append(p.Inventories, s.inventory(fields))
				names.ResourceClasses = append(names.ResourceClasses, fields[0])
			}
		}
		names.Traits = append(names.Traits, p.Traits...)
		s.names[p.Name], s.byUUID[p.UUID] = p.UUID, p.Name
		s.list = append(s.list, p)
	}
	s.world = NewWorld(names, s.list)
}

func (s *scenario) aggregate(name string) string {
	return fmt.Sprintf("aaaaaaaa-0000-4000-8000-%012x", name)[:36]
}

func (s *scenario) inventory(fields []string) Inventory {
	total := int32(s.number(fields[1]))
	i := Inventory{ResourceClass: fields[0], Total: total, MinUnit: 1, MaxUnit: total, StepSize: 1, AllocationRatio: 1}
	for k := 2; k+1 < len(fields); k += 2 {
		switch fields[k] {
		case "used":
			i.Used = s.number(fields[k+1])
		case "reserved":
			i.Reserved = int32(s.number(fields[k+1]))
		case "min":
			i.MinUnit = int32(s.number(fields[k+1]))
		case "max":
			i.MaxUnit = int32(s.number(fields[k+1]))
		case "step":
			i.StepSize = int32(s.number(fields[k+1]))
		case "ratio":
			ratio, err := strconv.ParseFloat(fields[k+1], 64)
			if err != nil {
				s.t.Fatal(err)
			}
			i.AllocationRatio = ratio
		default:
			s.t.Fatalf("no such field of an inventory: %s", fields[k])
		}
	}
	i.Capacity = Capacity(i.Total, i.Reserved, i.AllocationRatio)
	return i
}

func (s *scenario) number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *scenario) group(suffix, text string) Group {
	g := Group{Suffix: suffix}
	for _, part := range strings.Split(text, ";") {
		fields := strings.Fields(part)
		if len(fields) == 0 {
			continue
		}
		words := fields[1:]
		switch fields[0] {
		case "resources":
			for _, word := range words {
				class, amount, _ := strings.Cut(word, ":")
				g.Resources = append(g.Resources, Amount{ResourceClass: class, Amount: s.number(amount)})
			}
		case "requiredAll":
			g.RequiredAll = append(g.RequiredAll, words...)
		case "requiredAny":
			g.RequiredAny = words
		case "anyOf":
			g.RequiredAnySets = append(g.RequiredAnySets, TraitSet{AnyOf: words})
		case "forbidden":
			g.Forbidden = append(g.Forbidden, words...)
		case "memberOf":
			var filter AggregateFilter
			for _, word := range words {
				if name, none := strings.CutPrefix(word, "!"); none {
					filter.NoneOf = append(filter.NoneOf, s.aggregate(name))
				} else {
					filter.AnyOf = append(filter.AnyOf, s.aggregate(word))
				}
			}
			g.MemberOf = append(g.MemberOf, filter)
		case "inTree":
			g.InTree = s.uuid(words[0])
		default:
			s.t.Fatalf("no such part of a group: %s", fields[0])
		}
	}
	return g
}

// uuid is a provider's uuid; a name that no provider has stands for a uuid that nobody has, or for itself.
func (s *scenario) uuid(name string) string {
	if uuid, found := s.names[name]; found {
		return uuid
	}
	if name == "nobody" {
		return "ffffffff-0000-4000-8000-000000000000"
	}
	return name
}

// check runs a case and returns its lines with the candidates found.
func (s *scenario) check(lines []string) []string {
	var r Request
	var violations []string
	var filter *Group
	summaries, want, at := -1, "", len(lines)
	for i, line := range lines {
		verb, rest, _ := strings.Cut(line, " ")
		switch {
		case strings.HasPrefix(line, "#"):
		case verb == "unsuffixed:":
			r.Unsuffixed = s.group("", rest)
		case verb == "group":
			suffix, text, _ := strings.Cut(rest, ":")
			r.Groups = append(r.Groups, s.group(strings.Trim(suffix, `"`), text))
		case verb == "filter:":
			g := s.group("", rest)
			filter = &g
		case verb == "policy":
			r.Policy = map[string]GroupPolicy{"none": GroupPolicyNone, "isolate": GroupPolicyIsolate}[rest]
		case verb == "sameSubtree":
			r.SameSubtree = append(r.SameSubtree, Subtree{Suffixes: strings.Split(strings.ReplaceAll(rest, `""`, ""), " ")})
		case verb == "rootRequired":
			r.RootRequired = strings.Fields(rest)
		case verb == "rootForbidden":
			r.RootForbidden = strings.Fields(rest)
		case verb == "violation":
			violations = append(violations, rest)
		case verb == "summaries":
			summaries = int(s.number(rest))
		case verb == "=>":
			want, at = rest, i
		default:
			s.t.Fatalf("no such line: %s", line)
		}
		if at < len(lines) {
			break
		}
	}

	if filter != nil {
		return s.filter(lines, *filter, want, violations)
	}
	if got := Validate(s.world, &r); !slices.Equal(texts(got), violations) {
		s.t.Fatalf("violations %q, want %q", texts(got), violations)
	}
	if len(violations) > 0 {
		return lines
	}
	page, err := Candidates(s.world, &r, nil, MaxCount)
	if err != nil {
		s.t.Fatal(err)
	}
	var got []string
	for _, c := range page.Candidates {
		got = append(got, renderCandidate(c, func(uuid string) string { return s.byUUID[uuid] }))
		if err := Check(s.world, &r, c); err != nil {
			s.t.Errorf("%s: %v", got[len(got)-1], err)
		}
	}
	if fmt.Sprint(len(got)) != want {
		s.t.Errorf("%d candidates, want %s:\n%s", len(got), want, strings.Join(got, "\n"))
	}
	if brute := newOracle(s.list).candidates(&r); render(brute) != render(page.Candidates) {
		s.t.Errorf("the oracle says\n%s", render(brute))
	}
	if n := len(ProviderSummaries(s.world, page.Candidates)); summaries >= 0 && n != summaries {
		s.t.Errorf("%d summaries, want %d", n, summaries)
	}
	if *update {
		return append(lines[:at+1:at+1], got...)
	}
	if !slices.Equal(got, lines[at+1:]) {
		s.t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(lines[at+1:], "\n"))
	}
	return lines
}

func (s *scenario) filter(lines []string, g Group, want string, violations []string) []string {
	f := ProviderFilter{MemberOf: g.MemberOf, RequiredAll: g.RequiredAll, RequiredAny: g.RequiredAny,
		RequiredAnySets: g.RequiredAnySets, Forbidden: g.Forbidden, Resources: g.Resources, InTree: g.InTree}
	if got := f.Validate(s.world, "filter"); !slices.Equal(texts(got), violations) {
		s.t.Fatalf("violations %q, want %q", texts(got), violations)
	}
	if len(violations) > 0 {
		return lines
	}
	var got []string
	for _, p := range s.world.Filter(f) {
		got = append(got, p.Name)
	}
	if strings.Join(got, " ") != strings.TrimSpace(want) {
		s.t.Errorf("got %v, want %s", got, want)
	}
	return lines
}

func texts(violations []Problem) []string {
	var list []string
	for _, v := range violations {
		list = append(list, v.String())
	}
	return list
}
