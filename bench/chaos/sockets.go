package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"github.com/cadastre-dev/cadastre/bench/local"
	"github.com/cadastre-dev/cadastre/internal/pause"
)

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
