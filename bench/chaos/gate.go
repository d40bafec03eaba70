package main

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// gate is a TCP proxy whose network can be cut: then it passes nothing on, and
// its connections stay open.
type gate struct {
	listener net.Listener
	to       string
	isCut    atomic.Bool

	mu    sync.Mutex
	conns map[net.Conn]bool
}

// newGate returns a gate to an address.
func newGate(to string) (*gate, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	g := &gate{listener: listener, to: to, conns: map[net.Conn]bool{}}
	go g.accept()
	return g, nil
}

func (g *gate) port() int { return g.listener.Addr().(*net.TCPAddr).Port }

// cut cuts the network. heal ends that, and the connections of that time.
func (g *gate) cut() { g.isCut.Store(true) }

func (g *gate) heal() {
	g.isCut.Store(false)
	g.mu.Lock()
	defer g.mu.Unlock()
	for conn := range g.conns {
		_ = conn.Close()
	}
}

func (g *gate) close() {
	_ = g.listener.Close()
	g.heal()
}

func (g *gate) accept() {
	for {
		client, err := g.listener.Accept()
		if err != nil {
			return
		}
		g.hold(client, true)
		if g.isCut.Load() {
			continue
		}
		server, err := net.Dial("tcp", g.to)
		if err != nil {
			g.hold(client, false)
			continue
		}
		g.hold(server, true)
		go g.pass(client, server)
		go g.pass(server, client)
	}
}

// hold notes an open connection, or closes it.
func (g *gate) hold(conn net.Conn, open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if open {
		g.conns[conn] = true
		return
	}
	delete(g.conns, conn)
	_ = conn.Close()
}

// pass copies one direction. What arrives while the network is cut is lost.
func (g *gate) pass(from, to net.Conn) {
	defer g.hold(from, false)
	defer g.hold(to, false)
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		for g.isCut.Load() && err == nil {
			n, err = from.Read(buffer)
			if err == nil && !g.isCut.Load() {
				err = io.ErrUnexpectedEOF // a part is lost
			}
		}
		if err != nil {
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}
