package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/cadastre-dev/cadastre/bench/local"
	"github.com/cadastre-dev/cadastre/internal/pause"
)

// attackCommand is the argument that makes the program an attacker.
const attackCommand = "attack"

// orders tell an attacker its work. An attacker is a separate process, so that
// its processor time can be measured.
type orders struct {
	Addresses   []string // of the servers, which the connections are divided among
	From        string   // address to connect from
	Token       string
	Manner      manner
	Connections int
	Bodies      [][]byte // in turns
	For         time.Duration
	// Pause is how long a connection does nothing after a refusal.
	Pause time.Duration
	// Processor is how much of a processor the attacker may use; 0 is any amount.
	Processor float64
}

// toll is the result of an attacker.
type toll struct {
	Codes     map[string]int
	Processor float64 // of a processor that it used
	Bytes     int64   // that it read
}

// attackIn runs an attacker in a separate process until its time is over.
func attackIn(ctx context.Context, given orders) (toll, error) {
	program, err := os.Executable()
	if err != nil {
		return toll{}, err
	}
	command := exec.CommandContext(ctx, program, attackCommand)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	if err != nil {
		return toll{}, err
	}
	text, err := json.Marshal(given)
	if err != nil {
		return toll{}, err
	}
	go func() { _, _ = input.Write(append(text, '\n')) }() // and left open: the attacker ends when it is closed
	out, err := command.Output()
	if err != nil {
		return toll{}, fmt.Errorf("run the attacker: %w", err)
	}
	var of toll
	return of, json.Unmarshal(out, &of)
}

// runAttacker is the program as an attacker: it reads orders and writes a toll.
func runAttacker(in io.Reader, out io.Writer) error {
	var given orders
	read := json.NewDecoder(in)
	if err := read.Decode(&given); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), given.For)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, in) // until the parent ends
		cancel()
	}()
	a := &attacker{orders: given, began: time.Now(), toll: toll{Codes: map[string]int{}}}
	var running sync.WaitGroup
	for i := range given.Connections {
		running.Go(func() { a.run(ctx, i) })
	}
	running.Wait()
	a.toll.Processor = used().Seconds() / time.Since(a.began).Seconds()
	return json.NewEncoder(out).Encode(a.toll)
}

// attacker is a process that attacks.
type attacker struct {
	orders
	began time.Time
	mu    sync.Mutex
	next  int // of the bodies
	toll  toll
}

// used returns the time on processors of this process.
func used() time.Duration {
	var of syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &of); err != nil {
		return 0
	}
	return time.Duration(of.Utime.Nano() + of.Stime.Nano())
}

// run is one connection.
func (a *attacker) run(ctx context.Context, number int) {
	address := a.Addresses[number%len(a.Addresses)]
	p := local.NewClient(address, a.Token, a.From, 1, requestTime)
	defer p.Close()
	for ctx.Err() == nil {
		a.keepToProcessor(ctx)
		code := ""
		switch a.Manner {
		case asking, guessing:
			if a.Manner == guessing {
				p.Token = rand.Text()
			}
			got := p.Send(ctx, a.body())
			code = got.Code
			if got.Status >= 400 && got.Status < 500 || got.Status == 503 || got.Status == 0 {
				pause.For(ctx, a.Pause)
			}
			a.read(int64(len(got.Body)))
		default:
			code = a.occupy(ctx, address)
		}
		if ctx.Err() == nil {
			a.count(code)
		}
	}
}

// keepToProcessor waits until no more is used of a processor than may be.
func (a *attacker) keepToProcessor(ctx context.Context) {
	for a.Processor > 0 && used().Seconds() > a.Processor*time.Since(a.began).Seconds() && ctx.Err() == nil {
		pause.For(ctx, time.Millisecond)
	}
}

func (a *attacker) body() []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.next++
	return a.Bodies[a.next%len(a.Bodies)]
}

func (a *attacker) count(code string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.toll.Codes[code]++
}

func (a *attacker) read(bytes int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.toll.Bytes += bytes
}

// occupy holds a connection without using it, until the server closes it.
func (a *attacker) occupy(ctx context.Context, address string) string {
	dialer := net.Dialer{Timeout: 5 * time.Second, LocalAddr: &net.TCPAddr{IP: net.ParseIP(a.From)}}
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		pause.For(ctx, a.Pause)
		return local.Disconnected
	}
	defer func() { _ = connection.Close() }()
	if tcp, ok := connection.(*net.TCPConn); ok && a.Manner != connecting {
		_ = tcp.SetReadBuffer(4 << 10)
	}
	stop := context.AfterFunc(ctx, func() { _ = connection.Close() })
	defer stop()
	if a.Manner == connecting {
		if tcp, ok := connection.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a port that waits after its connection is not there for the attacks that follow
		}
		pause.For(ctx, a.Pause)
		return "connected"
	}
	body := a.body()
	message := append(fmt.Appendf(nil, "POST /graphql HTTP/1.1\r\nHost: %s\r\nX-Auth-Token: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n",
		address, a.Token, len(body)), body...)
	if a.Manner == sendingSlowly {
		return sendSlowly(ctx, connection, message)
	}
	if _, err := connection.Write(message); err != nil {
		return local.Unanswered
	}
	return a.readSlowly(ctx, connection)
}

// aByte is how long a slow connection takes for one.
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

// readSlowly reads the status of an answer, and then
// a byte a second or nothing, until the server closes the connection.
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
		pause.For(ctx, aByte)
		if ctx.Err() != nil {
			return "held"
		}
		if a.Manner == readingSlowly {
			if _, err := connection.Read(status[:1]); err != nil {
				return "cut while reading"
			}
			continue
		}
		// An empty line may stand before the next request, and tells whether the server
		// is still there.
		if _, err := connection.Write([]byte("\r\n")); err != nil {
			return "cut while not reading"
		}
	}
}
