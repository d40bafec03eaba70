package resource

import (
	"strings"
	"unicode/utf8"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// Input is a resource to create. The store sets defaults for absent fields: a
// new uuid, the viewer's project, PRIVATE.
type Input struct {
	Type        string
	Name        string
	Description *string
	ProjectID   *string
	Visibility  *access.Visibility
	Parent      *string // a uuid
	UUID        *string
	Metadata    []metadef.KeyValue
	// ServiceMetadata are items that only administrators and services may
	// change.
	ServiceMetadata []metadef.KeyValue
	Capabilities    []metadef.KeyValue
	Tags            []string
}

// MaxInputs is the maximum number of resources in one creation.
const MaxInputs = 1000

// Inputs are resources to be created together. The type follows
// `CreateResourcesInput`.
type Inputs struct {
	Items []Input
	// Atomic creates all of them or none.
	Atomic bool
}

// Check adds all problems of the input itself.
func (in Input) Check(problems *problem.Problems, path string) {
	text.Check(problems, problem.Join(path, "type"), in.Type, 1, text.MaxName)
	text.Check(problems, problem.Join(path, "name"), in.Name, 1, MaxName)
	text.CheckOptional(problems, problem.Join(path, "description"), in.Description, 0, MaxDescription)
	text.CheckOptional(problems, problem.Join(path, "projectId"), in.ProjectID, 1, MaxProject)
	access.CheckVisibility(problems, problem.Join(path, "visibility"), in.Visibility)
	seen := map[string]bool{}
	checkMetadata(problems, problem.Join(path, "metadata"), in.Metadata, seen)
	checkMetadata(problems, problem.Join(path, "serviceMetadata"), in.ServiceMetadata, seen)
	CheckCapabilities(problems, problem.Join(path, "capabilities"), in.Capabilities)
	CheckTags(problems, problem.Join(path, "tags"), in.Tags)
}

// RefuseUUID refuses a uuid for a new resource. The answer does not reveal
// whether the uuid is reserved or taken, or which resource has it.
func RefuseUUID(uuid string) *problem.Refusal {
	return problem.Refuse(problem.ErrAlreadyExists, "uuid %s cannot be used: it is taken or reserved", uuid).
		On("input.uuid")
}

// IsReservedUUID reports whether a uuid is the nil or the max uuid of RFC 9562,
// which identify nothing.
func IsReservedUUID(uuid string) bool {
	return strings.Trim(uuid, "0-") == "" || strings.Trim(uuid, "f-") == ""
}

// checkMetadata adds the problems of items to write: exceeded limits of keys
// and values, and keys that seen already contains. It adds every key to seen.
func checkMetadata(problems *problem.Problems, path string, items []metadef.KeyValue, seen map[string]bool) {
	for i, item := range items {
		at := problem.Index(path, i)
		item.Check(problems, at)
		text.CheckUnique(problems, problem.Join(at, "key"), item.Key, seen)
	}
}

// CheckTags adds the problems of a resource's tags. Each must have 1 to 80
// characters. They must be unique, ignoring case, and at most maxTags.
func CheckTags(problems *problem.Problems, path string, tags []string) {
	if len(tags) > maxTags {
		problems.Add(path, "must have at most %d tags, has %d", maxTags, len(tags))
		return
	}
	seen := map[string]bool{}
	for i, tag := range tags {
		text.Check(problems, problem.Index(path, i), tag, 1, text.MaxName)
		if utf8.ValidString(tag) {
			text.CheckUnique(problems, problem.Index(path, i), text.Fold(tag), seen)
		}
	}
}

// Patch is a change of a resource's own fields.
type Patch struct {
	UUID        string
	NewName     metadef.Change[*string]
	Description metadef.Change[*string]
	Visibility  metadef.Change[*access.Visibility] // cleared: private
	Parent      metadef.Change[*string]            // a uuid; cleared: no parent
	Revision    *int
}

// Check adds all problems of the patch itself.
func (p Patch) Check(problems *problem.Problems, path string) {
	if p.NewName.Set && p.NewName.Value == nil {
		problems.Add(problem.Join(path, "newName"), "must not be null")
	}
	text.CheckOptional(problems, problem.Join(path, "newName"), p.NewName.Value, 1, MaxName)
	text.CheckOptional(problems, problem.Join(path, "description"), p.Description.Value, 0, MaxDescription)
	access.CheckVisibility(problems, problem.Join(path, "visibility"), p.Visibility.Value)
}
