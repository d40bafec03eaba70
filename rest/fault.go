package rest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	mediaJSON    = "application/json"
	mediaHTML    = "text/html; charset=UTF-8"
	mediaText    = "text/plain; charset=UTF-8"
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

// Refuse returns a fault with a formatted detail.
func Refuse(status int, code, format string, args ...any) *Fault {
	return &Fault{Status: status, Code: code, Detail: fmt.Sprintf(format, args...)}
}

// Bad returns a fault of the status 400.
func Bad(format string, args ...any) *Fault {
	return Refuse(http.StatusBadRequest, "", format, args...)
}

// explanations are the first sentences of details, by status.
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

// head returns a response with the headers that all responses of the API have.
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

func (c *Call) success(answer Answer) *Response {
	response := c.head(cmp.Or(answer.Status, http.StatusOK))
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

// Now is the time for Last-Modified of computed answers.
func Now() time.Time { return time.Now() }

// failure returns the response for a fault, in the form that the client accepts.
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
	media := c.errorMedia()
	response.Header.Set("Content-Type", media)
	title := http.StatusText(fault.Status)
	line := strconv.Itoa(fault.Status) + " " + title
	switch {
	case media == mediaHTML:
		response.Body = fmt.Appendf(nil, pageHTML, line, line, c.message(fault, escapeHTML))
	case media == mediaText:
		text := strings.ReplaceAll(c.message(fault, nil), "\n", " ")
		text = tags.ReplaceAllString(strings.ReplaceAll(text, lineBreak, "\n"), "")
		response.Body = fmt.Appendf(nil, "%s\n\n%s", line, text)
	case c.door.Pages:
		response.Body = Encode(pageForm{c.message(fault, nil), line, title})
	case c.door.Form != nil:
		shown := *fault
		shown.Detail = cmp.Or(fault.Detail, explanations[fault.Status])
		response.Body = Encode(c.door.Form(&shown))
	default:
		response.Body = c.errors(fault, title)
	}
	return response
}

// errorMedia returns the media type of errors. APIs with their own form have JSON
// alone. Of the types that the client accepts, APIs with pages prefer HTML, and
// Placement JSON. Other clients get plain text.
func (c *Call) errorMedia() string {
	header := c.request.Header
	switch {
	case c.door.Form != nil:
		return mediaJSON
	case c.door.Pages && quality(header, mediaJSON) > quality(header, "text/html"):
		return mediaJSON
	case !c.door.Pages && accepts(header, mediaJSON):
		return mediaJSON
	case quality(header, "text/html") > 0:
		return mediaHTML
	}
	return mediaText
}

// pageForm is a fault as JSON, for doors whose faults are pages.
type pageForm struct {
	Message string `json:"message"`
	Code    string `json:"code"`
	Title   string `json:"title"`
}

// pageHTML is the HTML of a fault: its status twice, and the message.
const pageHTML = `<html>
 <head>
  <title>%s</title>
 </head>
 <body>
  <h1>%s</h1>
  %s
 </body>
</html>`

const lineBreak = "<br />"

// tags matches the comments and tags that plain text omits.
var tags = regexp.MustCompile(`(?s)<!--.*?-->|<.*?>`)

// message returns the message of a fault with HTML line breaks, for all forms of
// a page. escape escapes explanation and detail; nil escapes nothing.
func (c *Call) message(fault *Fault, escape func(string) string) string {
	explanation, detail := explanations[fault.Status], fault.Detail
	if c.door.Pages || explanation == "" {
		explanation, detail = cmp.Or(fault.Detail, explanation), ""
	}
	if escape != nil {
		explanation, detail = escape(explanation), escape(detail)
	}
	return explanation + lineBreak + lineBreak + "\n" + detail + "\n\n"
}

var escapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#x27;")

// escapeHTML escapes the reserved characters of HTML, and all outside ASCII.
func escapeHTML(text string) string {
	var out strings.Builder
	for _, r := range escapes.Replace(text) {
		if r < utf8.RuneSelf {
			out.WriteRune(r)
		} else {
			fmt.Fprintf(&out, "&#%d;", r)
		}
	}
	return out.String()
}

// errors returns the JSON of a fault as OpenStack's list of errors.
func (c *Call) errors(fault *Fault, title string) []byte {
	detail := fault.Detail
	if explanation := explanations[fault.Status]; explanation != "" {
		detail = strings.TrimSpace(explanation + "\n\n " + fault.Detail)
	}
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

// Encode returns the JSON of a value, without escapes for HTML. It panics if the
// value has no JSON.
func Encode(value any) []byte {
	if text, ok := value.(Text); ok {
		return text
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err) // the values of answers always have JSON
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// accepts reports whether the header Accept permits a media type. An absent or
// empty header permits JSON alone.
func accepts(header http.Header, media string) bool {
	if header.Get("Accept") == "" {
		return media == mediaJSON
	}
	return quality(header, media) > 0
}

// quality returns the quality value of a media type in the header Accept, by the
// most specific range that matches. It is 0 if no range matches.
func quality(header http.Header, media string) (q float64) {
	family, _, _ := strings.Cut(media, "/")
	ranges := []string{"*/*", family + "/*", media}
	specific := 0
	for part := range strings.SplitSeq(strings.Join(header.Values("Accept"), ","), ",") {
		kind, parameters, _ := strings.Cut(part, ";")
		of := slices.Index(ranges, strings.ToLower(strings.TrimSpace(kind)))
		if of < specific {
			continue
		}
		specific, q = of, 1
		for parameter := range strings.SplitSeq(parameters, ";") {
			text, isWeight := strings.CutPrefix(strings.TrimSpace(parameter), "q=")
			if weight, err := strconv.ParseFloat(strings.TrimSpace(text), 64); isWeight && err == nil {
				q = weight
			}
		}
	}
	return q
}
