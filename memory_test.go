package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestMemoryReturnsWhenItIsNoLongerInUse holds memory while the program is idle
// and returns memory, and then drops it. The program stays idle, and returns
// that memory, too. The test is not parallel: others would collect garbage.
func TestMemoryReturnsWhenItIsNoLongerInUse(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	const every, size = 20 * time.Millisecond, 8 * returnBytes
	debug.FreeOSMemory() // so that the memory below is new
	before := memoryInUse().held
	returnMemory(ctx, every)
	answers := [][]byte{make([]byte, size)}
	for i := range answers[0] {
		answers[0][i] = 1
	}
	began := memoryInUse()
	if !patience.Until(t, 10*time.Second, func() bool {
		return memoryInUse().collections >= began.collections+2 // the program tried to return the memory
	}) {
		t.Fatal("memory was never collected")
	}
	runtime.KeepAlive(answers[0]) // or the compiler lets the first collection take it
	answers[0] = nil
	if !patience.Until(t, 20*time.Second, func() bool {
		return memoryInUse().held < before+size/2
	}) {
		t.Errorf("the program holds %d bytes, %d before", memoryInUse().held, before)
	}
}

// TestMemoryOfUnreadAnswersReturns has clients that never read their answers, at
// a server without a memory limit. The server cuts them and returns the memory.
func TestMemoryOfUnreadAnswersReturns(t *testing.T) {
	t.Parallel()
	const clients, answerBytes = 32, 8 * 240 * 4096 // of one answer, or a little more
	program := filepath.Join(t.TempDir(), "unlimited")
	script := fmt.Sprintf("#!/bin/sh\nGOMEMLIMIT=off exec '%s' \"$@\"\n", built(t))
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	server, process := spawn(t, program, configured(t, unlimited), "--database",
		storetest.EmptySQLite(t), "--tokens", tokenFile(t, anAdmin))
	_, made := ask(t, server.address, "secret",
		`mutation { createResource(input: {type: "physical:host", name: "big"}) { resource { uuid } } }`)
	uuid := regexp.MustCompile(`"uuid":"([^"]+)"`).FindStringSubmatch(made)
	if uuid == nil {
		t.Fatal(made)
	}
	var values, fields strings.Builder
	for i := range 240 {
		fmt.Fprintf(&values, `{key: "c%d", value: "%s"} `, i, strings.Repeat("v", 4096))
	}
	if _, answer := ask(t, server.address, "secret", `mutation { setCapabilities(input: {resource: "`+uuid[1]+
		`", capabilities: [`+values.String()+`]}) { resource { uuid } } }`); strings.Contains(answer, "errors") {
		t.Fatal(answer)
	}
	for i := range 8 {
		fmt.Fprintf(&fields, `a%d: resource(uuid: "%s") { capabilities(includePrivate: true) { value } } `, i, uuid[1])
	}
	if _, answer := ask(t, server.address, "secret", "{"+fields.String()+"}"); len(answer) < answerBytes {
		t.Fatalf("an answer of %d bytes: %.300s", len(answer), answer)
	}
	body, err := json.Marshal(map[string]string{"query": "{" + fields.String() + "}"})
	if err != nil {
		t.Fatal(err)
	}
	before := residentBytes(t, process.Pid)
	for range clients {
		connection, err := net.Dial("tcp", strings.TrimPrefix(server.address, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = connection.Close() })
		if _, err := fmt.Fprintf(connection,
			"POST /graphql HTTP/1.1\r\nHost: localhost\r\nX-Auth-Token: secret\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body); err != nil {
			t.Fatal(err)
		}
	}
	most := before
	if !patience.Until(t, time.Minute, func() bool {
		most = max(most, residentBytes(t, process.Pid))
		return most > before+clients*answerBytes/2
	}) {
		t.Fatalf("%d unread answers take %d bytes, %d before", clients, most, before)
	}
	now := most
	if !patience.Until(t, time.Minute, func() bool {
		now = residentBytes(t, process.Pid)
		return now < before+clients*answerBytes/4
	}) {
		t.Errorf("the server holds %d bytes, %d with unread answers, %d before", now, most, before)
	}
}

// residentBytes returns the memory of a process, in bytes.
func residentBytes(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skip("needs /proc")
	}
	_, rest, _ := bytes.Cut(status, []byte("VmRSS:"))
	kilobytes, err := strconv.Atoi(strings.Fields(string(rest) + " 0")[0])
	if err != nil {
		t.Fatal(err)
	}
	return kilobytes << 10
}
