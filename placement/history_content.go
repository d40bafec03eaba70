package placement

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// storedHistory is the content of a bucket as JSON. It has columns, which
// compress to a third of the size of rows. A column with only zero values is
// absent. A group is empty if it equals the group of the previous row.
type storedHistory struct {
	Groups  []string                     `json:"g,omitempty"`
	Classes []string                     `json:"c,omitempty"`
	Flavors []string                     `json:"f,omitempty"`
	Samples []int                        `json:"n"`
	Figures [HistoryFigures]storedFigure `json:"v"`
	IsCut   bool                         `json:"cut,omitempty"`
}

// storedFigure has the ranges of a figure: minimum, maximum less minimum, and sum
// less the product of minimum and samples.
type storedFigure struct {
	Min    []int64 `json:"m,omitempty"`
	Spread []int64 `json:"s,omitempty"`
	Rest   []int64 `json:"r,omitempty"`
}

// Pack returns the content as a string: base64 of the compressed JSON.
func (c HistoryContent) Pack() (string, error) {
	stored, last := storedHistory{Samples: []int{}, IsCut: c.IsCut}, ""
	for _, row := range c.Rows {
		group := row.Group
		if group == last {
			group = ""
		}
		last = row.Group
		stored.Groups, stored.Classes = append(stored.Groups, group), append(stored.Classes, row.ResourceClass)
		stored.Flavors, stored.Samples = append(stored.Flavors, row.Flavor), append(stored.Samples, row.Samples)
		for i, of := range row.Figures {
			to := &stored.Figures[i]
			to.Min, to.Spread = append(to.Min, of.Min), append(to.Spread, of.Max-of.Min)
			to.Rest = append(to.Rest, of.Sum-of.Min*int64(row.Samples))
		}
	}
	stored.Groups, stored.Classes, stored.Flavors = columnOf(stored.Groups),
		columnOf(stored.Classes), columnOf(stored.Flavors)
	for i, of := range stored.Figures {
		stored.Figures[i] = storedFigure{columnOf(of.Min), columnOf(of.Spread), columnOf(of.Rest)}
	}
	text, err := json.Marshal(stored)
	if err != nil {
		return "", err
	}
	var packed bytes.Buffer
	to := base64.NewEncoder(base64.StdEncoding, &packed)
	compressed, err := flate.NewWriter(to, flate.BestCompression)
	if err != nil {
		return "", err
	}
	if _, err := compressed.Write(text); err != nil {
		return "", err
	}
	if err := errors.Join(compressed.Close(), to.Close()); err != nil {
		return "", err
	}
	return packed.String(), nil
}

// columnOf returns a column, or nil if all its values are zero.
func columnOf[V comparable](values []V) []V {
	var zero V
	if slices.ContainsFunc(values, func(value V) bool { return value != zero }) {
		return values
	}
	return nil
}

// valueIn returns a value of a column, zero for an absent column.
func valueIn[V any](column []V, i int) (value V) {
	if i < len(column) {
		value = column[i]
	}
	return value
}

// maxHistoryText bounds the bytes of JSON that UnpackHistory reads, because
// corrupt content might decompress to more.
const maxHistoryText = 4 << 20

// UnpackHistory returns the content that Pack wrote. The empty string is a
// bucket without samples. The error means that the string is corrupt.
func UnpackHistory(packed string) (content HistoryContent, err error) {
	if packed == "" {
		return content, nil
	}
	text, err := io.ReadAll(io.LimitReader(flate.NewReader(base64.NewDecoder(base64.StdEncoding,
		bytes.NewReader([]byte(packed)))), maxHistoryText))
	if err != nil {
		return content, fmt.Errorf("read a bucket of the capacity history: %w", err)
	}
	var stored storedHistory
	if err := json.Unmarshal(text, &stored); err != nil {
		return content, fmt.Errorf("read a bucket of the capacity history: %w", err)
	}
	content.IsCut = stored.IsCut
	group := ""
	for i, samples := range stored.Samples {
		if of := valueIn(stored.Groups, i); of != "" {
			group = of
		}
		row := HistoryRow{Samples: samples, HistorySeries: HistorySeries{Group: group,
			ResourceClass: valueIn(stored.Classes, i), Flavor: valueIn(stored.Flavors, i)}}
		for at, of := range stored.Figures {
			least := valueIn(of.Min, i)
			row.Figures[at] = HistoryRange{Min: least, Max: least + valueIn(of.Spread, i),
				Sum: least*int64(samples) + valueIn(of.Rest, i)}
		}
		content.Rows = append(content.Rows, row)
	}
	return content, nil
}
