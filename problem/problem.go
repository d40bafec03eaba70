// Package problem has the refusals of operations, by kind, and the problems of
// inputs, with their paths.
package problem

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The kinds of refusal. An error for a caller wraps its kind (errors.Is); an
// InvalidInput also wraps the kinds of its problems. Any other error is a fault
// of the program and is never shown.
var (
	ErrInvalidInput     = errors.New("invalid input")
	ErrUnauthenticated  = errors.New("unauthenticated")
	ErrForbidden        = errors.New("forbidden")
	ErrNotFound         = errors.New("not found")
	ErrAlreadyExists    = errors.New("already exists")
	ErrConcurrentUpdate = errors.New("concurrent update")
	ErrInUse            = errors.New("in use")
	ErrProtected        = errors.New("protected")
	ErrCapacityExceeded = errors.New("capacity exceeded")
	ErrQuotaExceeded    = errors.New("quota exceeded")
	ErrRateLimited      = errors.New("rate limited")
	ErrTooComplex       = errors.New("too complex")
	ErrTimeout          = errors.New("timeout")
	ErrUnavailable      = errors.New("unavailable")
	// whether a change was made is unknown, or its result cannot be shown
	ErrOutcomeUnknown    = errors.New("outcome unknown")
	errWithoutAnyProblem = errors.New("invalid input without a problem")
)

// kinds lists the kinds of refusal, to decode the kind of a problem.
var kinds = []error{ErrInvalidInput, ErrUnauthenticated, ErrForbidden, ErrNotFound, ErrAlreadyExists,
	ErrConcurrentUpdate, ErrInUse, ErrProtected, ErrCapacityExceeded, ErrQuotaExceeded, ErrRateLimited, ErrTooComplex,
	ErrTimeout, ErrUnavailable, ErrOutcomeUnknown}

// Refusal tells the caller why an operation was refused. Message states the
// problem, then the allowed values. Field is the path of the input
// (`input.properties[2].enum`), or empty.
type Refusal struct {
	Kind    error
	Field   string
	Message string
	// RetryAfter is the time to wait before a retry; 0 is unknown.
	RetryAfter time.Duration
	// Everywhere means that the refusal applies to every object, so that one
	// report is enough.
	Everywhere bool
	reason     error
}

// Error returns the message.
func (r *Refusal) Error() string { return r.Message }

// Unwrap returns the kind, so that errors.Is(err, ErrNotFound) works, and the
// cause.
func (r *Refusal) Unwrap() []error { return []error{r.Kind, r.reason} }

// Refuse returns a refusal of one kind.
func Refuse(kind error, format string, args ...any) *Refusal {
	return &Refusal{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// Because sets the cause of the refusal: for the log, never for the caller.
func (r *Refusal) Because(cause error) *Refusal {
	r.reason = cause
	return r
}

// Cause returns the cause of the refusal, for the log, or nil.
func (r *Refusal) Cause() error { return r.reason }

// After sets the time until the next try.
func (r *Refusal) After(wait time.Duration) *Refusal {
	r.RetryAfter = wait
	return r
}

// ForAll marks the refusal as the same for every object.
func (r *Refusal) ForAll() *Refusal {
	r.Everywhere = true
	return r
}

// On sets the input field of the refusal.
func (r *Refusal) On(field string) *Refusal {
	r.Field = field
	return r
}

// IsForAll reports whether an error is a refusal that is the same for every
// object.
func IsForAll(err error) bool {
	refusal, ok := errors.AsType[*Refusal](err)
	return ok && refusal.Everywhere
}

// Under moves the refusal in an error, if any, below a path: its field becomes
// the path, joined with the field if there is one.
func Under(err error, path string) error {
	var refusal *Refusal
	if errors.As(err, &refusal) {
		if refusal.Field != "" {
			path += "." + refusal.Field
		}
		refusal.Field = path
	}
	return err
}

// Problem is one problem of an input, with its path.
type Problem struct {
	Field   string
	Message string
	// Kind is the kind of refusal; nil means invalid input.
	Kind error
}

// keptProblem is the JSON form of a problem.
type keptProblem struct {
	Field, Message string
	Kind           string `json:",omitempty"`
}

// MarshalJSON encodes the problem with its kind.
func (p Problem) MarshalJSON() ([]byte, error) {
	kept := keptProblem{Field: p.Field, Message: p.Message}
	if p.Kind != nil {
		kept.Kind = p.Kind.Error()
	}
	return json.Marshal(kept)
}

// UnmarshalJSON decodes the output of MarshalJSON.
func (p *Problem) UnmarshalJSON(text []byte) error {
	var kept keptProblem
	if err := json.Unmarshal(text, &kept); err != nil {
		return err
	}
	*p = Problem{Field: kept.Field, Message: kept.Message}
	for _, kind := range kinds {
		if kind.Error() == kept.Kind {
			p.Kind = kind
		}
	}
	if p.Kind == nil && kept.Kind != "" {
		return fmt.Errorf("problem of an unknown kind %q", kept.Kind)
	}
	return nil
}

// Reported returns the problem as a line of a report: its path, its kind in
// capitals if it has one, and its message.
func (p Problem) Reported() string {
	if p.Kind == nil {
		return p.Field + ": " + p.Message
	}
	return p.Field + ": " + (&Refusal{Kind: p.Kind, Message: p.Message}).Reported()
}

// Problems collects all problems of an input, so that one answer can report
// them all.
type Problems []Problem

// Add adds a problem.
func (p *Problems) Add(field, format string, args ...any) {
	*p = append(*p, Problem{Field: field, Message: fmt.Sprintf(format, args...)})
}

// AddKind is AddBounded for a problem with a kind; nil means invalid input.
func (p *Problems) AddKind(kind error, field, format string, args ...any) {
	count := len(*p)
	if p.AddBounded(field, format, args...); count < maxProblems {
		(*p)[count].Kind = kind
	}
}

// maxProblems is the number of problems that AddBounded lists.
const maxProblems = 200

const moreProblems = "more problems follow; only the first %d are listed"

// AddBounded adds a problem of an input that can have any number of them.
// Beyond maxProblems it notes once that there are more.
func (p *Problems) AddBounded(field, format string, args ...any) {
	switch {
	case len(*p) < maxProblems:
		p.Add(field, format, args...)
	case len(*p) == maxProblems:
		p.Add(field, moreProblems, maxProblems)
	}
}

// Total returns the number of problems in words, because AddBounded counts to
// maxProblems only.
func (p Problems) Total() string {
	if len(p) == maxProblems+1 && p[maxProblems].Message == fmt.Sprintf(moreProblems, maxProblems) {
		return fmt.Sprintf("more than %d problems", maxProblems)
	}
	return fmt.Sprintf("%d problems", len(p))
}

// With returns the problems of p, followed by the problems of more that p lacks.
func (p Problems) With(more Problems) Problems {
	all := slices.Clone(p)
	for _, one := range more {
		if !slices.Contains(p, one) {
			all = append(all, one)
		}
	}
	return all
}

// Of returns the problems of an *InvalidInput. It returns false for any other
// error; nil has no problems.
func Of(err error) (Problems, bool) {
	var invalid *InvalidInput
	if errors.As(err, &invalid) {
		return slices.Clone(invalid.Problems), true
	}
	return nil, err == nil
}

// InError returns the problems in an error: all problems of an *InvalidInput,
// one problem for any other error, none for nil.
func InError(err error) Problems {
	if problems, ok := Of(err); ok {
		return problems
	}
	refusal, ok := errors.AsType[*Refusal](err)
	if !ok {
		return Problems{{Message: err.Error()}}
	}
	one := Problem{Field: refusal.Field, Message: refusal.Message}
	if !errors.Is(refusal.Kind, ErrInvalidInput) {
		one.Kind = refusal.Kind
	}
	return Problems{one}
}

// HasUnder reports whether a problem is at a path or below it.
func (p Problems) HasUnder(path string) bool {
	return slices.ContainsFunc(p, func(one Problem) bool {
		rest, ok := strings.CutPrefix(one.Field, path)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// Err returns nil if there are no problems, otherwise an *InvalidInput.
func (p Problems) Err() error {
	if len(p) == 0 {
		return nil
	}
	return &InvalidInput{Problems: p}
}

// InvalidInput refuses an input and lists all of its problems. Nothing was
// stored.
type InvalidInput struct {
	Problems Problems
}

// Error returns every problem with its path.
func (e *InvalidInput) Error() string {
	parts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		parts[i] = p.Field + ": " + p.Message
	}
	return strings.Join(parts, "; ")
}

// Unwrap returns ErrInvalidInput and the kinds of its problems. An InvalidInput
// without a problem is a fault of the program and wraps neither.
func (e *InvalidInput) Unwrap() []error {
	if len(e.Problems) == 0 {
		return []error{errWithoutAnyProblem}
	}
	kinds := []error{ErrInvalidInput}
	for _, one := range e.Problems {
		if one.Kind != nil && !slices.Contains(kinds, one.Kind) {
			kinds = append(kinds, one.Kind)
		}
	}
	return kinds
}

// Invalid returns an *InvalidInput with one problem.
func Invalid(field, format string, args ...any) error {
	var p Problems
	p.Add(field, format, args...)
	return p.Err()
}

// Reported returns a refusal as a line of a report: its kind in capitals, and
// its message.
func (r *Refusal) Reported() string {
	return strings.ToUpper(strings.ReplaceAll(r.Kind.Error(), " ", "_")) + ": " + r.Message
}

// Join returns the path of a member: `$.properties.hw_cpu`, or with brackets if
// the name is not an identifier: `$.properties['cpu_info:features']`.
func Join(path, key string) string {
	for i, r := range key {
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return path + "['" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(key) + "']"
		}
	}
	if key == "" {
		return path + "['']"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// Index returns the path of a list item.
func Index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }
