package web

import (
	"context"
	"maps"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/graph/document"
)

// Two more paths serve definition files that exceed the limits of requests and
// answers at /graphql. Both run an operation with the usual gates, budgets and
// time limits.
//
// POST /import takes the files as its body, one after the other. The URL has
// the same parameters as a GET of /graphql. The files become the documents of
// the variable input, and the import is atomic. Without a query it runs
// importQuery.
//
// GET /export?name=N&portable=true runs exportQuery.
const (
	importPath = "/import"
	exportPath = "/export"
)

const (
	importQuery = `mutation ($input: ImportNamespacesInput!) { importNamespaces(input: $input) { reports { namespace outcome warnings errors differences } } }`
	exportQuery = `query ($names: [String!], $portable: Boolean!) { exportNamespaces(names: $names, portable: $portable) }`
)

// exportAnswerBytes bounds the answer of an export: a file, indented and
// escaped.
const exportAnswerBytes = 3 * graph.FileBytes

// memoryOfFile is the memory in bytes that each byte of a file takes: 63 MB
// took 1.4 GB during an import, and 0.8 GB during an export.
const memoryOfFile = 24

// receiveTime is how long a client may take to send files.
const receiveTime = 45 * time.Second

// isImport reports whether a request has definition files as its body.
func isImport(r *http.Request) bool { return r.Method == http.MethodPost && r.URL.Path == importPath }

// isExport reports whether a request asks for a definition file.
func isExport(r *http.Request) bool { return r.URL.Path == exportPath }

// allowTime extends the read deadline for a client that sends files.
func allowTime(w http.ResponseWriter, r *http.Request) {
	if isImport(r) {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(receiveTime)) // otherwise the client has less
	}
}

func readImport(r *http.Request, text []byte) (*request, *refusal) {
	request, refused := readURL(r.URL.RawQuery)
	if refused != nil {
		return nil, refused
	}
	if request.query == "" && request.documentID == "" && request.extensions == nil {
		request.query, request.own = importQuery, true
	}
	given, ok := request.variables["input"].(map[string]any)
	if _, twice := given["documents"]; twice || !ok && request.variables["input"] != nil {
		return nil, bad("the variable input must be an object without documents: the body has them")
	}
	input := map[string]any{"documents": filesOf(string(text)), "atomic": true}
	maps.Copy(input, given)
	if request.variables == nil {
		request.variables = map[string]any{}
	}
	request.variables["input"] = input
	return request, nil
}

// checkImport refuses an operation with anything but one importNamespaces,
// because the price of an import has no limit.
func checkImport(operation *document.Operation) *refusal {
	fields := operation.Definition.SelectionSet
	if field, ok := fields[0].(*ast.Field); ok && len(fields) == 1 && field.Name == "importNamespaces" {
		return nil
	}
	return bad("the operation at " + importPath + " must have only the field importNamespaces")
}

// preparerOf returns the preparer for the operation of a request.
func (t *transport) preparerOf(r *http.Request) *graph.Preparer {
	if isImport(r) || isExport(r) {
		return t.files
	}
	return t.preparer
}

// maxPoints returns the points of the highest price that an operation may have.
// An import may have a higher price, but pays no more.
func (t *transport) maxPoints() int {
	if limit := t.Limits.Cost; limit > 0 {
		return int(limit / pointCost)
	}
	return math.MaxInt
}

// answerBytes returns the maximum size of an answer in bytes; 0 means no limit.
func (t *transport) answerBytes(ctx context.Context) int {
	if graph.IsFileExport(ctx) {
		return exportAnswerBytes
	}
	if limit := t.Limits.AnswerBytes; isTool(ctx) && (limit == 0 || limit > toolAnswerBytes) {
		return toolAnswerBytes
	}
	return t.Limits.AnswerBytes
}

// bodyLimit returns the maximum size of a request body in bytes; 0 means no
// limit.
func (t *transport) bodyLimit(r *http.Request) int64 {
	if isImport(r) {
		return graph.FileBytes
	}
	return t.Limits.BodyBytes
}

// memoryOf returns the memory in bytes that each byte of a body takes.
func memoryOf(r *http.Request) int64 {
	if isImport(r) {
		return memoryOfFile
	}
	return memoryOfBody
}

// filesOf splits text into JSON values that follow one another. A file ends
// with the bracket that closes it. So a broken file usually does not affect the
// files after it.
func filesOf(text string) []any {
	files := []any{}
	depth, quoted, begin := 0, false, 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth <= 0 {
				files, begin, depth = append(files, strings.TrimSpace(text[begin:i+1])), i+1, 0
			}
		}
	}
	if rest := strings.TrimSpace(text[begin:]); rest != "" {
		files = append(files, rest)
	}
	return files
}

func readExport(r *http.Request) (*request, *refusal) {
	values := r.URL.Query()
	portable, err := strconv.ParseBool(values.Get("portable"))
	if len(values["name"]) != 1 || values.Has("portable") && err != nil {
		return nil, bad("the URL must have exactly one name, and portable must be true or false")
	}
	return &request{query: exportQuery, own: true,
		variables: map[string]any{"names": []any{values.Get("name")}, "portable": portable}}, nil
}
