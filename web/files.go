package web

import (
	"context"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/graph/document"
)

// Next to /graphql, two paths serve definition files that are larger than requests
// and answers may be. Both run an operation like any other, with the
// same gates, budgets and limits of time.
//
// POST /import has the files as its body, one behind the other, and in its URL
// the parameters of a GET of /graphql. The files become the documents of the
// variable input, and the import is atomic. Without a query it runs importQuery.
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

// exportAnswerBytes bounds the answer of an export: the bytes of a file, indented
// and escaped.
const exportAnswerBytes = 3 * graph.FileBytes

// memoryOfFile is how many bytes each byte of a file becomes: 63 MB took 1.4 GB
// while they were imported, and 0.8 GB while they were exported.
const memoryOfFile = 24

// receiveTime is how long a client may take to send files.
const receiveTime = 45 * time.Second

// isImport reports whether a request has definition files as its body.
func isImport(r *http.Request) bool { return r.Method == http.MethodPost && r.URL.Path == importPath }

// isExport reports whether a request asks for a definition file.
func isExport(r *http.Request) bool { return r.URL.Path == exportPath }

// allowTime gives a client the time to send files.
func allowTime(w http.ResponseWriter, r *http.Request) {
	if isImport(r) {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(receiveTime)) // else it has less
	}
}

// readImport returns the request of an import.
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
		return nil, bad("the variable input is not an object without documents: these are the body")
	}
	input := map[string]any{"documents": filesOf(string(text)), "atomic": true}
	for name, value := range given {
		input[name] = value
	}
	variables := map[string]any{"input": input}
	for name, value := range request.variables {
		if name != "input" {
			variables[name] = value
		}
	}
	request.variables = variables
	return request, nil
}

// checkImport refuses operations that are more than an import: their price has no
// limit.
func checkImport(operation *document.Operation) *refusal {
	fields := operation.Definition.SelectionSet
	if field, ok := fields[0].(*ast.Field); ok && len(fields) == 1 && field.Name == "importNamespaces" {
		return nil
	}
	return bad("the operation at " + importPath + " must have the field importNamespaces alone")
}

// preparerOf returns what reads the operation of a request.
func (t *transport) preparerOf(r *http.Request) *graph.Preparer {
	if isImport(r) || isExport(r) {
		return t.files
	}
	return t.preparer
}

// maxPoints returns the points of the highest price, which bounds all operations
// except imports.
func (t *transport) maxPoints() int {
	if limit := t.Limits.Cost; limit > 0 {
		return int(limit / pointCost)
	}
	return math.MaxInt
}

// answerBytes returns how many bytes an answer may have.
func (t *transport) answerBytes(ctx context.Context) int {
	if graph.IsFileExport(ctx) {
		return exportAnswerBytes
	}
	return t.Limits.AnswerBytes
}

// bodyLimit returns how many bytes the body of a request may have; 0 is no limit.
func (t *transport) bodyLimit(r *http.Request) int64 {
	if isImport(r) {
		return graph.FileBytes
	}
	return t.Limits.BodyBytes
}

// memoryOf returns how many bytes each byte of a body becomes.
func memoryOf(r *http.Request) int64 {
	if isImport(r) {
		return memoryOfFile
	}
	return memoryOfBody
}

// filesOf returns the JSON strings that follow one another. A file ends with the
// bracket that closes it, so each of several broken files is mostly a file by
// itself.
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

// readExport returns the request of an export.
func readExport(r *http.Request) (*request, *refusal) {
	values := r.URL.Query()
	portable, err := strconv.ParseBool(values.Get("portable"))
	if len(values["name"]) != 1 || values.Has("portable") && err != nil {
		return nil, bad("the URL must have one name, and portable can be true or false")
	}
	return &request{query: exportQuery, own: true, variables: map[string]any{"names": []any{values.Get("name")}, "portable": portable}}, nil
}
