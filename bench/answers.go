package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/cadastre-dev/cadastre/bench/local"
)

// canonical is a jq function. It converts a part of an answer into a form that
// is the same for Cadastre and for PostGraphile: it removes nulls and empty
// strings, replaces connections by the lists of their nodes, sorts lists, and
// decodes JSON in strings.
const canonical = `def canonical:
	if type == "object" then
		if keys == ["nodes"] then .nodes | canonical else map_values(canonical) | with_entries(select(.value != null)) end
	elif type == "array" then map(canonical) | sort
	elif . == "" then null
	elif type == "string" and test("^[\\[{]") then . as $text | try (fromjson | canonical) catch $text
	else . end; `

// rows returns the jq query for the rows of the work in Cadastre's answer.
func (w work) rows() string {
	list := "." + w.List
	if w.Path == "" {
		list = ".data" + strings.TrimSuffix(list, ".")
	}
	if w.List != "" {
		list += "[]"
	}
	return list + " | canonical"
}

// sameAnswer returns an error unless a peer's answer has the same rows as
// Cadastre's.
func sameAnswer(ctx context.Context, own, peer *series) error {
	answers := [][]byte{own.answer}
	if own.work.Peer.Every {
		var err error
		if answers, err = own.pages(ctx); err != nil {
			return err
		}
	}
	return own.sameRowsAs(peer.answer, answers)
}

// sameRowsAs returns an error unless a peer's answer has the same rows as the
// given answers of Cadastre.
func (s *series) sameRowsAs(answer []byte, answers [][]byte) error {
	of := s.work.Peer
	for i, query := range of.Rows {
		theirs, err := rowsOf(query, answer)
		if err != nil {
			return err
		}
		ours := s.work.rows()
		if of.Own != nil {
			ours = of.Own[i]
		}
		wanted, err := rowsOf(ours, answers...)
		if err != nil {
			return err
		}
		if of.Every && i == 0 && len(theirs) != s.rows {
			return fmt.Errorf("%d rows, and Cadastre has %d", len(theirs), s.rows)
		}
		if of.Every { // the peer sorts differently, so its page may be any rows that Cadastre has
			theirs = slices.Compact(theirs)
			wanted = slices.DeleteFunc(slices.Compact(wanted), func(row string) bool {
				_, ok := slices.BinarySearch(theirs, row)
				return !ok
			})
		}
		if err := sameRows(wanted, theirs); err != nil {
			return err
		}
	}
	return nil
}

// sameRows returns an error if a peer's rows differ from Cadastre's, or if
// there are none.
func sameRows(own, peers []string) error {
	for i := range min(len(own), len(peers)) {
		if own[i] != peers[i] {
			return fmt.Errorf("rows differ from Cadastre's: %s", difference([]byte(own[i]), []byte(peers[i])))
		}
	}
	if len(own) != len(peers) {
		return fmt.Errorf("%d rows, and Cadastre has %d", len(peers), len(own))
	}
	if len(own) == 0 {
		return errors.New("there is no row")
	}
	return nil
}

// rowsOf returns the results of a jq query on answers, as sorted JSON.
func rowsOf(query string, answers ...[]byte) (rows []string, err error) {
	parsed, err := gojq.Parse(canonical + query)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", query, err)
	}
	for _, answer := range answers {
		var value any
		if err := json.Unmarshal(answer, &value); err != nil {
			return nil, fmt.Errorf("read the answer: %w", err)
		}
		for results := parsed.Run(value); ; {
			row, ok := results.Next()
			if err, isError := row.(error); isError {
				return nil, fmt.Errorf("%s: %w", query, err)
			}
			if !ok {
				break
			}
			text, err := gojq.Marshal(row)
			if err != nil {
				return nil, err
			}
			rows = append(rows, string(text))
		}
	}
	slices.Sort(rows)
	return rows, nil
}

// pages returns Cadastre's answers with all rows of a work: one for each page,
// or for a REST API a single answer without a limit.
func (s *series) pages(ctx context.Context) (answers [][]byte, err error) {
	if s.work.Path != "" { // without a limit
		all := s.work.Question
		all.Path = limited.ReplaceAllString(all.Path, "")
		c := s.drive(1, 0).clients[0]
		defer c.Close()
		answer, err := c.Insist(ctx, s.target.call(all, 0), nil)
		return [][]byte{answer}, err
	}
	document := strings.Replace(s.work.Document, "providerSummaries {",
		"pageInfo { hasNextPage endCursor } providerSummaries {", 1)
	variables := s.target.variables(s.work.Question, 0)
	for {
		answer, err := s.target.operator.Insist(ctx, local.Operation(document, variables), nil)
		if err != nil {
			return nil, err
		}
		answers = append(answers, answer)
		after, err := rowsOf(".data[].pageInfo | select(.hasNextPage) | .endCursor", answer)
		if err != nil || len(after) == 0 {
			return answers, err
		}
		variables["after"] = json.RawMessage(after[0])
	}
}

var limited = regexp.MustCompile(`limit=\d+&`)

// unpriced returns an answer without its extensions: the cost in them grows with
// the tables.
func unpriced(answer []byte) []byte {
	if end := bytes.LastIndex(answer, []byte(`,"extensions":`)); end >= 0 {
		return answer[:end]
	}
	return answer
}

// difference returns the parts of two strings around their first difference.
func difference(a, b []byte) string {
	at := 0
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	const around = 100
	excerpt := func(text []byte) []byte { return text[max(0, min(len(text), at-around)):min(len(text), at+around)] }
	return fmt.Sprintf("at byte %d\n%s\n%s", at, excerpt(a), excerpt(b))
}
