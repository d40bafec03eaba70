// Package rest serves the REST interfaces of OpenStack's services. Each service
// is a door: a table of routes over the store and the pure functions that the
// GraphQL fields use. This package has the parts that all doors share:
// microversions, errors, content types and JSON schemas.
//
// Package web mounts a door. It authenticates and admits requests, receives
// their bodies, and calls Door.Call and Call.Run for each.
package rest

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store"
)

// Door is the interface of one service.
type Door struct {
	// Service is the type of the service in headers, such as "placement".
	Service string
	// Mount is the path before the paths of routes: "/openstack/placement".
	Mount string
	// Latest is the highest minor version; versions are 1.0 to 1.Latest. 0 is a
	// service without versions.
	Latest int
	Routes []Route
	Store  *store.Store
	// Log gets the causes of internal errors.
	Log *slog.Logger
	// Form returns the JSON of a fault in the service's own form. Nil selects a
	// list of errors.
	Form func(*Fault) any
	// Pages means that a fault is a page: of HTML or plain text, or JSON with the
	// message of the page. The header Accept decides.
	Pages bool
}

// Route is a row in the table of a door.
type Route struct {
	Method string
	// Path has names in braces for single segments: "/traits/{name}".
	Path string
	// Since and Until are the lowest and the highest minor version; Until 0
	// means the latest.
	Since, Until int
	// Field is the field of Query or Mutation whose permission the route needs.
	// A route without a field needs no token.
	Field  string
	Work   Work
	Handle Handler
	// Bare routes take no body: any body is refused.
	Bare bool
	// Before is the status for versions below Since or above Until; 0 is 404.
	Before int
}

// Work is the scarce resource that a route needs.
type Work int

// The kinds of work.
const (
	InMemory   Work = iota // no connection; a write waits in the queue of claims
	Statements             // a connection for a few statements
	Searches               // a core for a long search
)

// Handler answers a request.
type Handler func(ctx context.Context, r *Request) (Answer, error)

// Request is a request to a route of the API.
type Request struct {
	Header  http.Header
	Version int               // minor
	Path    map[string]string // segments by name
	Query   []Parameter       // in the order of the URL
	Body    []byte
	Mount   string
	// MaxBytes limits the body of an answer to a read; 0 is no limit.
	MaxBytes int
}

// Since reports whether the request has this minor version or a later one.
func (r *Request) Since(version int) bool { return r.Version >= version }

// Most returns how many items an answer to a read can have, if each has at least
// some bytes.
func (r *Request) Most(bytes int) int {
	if r.MaxBytes == 0 {
		return math.MaxInt
	}
	return r.MaxBytes / bytes
}

// TooLong returns the fault of an answer that exceeds MaxBytes.
func (r *Request) TooLong() error {
	return Bad("the answer would exceed %d bytes; ask for less at once, by a limit or a filter", r.MaxBytes)
}

// All returns the items of a list that read returns page by page. It stops
// after the page that reaches most, so it can return more items than that.
func All[T any](most int, read func(page.Request) (page.Page[T], error)) (items []T, err error) {
	for request := (page.Request{First: new(page.MaxSize)}); ; {
		found, err := read(request)
		if err != nil {
			return nil, err
		}
		if items = append(items, found.Items...); !found.HasMore || len(items) >= most {
			return items, nil
		}
		request.After = &found.Cursors[len(found.Cursors)-1]
	}
}

// Answer is a successful answer.
type Answer struct {
	Status   int // 0 is 200
	Body     any // the type Text, or any value to encode as JSON; nil for none
	Location string
	// Modified is the time for Last-Modified. A zero time omits the headers for
	// caches.
	Modified time.Time
}

// Object is a JSON object.
type Object map[string]any

// Set sets a member that a version added, unless the request has an older one.
func (o Object) Set(r *Request, version int, name string, value any) {
	if r.Since(version) {
		o[name] = value
	}
}

// OrNull returns nil for an empty string.
func OrNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// Computed returns an answer that is computed for the request and not stored.
// Its Last-Modified is now.
func Computed(body any) Answer { return Answer{Body: body, Modified: Now()} }

// Call is a request with its route, or with the fault that refuses the request.
type Call struct {
	door      *Door
	route     *Route
	request   *Request
	requestID string
	fault     *Fault
	origin    string // the scheme and the host of the URL
	versioned bool   // whether the version is known
}

// NewRequestID returns an id in the form of OpenStack.
func NewRequestID() string { return "req-" + uuid.NewString() }

// Call finds the version, the parameters and the route of a request. If it
// cannot, the method Refused of the returned call returns the fault.
func (d *Door) Call(r *http.Request, requestID string) *Call {
	c := &Call{door: d, requestID: requestID, request: &Request{Header: r.Header, Mount: d.Mount}}
	c.origin = "http://" + r.Host
	if r.TLS != nil {
		c.origin = "https://" + r.Host
	}
	if d.Latest > 0 {
		if c.request.Version, c.fault = versionOf(r.Header, d.Service, d.Latest); c.fault != nil {
			return c
		}
		c.versioned = true
	}
	if c.request.Query, c.fault = parameters(r.URL.RawQuery); c.fault != nil {
		return c
	}
	path := strings.TrimPrefix(r.URL.Path, d.Mount)
	var allowed []string
	for i := range d.Routes {
		route := &d.Routes[i]
		segments, ok := match(route.Path, path)
		if !ok {
			continue
		}
		if !slices.Contains(allowed, route.Method) {
			allowed = append(allowed, route.Method)
		}
		if route.Method != r.Method {
			continue
		}
		c.request.Path = segments
		if c.request.Version < route.Since || route.Until > 0 && c.request.Version > route.Until {
			c.fault = &Fault{Status: cmp.Or(route.Before, http.StatusNotFound)}
			continue
		}
		c.route, c.fault = route, nil
		return c
	}
	switch {
	case c.fault != nil:
	case allowed == nil:
		c.fault = &Fault{Status: http.StatusNotFound}
	default:
		c.fault = &Fault{Status: http.StatusMethodNotAllowed, allow: strings.Join(allowed, ", "),
			Detail: "The method " + r.Method + " is not allowed for this resource."}
	}
	return c
}

// match returns the segments of a path by the names in the path of a route. It
// reports false if they differ, and for NUL or invalid UTF-8, which no name has.
func match(pattern, path string) (map[string]string, bool) {
	if path = cmp.Or(path, "/"); !isText(path) {
		return nil, false
	}
	want, have := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(have) {
		return nil, false
	}
	segments := map[string]string{}
	for i := range want {
		if name, ok := strings.CutPrefix(want[i], "{"); ok && have[i] != "" {
			segments[strings.TrimSuffix(name, "}")] = have[i]
		} else if want[i] != have[i] {
			return nil, false
		}
	}
	return segments, true
}

// IsOpen reports whether the call, such as a list of versions, needs no token.
func (c *Call) IsOpen() bool { return c.route != nil && c.route.Field == "" }

// Mount returns the path of the service.
func (c *Call) Mount() string { return c.door.Mount }

// Refused returns the fault of the version, the parameters or the route, or nil.
func (c *Call) Refused() *Fault { return c.fault }

// Work returns the resource that the call needs. Like Writes and Run, it
// requires that Refused returned nil.
func (c *Call) Work() Work { return c.route.Work }

// Writes reports whether the call can change something.
func (c *Call) Writes() bool { return c.route.Method != http.MethodGet }

// Name returns the field whose permission the call needs, for logs; "" if the
// call is refused or needs no token.
func (c *Call) Name() string {
	if c.route == nil {
		return ""
	}
	return c.route.Field
}

// Run authorizes the viewer of the context, checks the body and runs the call.
// The response can be a refusal. Reads with Work Statements see one instant. A
// read is refused if its answer exceeds maxBytes; 0 is no limit. outside
// reports whether the call sent statements to PostgreSQL.
func (c *Call) Run(ctx context.Context, body []byte, maxBytes int) (response *Response, outside bool) {
	c.request.Body, c.request.MaxBytes = body, maxBytes
	if c.route.Field == "" {
		return c.handle(ctx, c.route.Handle), false
	}
	viewer, err := access.ViewerFrom(ctx).Authorize(c.route.Field)
	if err != nil {
		return c.Respond(ctx, err), false
	}
	if fault := c.checkBody(); fault != nil {
		return c.Respond(ctx, fault), false
	}
	how := store.AtOnce
	switch {
	case c.Writes():
		how = store.AtOnceAfterWrite
	case c.route.Work != Statements:
		how = store.Each
	}
	ctx, counts := store.Measure(access.WithViewer(ctx, viewer))
	ctx, reading := c.door.Store.WithReading(ctx, how)
	defer reading.End()
	if c.route.Work == Searches {
		ctx = store.Searching(ctx)
	}
	response = c.handle(ctx, c.route.Handle)
	statements, _ := counts()
	return response, statements > 0 && c.door.Store.Postgres()
}

// checkBody checks the headers about the body and the form of the answer.
func (c *Call) checkBody() *Fault {
	media, _, _ := strings.Cut(c.request.Header.Get("Content-Type"), ";")
	media = strings.ToLower(strings.TrimSpace(media))
	sends := c.route.Method == http.MethodPost || c.route.Method == http.MethodPut
	switch {
	case c.route.Bare && len(c.request.Body) > 0:
		return Bad("this request takes no body")
	case c.route.Bare:
	case media == "" && len(c.request.Body) > 0:
		return &Fault{Status: http.StatusBadRequest, Detail: "content-type header required when content-length > 0"}
	case sends && c.takesJSON() && media != mediaJSON:
		return &Fault{Status: http.StatusUnsupportedMediaType,
			Detail: "The media type " + cmp.Or(media, "None") + " is not supported, use " + mediaJSON}
	case c.route.Method == http.MethodGet && !accepts(c.request.Header, mediaJSON):
		return &Fault{Status: http.StatusNotAcceptable, Detail: "Only " + mediaJSON + " is provided"}
	}
	return nil
}

// takesJSON reports whether the body of the route is JSON. A PUT of a path that
// ends in {name} creates the name and has no body, except in routes with an
// Until, where the body has the new name.
func (c *Call) takesJSON() bool {
	return c.route.Method != http.MethodPut || !strings.HasSuffix(c.route.Path, "/{name}") || c.route.Until > 0
}

func (c *Call) handle(ctx context.Context, run Handler) *Response {
	answer, err := run(ctx, c.request)
	if err != nil {
		return c.Respond(ctx, err)
	}
	response := c.success(answer)
	if len(response.Body) > c.request.Most(1) && !c.Writes() {
		return c.Respond(ctx, c.request.TooLong())
	}
	return response
}

// Respond returns the response for an error. Only faults and refusals are
// shown; the log gets any other error.
func (c *Call) Respond(ctx context.Context, err error) *Response {
	fault, ok := FaultOf(err)
	if !ok {
		c.door.Log.ErrorContext(ctx, "internal error", "requestId", c.requestID, "door", c.door.Service, "error", err)
		fault = &Fault{Status: http.StatusInternalServerError, Detail: "internal error"}
	}
	return c.failure(fault)
}

// statuses are the statuses and the codes of refusals.
var statuses = []struct {
	kind   error
	status int
	code   string
}{
	{problem.ErrForbidden, http.StatusForbidden, ""},
	{problem.ErrNotFound, http.StatusNotFound, ""},
	{problem.ErrConcurrentUpdate, http.StatusConflict, "concurrent_update"},
	{problem.ErrAlreadyExists, http.StatusConflict, "duplicate_name"},
	{problem.ErrInUse, http.StatusConflict, ""},
	{problem.ErrCapacityExceeded, http.StatusConflict, ""},
	{problem.ErrQuotaExceeded, http.StatusConflict, ""},
	{problem.ErrProtected, http.StatusForbidden, ""},
	{problem.ErrTooComplex, http.StatusBadRequest, ""},
	{problem.ErrTimeout, http.StatusServiceUnavailable, ""},
	{problem.ErrUnavailable, http.StatusServiceUnavailable, ""},
	{problem.ErrOutcomeUnknown, http.StatusServiceUnavailable, ""},
	{problem.ErrInvalidInput, http.StatusBadRequest, ""}, // after the kinds that it may have, too
}

// FaultOf returns the fault in an error, or the fault for a refusal or an ended
// context. It reports false for any other error, which is internal.
func FaultOf(err error) (*Fault, bool) {
	if fault, ok := errors.AsType[*Fault](err); ok {
		return fault, true
	}
	kind := kindOf(err)
	for _, of := range statuses {
		if errors.Is(kind, of.kind) {
			return &Fault{Status: of.status, Code: of.code, Detail: MessageOf(err)}, true
		}
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return Refuse(http.StatusServiceUnavailable, "", "the request took too long"), true
	}
	return nil, false
}

// kindOf returns the kind of an error's first problem, such as ErrNotFound, if
// all its problems have a kind. Otherwise it returns the error itself.
func kindOf(err error) error {
	problems, ok := problem.Of(err)
	if !ok || len(problems) == 0 ||
		slices.ContainsFunc(problems, func(p problem.Problem) bool { return p.Kind == nil }) {
		return err
	}
	return problems[0].Kind
}

// MessageOf returns the message of an error for clients. For an invalid input,
// it joins the paths and the messages of all problems.
func MessageOf(err error) string {
	if refusal, ok := errors.AsType[*problem.Refusal](err); ok {
		return refusal.Message
	}
	var messages []string
	for _, one := range problem.InError(err) {
		field := strings.TrimPrefix(strings.TrimPrefix(one.Field, "input"), ".")
		messages = append(messages, strings.TrimPrefix(field+": "+one.Message, ": "))
	}
	return strings.Join(messages, "; ")
}

// version returns a minor version with its major version.
func version(minor int) string { return "1." + strconv.Itoa(minor) }

// versionOf returns the minor version that the header OpenStack-API-Version
// names for a service. An absent version is 1.0. Of several, the last counts.
func versionOf(header http.Header, service string, latest int) (int, *Fault) {
	text := ""
	for part := range strings.SplitSeq(strings.Join(header.Values("OpenStack-API-Version"), ","), ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), " ")
		if ok && strings.EqualFold(name, service) {
			text = strings.TrimSpace(value)
		}
	}
	switch text {
	case "":
		return 0, nil
	case "latest":
		return latest, nil
	}
	major, minor, ok := strings.Cut(text, ".")
	of, errMajor := strconv.Atoi(strings.TrimSpace(major))
	number, errMinor := strconv.Atoi(strings.TrimSpace(minor))
	switch {
	case !ok || errMajor != nil || errMinor != nil:
		return 0, Bad("Invalid microversion: invalid version string: %s", text)
	case of != 1 || number < 0 || number > latest:
		fault := Refuse(http.StatusNotAcceptable, "", "Invalid microversion: Unacceptable version header: %s", text)
		fault.unknownHeader = true
		return 0, fault
	}
	return number, nil
}

// Parameter is a parameter of a URL.
type Parameter struct{ Key, Value string }

// parameters returns the parameters of a query string in their order.
func parameters(query string) ([]Parameter, *Fault) {
	var list []Parameter
	for part := range strings.SplitSeq(query, "&") {
		if part == "" {
			continue
		}
		key, value, _ := strings.Cut(part, "=")
		key, errKey := url.QueryUnescape(key)
		value, errValue := url.QueryUnescape(value)
		if errKey != nil || errValue != nil || !isText(key) || !isText(value) {
			return nil, Bad("Invalid query string parameters: the query string is not encoded UTF-8 without NUL")
		}
		list = append(list, Parameter{key, value})
	}
	return list, nil
}

// isText reports whether a string is UTF-8 without NUL, as databases require.
func isText(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// Last returns the last value of a parameter.
func (r *Request) Last(key string) (value string, ok bool) {
	for _, one := range r.Query {
		if one.Key == key {
			value, ok = one.Value, true
		}
	}
	return value, ok
}

// All returns all values of a parameter.
func (r *Request) All(key string) (values []string) {
	for _, one := range r.Query {
		if one.Key == key {
			values = append(values, one.Value)
		}
	}
	return values
}

// CheckQuery checks the parameters of the URL against a schema. Only the last
// value of each parameter counts.
func (r *Request) CheckQuery(schema *Schema) error {
	members := make(map[string]any, len(r.Query))
	for _, one := range r.Query {
		members[one.Key] = one.Value
	}
	if wrong := schema.Check(members); wrong != "" {
		return Bad("Invalid query string parameters: %s", wrong)
	}
	return nil
}
