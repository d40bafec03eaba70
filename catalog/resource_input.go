package catalog

import "unicode/utf8"

// ResourceInput is a resource to create. What is absent is chosen by the store:
// a new uuid, the viewer's project, PRIVATE.
type ResourceInput struct {
	Type        string
	Name        string
	Description *string
	ProjectID   *string
	Visibility  *Visibility
	Parent      *string // a uuid
	UUID        *string
	Metadata    []KeyValue
	// ServiceMetadata are items that only admins and services change.
	ServiceMetadata []KeyValue
	Capabilities    []KeyValue
	Tags            []string
}

// Check notes everything that is wrong with the input in itself.
func (in ResourceInput) Check(problems *Problems, path string) {
	CheckText(problems, joined(path, "type"), in.Type, 1, MaxName)
	CheckText(problems, joined(path, "name"), in.Name, 1, MaxResourceName)
	if in.Description != nil {
		CheckText(problems, joined(path, "description"), *in.Description, 0, MaxResourceDescription)
	}
	if in.ProjectID != nil {
		CheckText(problems, joined(path, "projectId"), *in.ProjectID, 1, MaxProject)
	}
	if in.Visibility != nil {
		checkVisibility(*in.Visibility, joined(path, "visibility"), problems)
	}
	seen := map[string]bool{}
	checkMetadata(problems, joined(path, "metadata"), in.Metadata, seen)
	checkMetadata(problems, joined(path, "serviceMetadata"), in.ServiceMetadata, seen)
	CheckCapabilities(problems, joined(path, "capabilities"), in.Capabilities)
	CheckResourceTags(problems, joined(path, "tags"), in.Tags)
}

// checkMetadata notes what is wrong with items to write: the limits of keys and
// values, and a key that seen holds already, to which every key is added.
func checkMetadata(problems *Problems, path string, items []KeyValue, seen map[string]bool) {
	for i, item := range items {
		at := indexed(path, i)
		item.check(problems, at)
		checkNew(problems, joined(at, "key"), item.Key, seen)
	}
}

// check notes what is wrong with a pair of metadata.
func (item KeyValue) check(problems *Problems, path string) {
	CheckText(problems, joined(path, "key"), item.Key, 1, MaxMetadataKey)
	CheckText(problems, joined(path, "value"), item.Value, 1, MaxMetadataValue)
}

// CheckMetadataKeys notes what is wrong with keys that are named.
func CheckMetadataKeys(problems *Problems, path string, keys []string) {
	seen := map[string]bool{}
	for i, key := range keys {
		CheckText(problems, indexed(path, i), key, 1, MaxMetadataKey)
		checkNew(problems, indexed(path, i), key, seen)
	}
}

// CheckResourceTags notes what is wrong with the tags of a resource: 1 to 80
// characters each, none twice without regard to case, at most MaxResourceTags.
func CheckResourceTags(problems *Problems, path string, tags []string) {
	if len(tags) > MaxResourceTags {
		problems.Add(path, "must have at most %d tags, has %d", MaxResourceTags, len(tags))
		return
	}
	seen := map[string]bool{}
	for i, tag := range tags {
		CheckText(problems, indexed(path, i), tag, 1, MaxName)
		if utf8.ValidString(tag) {
			checkNew(problems, indexed(path, i), Fold(tag), seen)
		}
	}
}

// checkDistinct notes every name that the list has before.
func checkDistinct[T ~string](problems *Problems, path string, names []T) {
	seen := map[string]bool{}
	for i, name := range names {
		checkNew(problems, indexed(path, i), string(name), seen)
	}
}

func checkNew(problems *Problems, path, name string, seen map[string]bool) {
	if seen[name] {
		problems.Add(path, "is named twice")
	}
	seen[name] = true
}
