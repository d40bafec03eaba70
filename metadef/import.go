package metadef

import (
	"cmp"
	"slices"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/problem"
)

// ImportMode says what an import does with a namespace that is there already.
type ImportMode string

const (
	// Skip leaves it as it is.
	Skip ImportMode = "SKIP"
	// Merge adds what is missing in it and changes nothing.
	Merge ImportMode = "MERGE"
	// PreferNew adds what is missing and replaces what the file has too; what
	// the file lacks stays.
	PreferNew ImportMode = "PREFER_NEW"
	// Overwrite makes it what the file says.
	Overwrite ImportMode = "OVERWRITE"
)

// ImportPlan is what an import would do with one document.
type ImportPlan struct {
	Outcome     ImportOutcome
	Result      *Document // what the namespace is to be; nil where nothing is to be written
	Differences []string  // from what is there to what would be
	Warnings    problem.Problems
	Edits       []ImportEdit     // of here, that an upgrade keeps
	Problems    problem.Problems // why it failed
}

// PlanImport returns what to do with a document that has no problems. Existing
// is the namespace as it is, with all of its fields, or nil. What the file is
// silent about is kept in every mode, but for display name and description,
// which Overwrite clears. A new namespace is public, with a warning, where the
// file does not say; its owner is for the caller to fill in where the file
// names none. Overwrite fails on a protected namespace that it would change,
// unless includeProtected; so does PreferNew where an object would lose a
// property.
func PlanImport(existing, incoming *Document, mode ImportMode, includeProtected bool) ImportPlan {
	if existing == nil {
		return planCreation(incoming)
	}
	closed := existing.Protected != nil && *existing.Protected && !includeProtected
	var result *Document
	switch mode {
	case Merge:
		result = mergeDocuments(existing, incoming, false)
	case PreferNew:
		result = mergeDocuments(existing, incoming, true)
		if object := losingObject(existing.Objects, result.Objects); closed && object != "" {
			return failure(problem.ErrProtected, "%s is protected; replacing the object %s by one with fewer properties takes includeProtected", Shorten(existing.Name), Shorten(object))
		}
	case Overwrite:
		result = withAccessOf(existing, incoming)
		if closed && len(Differences(existing, result)) > 0 {
			return failure(problem.ErrProtected, "%s is protected; overwriting it takes includeProtected", Shorten(existing.Name))
		}
	case Skip:
		plan := ImportPlan{Outcome: ImportSkipped, Differences: Differences(existing, withFieldsOf(existing, incoming))}
		if len(plan.Differences) == 0 {
			plan.Outcome = ImportUnchanged
		}
		return plan
	default:
		return failure(nil, "unknown import mode %s", Shorten(string(mode)))
	}
	return planChange(existing, result)
}

// losingObject returns the name of the first object before that has a property
// which the object of that name lacks after, or the empty string.
func losingObject(before, after []DocumentObject) string {
	now := lists.ByKey(after, objectName)
	for _, old := range before {
		if old.LosesProperties(now[old.Name]) {
			return old.Name
		}
	}
	return ""
}

// failure returns the plan of an import that is refused, by a kind of refusal or
// nil for an invalid input.
func failure(kind error, format string, args ...any) ImportPlan {
	plan := ImportPlan{Outcome: ImportFailed}
	plan.Problems.AddKind(kind, "$", format, args...)
	return plan
}

func planCreation(incoming *Document) ImportPlan {
	plan := ImportPlan{Outcome: ImportCreated}
	result := *incoming
	if result.Visibility == nil {
		everyone := access.Public
		result.Visibility = &everyone
		plan.Warnings.Add("$.visibility", "is missing; the namespace is public")
	}
	if result.Protected == nil {
		result.Protected = new(bool)
	}
	plan.Result, plan.Differences = &result, Differences(&Document{}, &result)
	return plan
}

// planChange checks what a namespace is to become: alone each document is
// sound, but together they may be too large or put a tag under itself.
func planChange(existing, result *Document) ImportPlan {
	c := checker{level: Lenient}
	for _, list := range []struct {
		path  string
		count int
	}{
		{"$.properties", len(result.Properties)}, {"$.objects", len(result.Objects)},
		{"$.tags", len(result.Tags)}, {"$.resource_type_associations", len(result.Associations)},
	} {
		c.few(list.count, list.path)
	}
	result.Tags = c.validateTags(slices.Clone(result.Tags), pathsOf("$.tags", len(result.Tags)), nil)
	if size := len(result.compact()); size > MaxDocument {
		c.problem("$", "would have %d bytes, more than %d", size, MaxDocument)
	}
	if len(c.found) > 0 {
		return ImportPlan{Outcome: ImportFailed, Problems: c.found}
	}
	plan := ImportPlan{Outcome: ImportUnchanged, Differences: Differences(existing, result)}
	if len(plan.Differences) > 0 {
		plan.Outcome, plan.Result = ImportUpdated, result
	}
	return plan
}

func pathsOf(path string, count int) []string {
	paths := make([]string, count)
	for i := range paths {
		paths[i] = problem.Index(path, i)
	}
	return paths
}

// withFieldsOf returns the incoming document with everything it is silent
// about.
func withFieldsOf(existing, incoming *Document) *Document {
	result := *withAccessOf(existing, incoming)
	result.DisplayName = cmp.Or(incoming.DisplayName, existing.DisplayName)
	result.Description = cmp.Or(incoming.Description, existing.Description)
	return &result
}

// withAccessOf returns the incoming document with the access that it is silent
// about.
func withAccessOf(existing, incoming *Document) *Document {
	result := *incoming
	result.Visibility = cmp.Or(incoming.Visibility, existing.Visibility)
	result.Protected = cmp.Or(incoming.Protected, existing.Protected)
	result.Owner = cmp.Or(incoming.Owner, existing.Owner)
	return &result
}

// mergeDocuments adds to what is there; where both have a thing, the incoming
// one replaces it only if preferred.
func mergeDocuments(existing, incoming *Document, prefer bool) *Document {
	result := *existing
	if prefer {
		result = *withFieldsOf(existing, incoming)
		result.Name = existing.Name
	}
	result.Associations = mergeAssociations(existing.Associations, incoming.Associations, prefer)
	result.Properties = mergeLists(existing.Properties, incoming.Properties, propertyName, prefer)
	result.Objects = mergeLists(existing.Objects, incoming.Objects, objectName, prefer)
	result.Tags = mergeLists(existing.Tags, incoming.Tags, tagKey, prefer)
	return &result
}

func mergeLists[T any](existing, incoming []T, key func(T) string, prefer bool) []T {
	old, now := lists.ByKey(existing, key), lists.ByKey(incoming, key)
	var merged []T
	for _, name := range union(lists.Map(existing, key), lists.Map(incoming, key)) {
		item, there := old[name]
		if other, comes := now[name]; comes && (prefer || !there) {
			item = other
		}
		merged = append(merged, item)
	}
	return merged
}

// mergeAssociations takes an association of the file for a changed one of the
// namespace where they have the type and, if possible, the target in common;
// others are new.
func mergeAssociations(existing, incoming []DocumentAssociation, prefer bool) []DocumentAssociation {
	merged := slices.Clone(existing)
	taken, placed := make([]bool, len(existing)), make([]bool, len(incoming))
	for inCommon := 3; inCommon > 0; inCommon-- { // type, target and prefix, or fewer of them
		for i, item := range incoming {
			for j, old := range existing {
				a, b := old.identity(), item.identity()
				if placed[i] || taken[j] || !slices.Equal(a[:inCommon], b[:inCommon]) {
					continue
				}
				placed[i], taken[j] = true, true
				if prefer {
					merged[j] = item
				}
			}
		}
	}
	for i, item := range incoming {
		if !placed[i] {
			merged = append(merged, item)
		}
	}
	return merged
}
