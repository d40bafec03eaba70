// Package pgproxy is a proxy between servers and PostgreSQL. With it, tests cut
// connections, and delay or lose COMMITs and notifications.
package pgproxy

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Proxy is a proxy between a store and PostgreSQL. It understands enough of the
// protocol to see a COMMIT, a LISTEN and a notification.
type Proxy struct {
	listener net.Listener
	server   string
	read     reader

	mu      sync.Mutex
	closed  bool
	links   map[*link]bool
	faults  []Fault       // of the next COMMITs
	drops   bool          // drop notifications
	slow    time.Duration // delay of notifications
	hole    bool          // drop everything
	late    int           // number of COMMITs with a fault in transit
	running sync.WaitGroup
}

// reader reads a message, the first of a connection or another one.
type reader func(from *bufio.Reader, first bool) (kind byte, message []byte, err error)

// link is a connection through a proxy.
type link struct {
	client, server net.Conn
	listens        bool
	hold           atomic.Int64 // delay of the next answer, in nanoseconds
}

// Fault is a fault of a COMMIT.
type Fault struct {
	Late   time.Duration // delay of the COMMIT
	Held   time.Duration // delay of its answer
	Lost   bool          // both connections close, and the COMMIT does not arrive
	Silent bool          // the connection to the client closes first, so the answer is lost
}

// New returns a proxy to a PostgreSQL server. It closes when the test ends.
func New(t testing.TB, server string) *Proxy {
	t.Helper()
	p, err := open(server, readMessage)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// Start returns a proxy to a server of any protocol. It knows neither COMMITs nor
// notifications. The caller must close it.
func Start(server string) (*Proxy, error) { return open(server, readArrived) }

func open(server string, read reader) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: listener, server: server, read: read, links: map[*link]bool{}}
	p.running.Go(p.accept)
	return p, nil
}

// Address returns the address of the proxy.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Close ends the proxy and all connections.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	_ = p.listener.Close()
	p.Cut(false)
	p.running.Wait()
}

// Cut closes all connections, or only the listening ones.
func (p *Proxy) Cut(listening bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		if !listening || l.listens {
			l.close()
		}
	}
}

func (l *link) close() {
	_ = l.client.Close()
	_ = l.server.Close()
}

// Fail adds a fault. Each COMMIT takes the oldest fault that is left, if any.
func (p *Proxy) Fail(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, f)
}

// Notifications drops or delays notifications from now on.
func (p *Proxy) Notifications(drop bool, delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drops, p.slow = drop, delay
}

// Swallow drops everything in both directions from now on, like a cut network,
// or stops dropping. A direction that lost data stays silent.
func (p *Proxy) Swallow(all bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hole = all
}

func (p *Proxy) swallows() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hole
}

// Repair stops the faults of notifications and COMMITs, but not Swallow.
func (p *Proxy) Repair() {
	p.Notifications(false, 0)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = nil
}

// IsQuiet reports whether no faulty COMMIT is in transit.
func (p *Proxy) IsQuiet() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.late == 0
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		l := &link{client: client, server: server}
		p.mu.Lock()
		p.links[l] = true
		if p.closed {
			l.close()
		}
		p.mu.Unlock()
		var both sync.WaitGroup
		both.Go(func() { p.up(l) })
		both.Go(func() { p.down(l) })
		p.running.Go(func() {
			both.Wait()
			p.mu.Lock()
			defer p.mu.Unlock()
			delete(p.links, l)
		})
	}
}

// readMessage reads a protocol message: its kind (0 for the first message of a
// connection) and all of its bytes.
func readMessage(from *bufio.Reader, first bool) (kind byte, message []byte, err error) {
	header := 5
	if first {
		header = 4
	}
	head, err := from.Peek(header)
	if err != nil {
		return 0, nil, err
	}
	if !first {
		kind = head[0]
	}
	message = make([]byte, header-4+int(binary.BigEndian.Uint32(head[header-4:])))
	_, err = io.ReadFull(from, message)
	return kind, message, err
}

// readArrived reads the bytes that have arrived.
func readArrived(from *bufio.Reader, _ bool) (kind byte, message []byte, err error) {
	if _, err := from.Peek(1); err != nil {
		return 0, nil, err
	}
	message = make([]byte, from.Buffered())
	_, err = io.ReadFull(from, message)
	return 0, message, err
}

// up forwards the client's messages.
func (p *Proxy) up(l *link) {
	defer l.close()
	from, lost := bufio.NewReader(l.client), false
	for first := true; ; first = false {
		kind, message, err := p.read(from, first)
		if err != nil {
			return
		}
		query := message[min(5, len(message)):]
		switch {
		case kind == 'Q' && bytes.HasPrefix(query, []byte("LISTEN")):
			p.mu.Lock()
			l.listens = true
			p.mu.Unlock()
		case kind == 'Q' && bytes.HasPrefix(query, []byte("COMMIT")):
			if f := p.nextFault(); f != (Fault{}) {
				lives := f.carry(l, message)
				p.mu.Lock()
				p.late--
				p.mu.Unlock()
				if !lives {
					return
				}
				continue
			}
		}
		if lost = lost || p.swallows(); lost {
			continue
		}
		if _, err := l.server.Write(message); err != nil {
			return
		}
	}
}

func (p *Proxy) nextFault() Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.faults) == 0 {
		return Fault{}
	}
	f := p.faults[0]
	p.faults = p.faults[1:]
	if f != (Fault{}) {
		p.late++
	}
	return f
}

// carry forwards a COMMIT with its fault, and reports whether the connection
// continues.
func (f Fault) carry(l *link, commit []byte) bool {
	if f.Silent || f.Lost {
		_ = l.client.Close()
	}
	if f.Lost {
		return false
	}
	time.Sleep(f.Late)
	l.hold.Store(int64(f.Held))
	_, err := l.server.Write(commit)
	return err == nil && !f.Silent
}

// down forwards the server's messages.
func (p *Proxy) down(l *link) {
	from, lost := bufio.NewReader(l.server), false
	for {
		kind, message, err := p.read(from, false)
		if err != nil {
			_ = l.client.Close()
			return
		}
		time.Sleep(time.Duration(l.hold.Swap(0)))
		if kind == 'A' { // a notification
			p.mu.Lock()
			drops, slow := p.drops, p.slow
			p.mu.Unlock()
			if drops {
				continue
			}
			time.Sleep(slow)
		}
		if lost = lost || p.swallows(); lost {
			continue
		}
		if _, err := l.client.Write(message); err != nil {
			return
		}
	}
}
