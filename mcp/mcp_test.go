package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/auth"
	"github.com/cadastre-dev/cadastre/cli"
	"github.com/cadastre-dev/cadastre/demo"
	"github.com/cadastre-dev/cadastre/demo/demotest"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
	"github.com/cadastre-dev/cadastre/web"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// serve serves a store with all tools until the test ends.
func serve(t *testing.T, s *store.Store, viewers map[string]access.Viewer,
	tools web.Tools, limits ...web.Limits) string {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	options := web.Options{Executor: graph.NewExecutor(&graph.Resolver{Store: s}, log), Log: log, Tools: tools,
		Authenticate: auth.New(auth.Tokens(auth.TokensOf(viewers))).Authenticate}
	if len(limits) > 0 {
		options.Limits = limits[0]
	}
	server := httptest.NewServer(web.New(options))
	t.Cleanup(server.Close)
	return server.URL
}

// withToken sends requests with a token.
type withToken string

func (token withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(token))
	return http.DefaultTransport.RoundTrip(r)
}

// overHTTP connects the SDK's client to /mcp of a server.
func overHTTP(t *testing.T, address, token string) *sdk.ClientSession {
	t.Helper()
	return connect(t, &sdk.StreamableClientTransport{Endpoint: address + "/mcp",
		HTTPClient: &http.Client{Transport: withToken(token)}})
}

// overStdio runs `cadastre mcp` and connects the SDK's client to its pipes.
func overStdio(t *testing.T, address, token string, flags ...string) *sdk.ClientSession {
	t.Helper()
	in, toTools := io.Pipe()
	fromTools, out := io.Pipe()
	ended := make(chan error, 1)
	args := append([]string{"mcp", "--server", address, "--token", token}, flags...)
	go func() {
		ended <- cli.Run(context.Background(), cli.Program{Stdin: in}, args, out, io.Discard)
		_ = out.Close()
	}()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return connect(t, &sdk.IOTransport{Reader: fromTools, Writer: toTools})
}

func connect(t *testing.T, transport sdk.Transport) *sdk.ClientSession {
	t.Helper()
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// call calls a tool and returns its answer.
func call(t *testing.T, session *sdk.ClientSession, tool string, arguments any) (text string, failed bool) {
	t.Helper()
	result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return err.Error(), true
	}
	for _, content := range result.Content {
		text += content.(*sdk.TextContent).Text
	}
	return text, result.IsError
}

type question struct {
	Ask       string
	Tool      string
	Arguments json.RawMessage
	Want      []string
	Fails     bool
}

var placeholder = regexp.MustCompile(`{{(.*?)}}`)

// questions returns the questions on the demo with its uuids.
func questions(t *testing.T) (all []question) {
	t.Helper()
	world := demo.Build()
	uuids := map[string]string{}
	for _, of := range world.Resources {
		uuids[of.Type+"/"+of.Name] = of.UUID
	}
	for _, of := range world.Providers {
		uuids["provider/"+of.Name] = of.UUID
	}
	for _, of := range world.Claims {
		uuids["claim/"+*of.Consumers[0].Type] = of.Consumers[0].UUID
	}
	text, err := os.ReadFile("testdata/questions.json")
	if err != nil {
		t.Fatal(err)
	}
	filled := placeholder.ReplaceAllStringFunc(string(text), func(name string) string {
		uuid, ok := uuids[strings.Trim(name, "{}")]
		if !ok {
			t.Errorf("the demo has no %s", name)
		}
		return uuid
	})
	if err := json.Unmarshal([]byte(filled), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestQuestions asks the questions of testdata/questions.json over both
// transports. Every answer must have the known phrases. An agent pays for
// tokens: half of the answers must have at most 1,000, and none may have more
// than 2,100. A token is about 4 bytes.
func TestQuestions(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		s := demotest.Open(t, url)
		t.Cleanup(func() { _ = s.Close() })
		if err := demo.Fill(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		address := serve(t, s, demo.Viewers(), web.ReadingTools)
		all := questions(t)
		if len(all) < 60 {
			t.Errorf("%d questions", len(all))
		}
		for name, session := range map[string]*sdk.ClientSession{"HTTP": overHTTP(t, address, demo.AdminToken),
			"stdio": overStdio(t, address, demo.AdminToken)} {
			var sizes []int
			for _, q := range all {
				answer, failed := call(t, session, q.Tool, q.Arguments)
				for _, phrase := range q.Want {
					if failed != q.Fails || !strings.Contains(answer, phrase) {
						t.Errorf("%s, %s %s: want %q, failed %v\n%s", name, q.Ask, q.Arguments, phrase, failed, answer)
					}
				}
				if !q.Fails {
					sizes = append(sizes, len(answer)/4)
				}
				if os.Getenv("CADASTRE_TEST_ANSWERS") != "" {
					fmt.Printf("## %s\n%s %s\n%s\n", q.Ask, q.Tool, q.Arguments, answer)
				}
			}
			slices.Sort(sizes)
			median, largest := sizes[len(sizes)/2], sizes[len(sizes)-1]
			t.Logf("%s: %d questions, tokens: median %d, largest %d", name, len(all), median, largest)
			if median > 1000 || largest > 2100 {
				t.Errorf("%s: the median of the answers is %d tokens, the largest %d", name, median, largest)
			}
		}
	})
}
