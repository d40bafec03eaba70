package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"github.com/cadastre-dev/cadastre/bench/local"
	"github.com/cadastre-dev/cadastre/internal/pause"
)

// attackCommand is the argument that makes the program an attacker.
const attackCommand = "attack"

// orders are the instructions for an attacker. An attacker is a separate
// process, so that its processor time can be measured.
type orders struct {
	Addresses   []string // of the servers; each gets a share of the connections
	From        string   // address to connect from
	Token       string
	Manner      manner
	Connections int
	Bodies      [][]byte // sent in turn
	For         time.Duration
	Pause       time.Duration // idle time of a connection after a refusal
	Processor   float64       // fraction of a processor that it may use; 0 is no limit
}

// toll is the result of an attacker.
type toll struct {
	Codes     map[string]int
	Processor float64 // fraction of a processor that it used
}

// attackIn runs an attacker in a separate process until its time is over.
func attackIn(ctx context.Context, given orders) (of toll, err error) {
	program, err := os.Executable()
	if err != nil {
		return of, err
	}
	command := exec.CommandContext(ctx, program, attackCommand)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	if err != nil {
		return of, err
	}
	go func() { _ = json.NewEncoder(input).Encode(given) }() // and left open: the attacker ends when it is closed
	out, err := command.Output()
	if err != nil {
		return of, fmt.Errorf("run the attacker: %w", err)
	}
	return of, json.Unmarshal(out, &of)
}

// runAttacker runs this process as an attacker. It reads orders and writes a
// toll.
func runAttacker(in io.Reader, out io.Writer) error {
	a := &attacker{began: time.Now(), codes: counts{}}
	if err := json.NewDecoder(in).Decode(&a.orders); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), a.For)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, in) // until the parent ends
		cancel()
	}()
	var running sync.WaitGroup
	for i := range a.Connections {
		running.Go(func() { a.run(ctx, i) })
	}
	running.Wait()
	return json.NewEncoder(out).Encode(toll{a.codes, used().Seconds() / time.Since(a.began).Seconds()})
}

// attacker is the state of a process that attacks.
type attacker struct {
	orders
	began time.Time
	mu    sync.Mutex
	next  int // index of the next body
	codes counts
}

// counts are numbers by name.
type counts map[string]int

func (c counts) add(more counts) {
	for name, count := range more {
		c[name] += count
	}
}

// String returns names with their counts, the largest first.
func (c counts) String() string {
	names := slices.SortedFunc(maps.Keys(c), func(a, b string) int { return cmp.Or(c[b]-c[a], strings.Compare(a, b)) })
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %d", name, c[name])
	}
	return strings.Join(names, ", ")
}

// used returns the processor time of this process.
func used() time.Duration {
	var of syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &of); err != nil {
		return 0
	}
	return time.Duration(of.Utime.Nano() + of.Stime.Nano())
}

// run runs the i-th connection. It stays within the process's share of a
// processor.
func (a *attacker) run(ctx context.Context, i int) {
	address := a.Addresses[i%len(a.Addresses)]
	c := local.NewClient(address, local.Bearing(a.Token), a.From, 1, requestTime)
	defer c.Close()
	var answer bytes.Buffer
	for ctx.Err() == nil {
		for a.Processor > 0 && used().Seconds() > a.Processor*time.Since(a.began).Seconds() && ctx.Err() == nil {
			pause.For(ctx, time.Millisecond)
		}
		code := ""
		switch a.Manner {
		case asking, guessing:
			if a.Manner == guessing {
				c.Headers = local.Bearing(rand.Text())
			}
			got := c.Send(ctx, local.Call{Body: a.body()}, &answer)
			if code = got.Code; got.Status >= 400 && got.Status < 500 || got.Status == 503 || got.Status == 0 {
				pause.For(ctx, a.Pause)
			}
		case lurking:
			code = a.lurk(ctx, address, fmt.Sprintf(strangerAddress, 1+i%strangerAddresses))
		default:
			code = a.occupy(ctx, address)
		}
		if ctx.Err() == nil {
			a.mu.Lock()
			a.codes[code]++
			a.mu.Unlock()
		}
	}
}

func (a *attacker) body() []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.next++
	return a.Bodies[a.next%len(a.Bodies)]
}

// occupy opens a connection and returns its outcome. A connecting attacker
// closes it after a pause. Others send or read slowly or not at all, until the
// server closes it.
func (a *attacker) occupy(ctx context.Context, address string) string {
	connection, err := local.Dialer(a.From).DialContext(ctx, "tcp", address)
	if err != nil {
		pause.For(ctx, a.Pause)
		return local.Disconnected
	}
	defer func() { _ = connection.Close() }()
	defer context.AfterFunc(ctx, func() { _ = connection.Close() })()
	tcp := connection.(*net.TCPConn)
	if a.Manner == connecting {
		_ = tcp.SetLinger(0) // a port in TIME_WAIT is not available to later attacks
		pause.For(ctx, a.Pause)
		return "connected"
	}
	_ = tcp.SetReadBuffer(4 << 10)
	body := a.body()
	message := append(fmt.Appendf(nil, "POST /graphql HTTP/1.1\r\nHost: %s\r\n%sContent-Length: %d\r\n\r\n",
		address, local.Bearing(a.Token), len(body)), body...)
	if a.Manner == sendingSlowly {
		return sendSlowly(ctx, connection, message)
	}
	if _, err := connection.Write(message); err != nil {
		return local.Unanswered
	}
	return a.readSlowly(ctx, connection)
}

// aByte is the time that a slow connection takes for one byte.
const aByte = time.Second

func sendSlowly(ctx context.Context, connection net.Conn, message []byte) string {
	for i := range message {
		if _, err := connection.Write(message[i : i+1]); err != nil {
			return "cut while sending"
		}
		pause.For(ctx, aByte)
	}
	return "sent"
}

// readSlowly reads the status of an answer. After 200 it reads one byte per
// second or nothing until the server closes the connection. It returns the
// outcome.
func (a *attacker) readSlowly(ctx context.Context, connection net.Conn) string {
	status := make([]byte, len("HTTP/1.1 200"))
	if _, err := io.ReadFull(connection, status); err != nil {
		return local.Unanswered
	}
	if code := string(status[len("HTTP/1.1 "):]); code != "200" {
		pause.For(ctx, a.Pause)
		return code
	}
	for {
		if !pause.For(ctx, aByte) {
			return "held"
		}
		if a.Manner == readingSlowly {
			if _, err := connection.Read(status[:1]); err != nil {
				return "cut while reading"
			}
			continue
		}
		// HTTP allows an empty line before the next request. Writing one shows
		// whether the server has closed the connection.
		if _, err := connection.Write([]byte("\r\n")); err != nil {
			return "cut while not reading"
		}
	}
}

// The number of addresses of a lurking attacker, and their format.
const (
	strangerAddresses = 10
	strangerAddress   = "127.0.1.%d"
)

// dial opens a WebSocket from a loopback address. The code of the answer is
// local.Answered, the HTTP status of a refusal, or local.Disconnected.
func dial(ctx context.Context, host, from string, header http.Header) (*websocket.Conn, local.Answer) {
	socket, response, err := local.Dial(ctx, host, from, header)
	switch {
	case err == nil:
		return socket, local.Answer{Status: http.StatusSwitchingProtocols, Code: local.Answered}
	case response != nil:
		return nil, local.Answer{Status: response.StatusCode, Code: fmt.Sprint(response.StatusCode)}
	}
	return nil, local.Answer{Code: local.Disconnected}
}

// greet opens a WebSocket with a token, begins its session and closes it. The
// token is in the handshake or in the first message.
func greet(ctx context.Context, host, from, token string, inHandshake bool) local.Answer {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	header, payload := http.Header{}, object{}
	if inHandshake {
		header.Set("X-Auth-Token", token)
	} else {
		payload["X-Auth-Token"] = token
	}
	socket, got := dial(ctx, host, from, header)
	if socket == nil {
		return got
	}
	defer func() { _ = socket.CloseNow() }()
	var ack object
	err := wsjson.Write(ctx, socket, object{"type": "connection_init", "payload": payload})
	if err == nil {
		err = wsjson.Read(ctx, socket, &ack)
	}
	switch code := websocket.CloseStatus(err); {
	case err == nil:
		return got
	case code == websocket.StatusTryAgainLater:
		return local.Answer{Status: http.StatusServiceUnavailable, Code: fmt.Sprint(int(code))}
	}
	return local.Answer{Code: local.Unanswered}
}

// lurk opens a WebSocket without a token and sends nothing more, until the
// server closes it. It returns the outcome.
func (a *attacker) lurk(ctx context.Context, address, from string) string {
	socket, got := dial(ctx, address, from, nil)
	if socket == nil {
		pause.For(ctx, a.Pause)
		return got.Code
	}
	defer func() { _ = socket.CloseNow() }()
	_, _, err := socket.Read(ctx)
	return fmt.Sprint("closed by ", int(websocket.CloseStatus(err)))
}
