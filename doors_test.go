package main

import (
	"bufio"
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestTheDoorsFollowTheirScripts plays the scripts in testdata/doors against a
// server with the APIs of OpenStack's services. A script has steps: a line with
// the token, the method, the path and the body, and a line with the status and
// the strings that the answer must have, or must not have after !. NAME=PATTERN
// keeps the match of the group in the pattern, for ${NAME} in later lines. A
// token may carry headers: token+Name:value.
func TestTheDoorsFollowTheirScripts(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob("testdata/doors/*.txt")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	tokens := tokenFile(t, anAdmin,
		"{token: member, user: mia, project: demo, roles: [member]}",
		"{token: reader, user: rae, project: demo, roles: [reader]}",
		"{token: stranger, user: sam, project: other, roles: [member]}",
		"{token: service, user: nova, project: service, roles: [service]}")
	storetest.EachURL(t, func(t *testing.T, url string) {
		s, _ := boot(t, "--database", url, "--tokens", tokens, "--openstack-api",
			"placement,image,share,reservation", configured(t, unlimited))
		for _, name := range scripts {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
				play(t, s.address, string(text))
			})
		}
	})
}

// play plays a script.
func play(t *testing.T, address, script string) {
	kept := map[string]string{}
	lines := bufio.NewScanner(strings.NewReader(script))
	step, number := "", 0
	for lines.Scan() {
		number++
		line := os.Expand(lines.Text(), func(name string) string { return kept[name] })
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case step == "":
			step = line
		default:
			status, answer := perform(t, address, step)
			for _, wrong := range judge(line, status, answer, kept) {
				t.Errorf("line %d: %s: %s\n%d %s", number, step, wrong, status, answer)
			}
			step = ""
		}
	}
}

// perform sends the request of a step.
func perform(t *testing.T, address, step string) (status int, answer string) {
	t.Helper()
	parts := strings.SplitN(step, " ", 4)
	body := ""
	if len(parts) == 4 {
		body = parts[3]
	}
	path := parts[2]
	if path != "/graphql" {
		path = "/openstack" + path
	}
	request, err := http.NewRequestWithContext(t.Context(), parts[1], address+path, bytes.NewBufferString(body))
	if err != nil {
		t.Fatalf("%s: %v", step, err)
	}
	request.Header.Set("Accept", "application/json") // Glance's errors are HTML otherwise
	token, headers, _ := strings.Cut(parts[0], "+")
	if token != "nobody" {
		request.Header.Set("X-Auth-Token", token)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	if name, value, ok := strings.Cut(headers, ":"); ok {
		request.Header.Set(name, value)
	}
	return fetch(t, request)
}

var keeps = regexp.MustCompile(`^(\w+)=(.*\(.*)$`)

// judge returns how an answer differs from the line that describes it.
func judge(line string, status int, answer string, kept map[string]string) (wrong []string) {
	wants := strings.Split(line, " | ")
	if code, err := strconv.Atoi(wants[0]); err != nil || code != status {
		wrong = append(wrong, "the status is not "+wants[0])
	}
	for _, want := range wants[1:] {
		if found := keeps.FindStringSubmatch(want); found != nil {
			if group := regexp.MustCompile(found[2]).FindStringSubmatch(answer); group != nil {
				kept[found[1]] = group[1]
				continue
			}
		}
		text, isNot := strings.CutPrefix(want, "!")
		if strings.Contains(answer, text) == isNot {
			wrong = append(wrong, "want "+want)
		}
	}
	return wrong
}
