package main

import (
	"net"
	"sync"
	"sync/atomic"
)

// proxy stands between servers and their database. It cuts connections, or
// swallows their bytes.
type proxy struct {
	listener net.Listener
	to       string
	swallows atomic.Bool
	open     sync.Map // of net.Conn
}

// startProxy starts a proxy to an address.
func startProxy(to string) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: listener, to: to}
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
		p.open.Store(from, nil)
		p.open.Store(to, nil)
		go p.carry(from, to)
		go p.carry(to, from)
	}
}

// carry carries bytes until either side ends. Swallowed bytes and ends of
// connections are lost: the other side learns nothing.
func (p *proxy) carry(from, to net.Conn) {
	defer func() {
		for _, one := range []net.Conn{from, to} {
			_ = one.Close()
			p.open.Delete(one)
		}
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
	p.open.Range(func(connection, _ any) bool {
		_ = connection.(net.Conn).Close()
		return true
	})
}

// swallow makes the proxy swallow what arrives, or carry it again. Connections that
// lost something get no answer any more.
func (p *proxy) swallow(on bool) { p.swallows.Store(on) }

func (p *proxy) stop() {
	_ = p.listener.Close()
	p.cut()
}
