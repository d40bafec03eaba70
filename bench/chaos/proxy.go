package main

import (
	"net"
	"sync"
	"sync/atomic"
)

// proxy stands between servers and their database: it cuts what goes through it,
// or swallows it.
type proxy struct {
	listener net.Listener
	to       string
	swallows atomic.Bool
	mu       sync.Mutex
	open     map[net.Conn]bool
}

// startProxy starts a proxy to an address.
func startProxy(to string) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: listener, to: to, open: map[net.Conn]bool{}}
	go p.accept()
	return p, nil
}

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) accept() {
	for {
		from, err := p.listener.Accept()
		if err != nil {
			return // it was stopped
		}
		to, err := net.Dial("tcp", p.to)
		if err != nil {
			_ = from.Close()
			continue
		}
		p.note(from, true)
		p.note(to, true)
		go p.carry(from, to)
		go p.carry(to, from)
	}
}

func (p *proxy) note(connection net.Conn, open bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if open {
		p.open[connection] = true
	} else {
		delete(p.open, connection)
	}
}

// carry carries bytes until either side ends. What is swallowed is gone, and so
// are the ends of connections: nobody is told.
func (p *proxy) carry(from, to net.Conn) {
	defer func() {
		_ = from.Close()
		_ = to.Close()
		p.note(from, false)
		p.note(to, false)
	}()
	bytes, lost := make([]byte, 32<<10), false
	for {
		n, err := from.Read(bytes)
		lost = lost || p.swallows.Load()
		if n > 0 && !lost {
			if _, err := to.Write(bytes[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// cut ends all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for connection := range p.open {
		_ = connection.Close()
	}
}

// swallow has the proxy swallow what comes from now on, or carry it again: the
// connections that lost something stay without an answer.
func (p *proxy) swallow(on bool) { p.swallows.Store(on) }

func (p *proxy) stop() {
	_ = p.listener.Close()
	p.cut()
}
