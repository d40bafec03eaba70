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

// A scenario file is a sequence of worlds and cases, each ended by an empty
// line; # begins a comment.
//
//	world
//	cn1 [A] {COMPUTE_NODE}: VCPU 8 used 3, MEMORY_MB 2048 min 1024 step 128 max 2048 reserved 0 ratio 1.5
//	  numa0: ...                                  # indented: a child
//
//	case NAME
//	unsuffixed: resources VCPU:1 DISK_GB:1; requiredAll T; requiredAny T U; anyOf T U; forbidden T; memberOf A; inTree cn1
//	group _NET: ...
//	policy isolate
//	sameSubtree _NET _CPU
//	rootRequired T
//	rootForbidden T
//	summaries 3                                   # number of provider summaries
//	=> 1                                          # number of candidates, then each of them in order
//	cn1 VCPU:1 | =cn1 _NET=cn1                    # allocations | the providers of each group
//
// Instead of "=> n" a case may say "problem path: message" once or more. A
// "filter: ..." line asks for providers; its "=>" lists names. Providers are
// ordered as written: uuids are numbered from the top. Inventories default to
// maxUnit = total.
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
		s.readHead(head, &p)
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

// readHead reads the name, the aggregates and the traits of a provider.
func (s *scenario) readHead(head string, p *Provider) {
	var list *[]string
	for _, word := range strings.Fields(strings.NewReplacer("[", " [ ", "]", " ] ", "{", " { ", "}", " } ").
		Replace(head)) {
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

// uuid returns the uuid of the provider with a name. For "nobody" it returns an
// unknown uuid. It returns any other string unchanged.
func (s *scenario) uuid(name string) string {
	if uuid, ok := s.names[name]; ok {
		return uuid
	}
	if name == "nobody" {
		return "ffffffff-0000-4000-8000-000000000000"
	}
	return name
}

// question is the input of a case and the expected result.
type question struct {
	request   Request
	filter    *Group   // instead of the request
	problems  []string // expected
	summaries int      // expected, -1 for any
	want      string   // after "=>"
	after     []string // lines after that of "=>"
}

// read reads the lines of a case up to "=>" and returns their number.
func (s *scenario) read(lines []string, q *question) int {
	r := &q.request
	for i, line := range lines {
		verb, rest, _ := strings.Cut(line, " ")
		switch verb {
		case "unsuffixed:":
			r.Unsuffixed = s.group("", rest)
		case "group":
			suffix, text, _ := strings.Cut(rest, ":")
			r.Groups = append(r.Groups, s.group(strings.Trim(suffix, `"`), text))
		case "filter:":
			g := s.group("", rest)
			q.filter = &g
		case "policy":
			r.Policy = map[string]GroupPolicy{"none": GroupPolicyNone, "isolate": GroupPolicyIsolate}[rest]
		case "sameSubtree":
			r.SameSubtree = append(r.SameSubtree,
				Subtree{Suffixes: strings.Split(strings.ReplaceAll(rest, `""`, ""), " ")})
		case "rootRequired":
			r.RootRequired = strings.Fields(rest)
		case "rootForbidden":
			r.RootForbidden = strings.Fields(rest)
		case "problem":
			q.problems = append(q.problems, rest)
		case "summaries":
			q.summaries = int(s.number(rest))
		case "=>":
			q.want, q.after = rest, lines[i+1:]
			return i + 1
		default:
			if !strings.HasPrefix(line, "#") {
				s.t.Fatalf("no such line: %s", line)
			}
		}
	}
	return len(lines)
}

// check runs a case and returns its lines with the candidates found.
func (s *scenario) check(lines []string) []string {
	q := question{summaries: -1}
	end := s.read(lines, &q)
	if q.filter != nil {
		s.checkFilter(q)
		return lines
	}
	if got := texts(Validate(s.world, &q.request)); !slices.Equal(got, q.problems) {
		s.t.Fatalf("problems %q, want %q", got, q.problems)
	}
	if len(q.problems) > 0 {
		return lines
	}
	got := s.checkCandidates(q)
	if *update {
		return append(lines[:end:end], got...)
	}
	if !slices.Equal(got, q.after) {
		s.t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(q.after, "\n"))
	}
	return lines
}

// checkCandidates compares the candidates with the definitions and returns them
// as lines.
func (s *scenario) checkCandidates(q question) []string {
	page, err := Candidates(s.world, &q.request, nil, MaxCount)
	if err != nil {
		s.t.Fatal(err)
	}
	var got []string
	for _, c := range page.Candidates {
		got = append(got, renderCandidate(c, func(uuid string) string { return s.byUUID[uuid] }))
		if err := Check(s.world, &q.request, c); err != nil {
			s.t.Errorf("%s: %v", got[len(got)-1], err)
		}
	}
	if fmt.Sprint(len(got)) != q.want {
		s.t.Errorf("%d candidates, want %s:\n%s", len(got), q.want, strings.Join(got, "\n"))
	}
	if brute := newOracle(s.list).candidates(&q.request); render(brute) != render(page.Candidates) {
		s.t.Errorf("the oracle says\n%s", render(brute))
	}
	if n := len(ProviderSummaries(s.world, page.Candidates)); q.summaries >= 0 && n != q.summaries {
		s.t.Errorf("%d summaries, want %d", n, q.summaries)
	}
	return got
}

func (s *scenario) checkFilter(q question) {
	f := filterOf(q.filter)
	if got := texts(f.Validate(s.world, "filter")); !slices.Equal(got, q.problems) {
		s.t.Fatalf("problems %q, want %q", got, q.problems)
	}
	if len(q.problems) > 0 {
		return
	}
	if got := named(s.world.Filter(f)); got != strings.TrimSpace(q.want) {
		s.t.Errorf("got %s, want %s", got, q.want)
	}
}

// filterOf returns the filter with the constraints of a group.
func filterOf(g *Group) ProviderFilter {
	return ProviderFilter{InTree: g.InTree, MemberOf: g.MemberOf,
		RequiredAll: g.RequiredAll, RequiredAny: g.RequiredAny,
		RequiredAnySets: g.RequiredAnySets, Forbidden: g.Forbidden, Resources: g.Resources}
}

func texts(problems []Problem) []string {
	var list []string
	for _, p := range problems {
		list = append(list, p.String())
	}
	return list
}
