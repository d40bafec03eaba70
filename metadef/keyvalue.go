package metadef

import (
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// Limits of metadata, in code points unless said otherwise.
const (
	MaxMetadataKey   = 255
	MaxMetadataValue = 1023
	MaxMetadataItems = 128 // items of one resource, unless configured otherwise
)

// KeyValue is a key and its value, as they come in and in filters.
type KeyValue struct {
	Key   string
	Value string
}

// Check adds what is wrong with a pair of metadata.
func (item KeyValue) Check(problems *problem.Problems, path string) {
	text.Check(problems, problem.Join(path, "key"), item.Key, 1, MaxMetadataKey)
	text.Check(problems, problem.Join(path, "value"), item.Value, 1, MaxMetadataValue)
}
