package web

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// The media types of answers. The first two differ in the status of a correct
// HTTP request that is refused as GraphQL: 200 and 400.
const (
	mediaJSON     = "application/json"
	mediaResponse = "application/graphql-response+json"
	// mediaEvents is the media type of a stream of answers.
	mediaEvents = "text/event-stream"
)

// negotiate returns the media type of the answer. This is application/json,
// unless the Accept headers do not admit it, or name another type and give it a
// higher quality. Of equal qualities, a named type precedes one that a wildcard
// matches, then the first in the header wins. The media type of streams must be
// named. The result is empty if the headers admit no type of the three.
func negotiate(header http.Header) string {
	accept := strings.Join(header.Values("Accept"), ",")
	if strings.TrimSpace(accept) == "" {
		return mediaJSON
	}
	json, response, events := quality(accept, mediaJSON), quality(accept, mediaResponse), quality(accept, mediaEvents)
	switch {
	case events.isBefore(json) && events.isBefore(response):
		return mediaEvents
	case response.isBefore(json):
		return mediaResponse
	case json.q > 0:
		return mediaJSON
	case response.q > 0:
		return mediaResponse
	}
	return ""
}

// acceptsEvents reports whether the Accept headers name the media type of streams.
func acceptsEvents(header http.Header) bool {
	events := quality(strings.Join(header.Values("Accept"), ","), mediaEvents)
	return events.named && events.q > 0
}

// isBefore reports whether the client names a media type and prefers it to
// another.
func (p preference) isBefore(other preference) bool {
	return p.named && p.q > 0 && (p.q > other.q || p.q == other.q && (!other.named || p.index < other.index))
}

// preference is how much a client wants a media type.
type preference struct {
	q     float64
	named bool // explicitly, not by a wildcard
	index int  // position in the list
}

// quality returns the preference for a media type by the most specific range.
func quality(accept, media string) preference {
	best, specificity := preference{}, 0
	for index, text := range strings.Split(accept, ",") {
		name, parameters, err := mime.ParseMediaType(text)
		if err != nil {
			continue
		}
		if charset := parameters["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") {
			continue
		}
		rank := 0
		switch name {
		case media:
			rank = 3
		case "application/*":
			rank = 2
		case "*/*":
			rank = 1
		}
		if rank <= specificity {
			continue
		}
		q := 1.0
		if weight, ok := parameters["q"]; ok {
			if q, err = strconv.ParseFloat(weight, 64); err != nil || q < 0 || q > 1 {
				continue
			}
		}
		best, specificity = preference{q: q, named: rank == 3, index: index}, rank
	}
	return best
}

// isJSON reports whether a body is JSON in UTF-8 according to its Content-Type.
func isJSON(header http.Header) bool {
	values := header.Values("Content-Type")
	if len(values) != 1 {
		return false
	}
	name, parameters, err := mime.ParseMediaType(values[0])
	charset := parameters["charset"]
	return err == nil && name == mediaJSON && (charset == "" || strings.EqualFold(charset, "utf-8"))
}
