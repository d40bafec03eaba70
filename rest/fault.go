package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	mediaJSON    = "application/json"
	codesSince   = 23 // the minor version that added codes to errors
	cachingSince = 15 // the minor version that added headers for caches
)

// Fault is an error in the form of OpenStack.
type Fault struct {
	Status int
	// Code is the last part of the error's code, such as "concurrent_update";
	// empty is "undefined_code".
	Code       string
	Detail     string
	RetryAfter int // seconds, 0 for none

	allow         string // the methods of a 405
	unknownHeader bool   // whether the version in the header is unknown
}

// Error returns the detail.
func (f *Fault) Error() string { return f.Detail }

// Refuse returns a fault.
func Refuse(status int, code, format string, args ...any) *Fault {
	return &Fault{Status: status, Code: code, Detail: fmt.Sprintf(format, args...)}
}

// Bad returns a fault of the status 400.
func Bad(format string, args ...any) *Fault {
	return Refuse(http.StatusBadRequest, "", format, args...)
}

// explanations begin the details of some statuses.
var explanations = map[int]string{
	http.StatusNotFound:  "The resource could not be found.",
	http.StatusForbidden: "Access was denied to this resource.",
}

// Response is an answer as it is sent.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// head returns a response with the headers of every answer of the door.
func (c *Call) head(status int) *Response {
	header := http.Header{}
	header.Set("X-Openstack-Request-Id", c.requestID)
	if c.door.Latest > 0 {
		header.Add("Vary", "openstack-api-version")
	}
	if c.versioned {
		header.Set("OpenStack-API-Version", c.door.Service+" "+version(c.request.Version))
	}
	return &Response{Status: status, Header: header}
}

// success returns the response for an answer.
func (c *Call) success(answer Answer) *Response {
	response := c.head(answer.Status)
	if response.Status == 0 {
		response.Status = http.StatusOK
	}
	if answer.Location != "" {
		response.Header.Set("Location", c.origin+answer.Location)
	}
	if c.request.Since(cachingSince) && !answer.Modified.IsZero() {
		response.Header.Set("Last-Modified", answer.Modified.UTC().Format(http.TimeFormat))
		response.Header.Set("Cache-Control", "no-cache")
	}
	if answer.Body != nil {
		response.Header.Set("Content-Type", mediaJSON)
		response.Body = Encode(answer.Body)
	}
	return response
}

// Now is the time for Last-Modified of answers that are not stored.
func Now() time.Time { return time.Now() }

// failure returns the response for a fault: JSON, or HTML or text for clients
// that accept no JSON.
func (c *Call) failure(fault *Fault) *Response {
	response := c.head(fault.Status)
	if fault.allow != "" {
		response.Header.Set("Allow", fault.allow)
	}
	if fault.RetryAfter > 0 {
		response.Header.Set("Retry-After", strconv.Itoa(fault.RetryAfter))
	}
	if fault.Status == http.StatusUnauthorized {
		response.Header.Set("WWW-Authenticate", "Bearer")
	}
	title := http.StatusText(fault.Status)
	detail := fault.Detail
	if explanation := explanations[fault.Status]; explanation != "" {
		detail = strings.TrimSpace(explanation + "\n\n " + fault.Detail)
	}
	switch {
	case c.door.Form != nil:
		response.Header.Set("Content-Type", mediaJSON)
		response.Body = Encode(c.door.Form(fault))
	case accepts(c.request.Header, mediaJSON):
		response.Header.Set("Content-Type", mediaJSON)
		response.Body = c.errors(fault, title, detail)
	case accepts(c.request.Header, "text/html"):
		response.Header.Set("Content-Type", "text/html; charset=UTF-8")
		line := html.EscapeString(fmt.Sprintf("%d %s", fault.Status, title))
		response.Body = fmt.Appendf(nil, "<html>\n <head>\n  <title>%s</title>\n </head>\n <body>\n  <h1>%s</h1>\n  <p>%s</p>\n </body>\n</html>\n",
			line, line, html.EscapeString(detail))
	default:
		response.Header.Set("Content-Type", "text/plain; charset=UTF-8")
		response.Body = fmt.Appendf(nil, "%d %s\n\n%s\n", fault.Status, title, detail)
	}
	return response
}

// errors returns the JSON of a fault.
func (c *Call) errors(fault *Fault, title, detail string) []byte {
	type failure struct {
		Status     int    `json:"status"`
		Title      string `json:"title"`
		Detail     string `json:"detail"`
		Code       string `json:"code,omitempty"`
		RequestID  string `json:"request_id"`
		MaxVersion string `json:"max_version,omitempty"`
		MinVersion string `json:"min_version,omitempty"`
	}
	one := failure{Status: fault.Status, Title: title, Detail: detail, RequestID: c.requestID}
	if c.versioned && c.request.Since(codesSince) {
		one.Code = c.door.Service + ".undefined_code"
		if fault.Code != "" {
			one.Code = c.door.Service + "." + fault.Code
		}
	}
	if fault.unknownHeader {
		one.MaxVersion, one.MinVersion = version(c.door.Latest), version(0)
	}
	return Encode(map[string][]failure{"errors": {one}})
}

// Encode returns the JSON of a value, without escapes for HTML.
func Encode(value any) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err) // answers hold strings, numbers, lists and maps only
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// accepts reports whether the header Accept permits a media type. An absent
// header permits JSON alone.
func accepts(header http.Header, media string) bool {
	values := header.Values("Accept")
	if len(values) == 0 {
		return media == mediaJSON
	}
	family, _, _ := strings.Cut(media, "/")
	for part := range strings.SplitSeq(strings.Join(values, ","), ",") {
		kind, parameters, _ := strings.Cut(part, ";")
		kind = strings.ToLower(strings.TrimSpace(kind))
		if kind != media && kind != family+"/*" && kind != "*/*" {
			continue
		}
		if quality, ok := strings.CutPrefix(strings.TrimSpace(parameters), "q="); ok {
			if q, err := strconv.ParseFloat(strings.TrimSpace(quality), 64); err == nil && q == 0 {
				continue
			}
		}
		return true
	}
	return false
}
