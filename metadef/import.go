package metadef

import (
	"cmp"
	"slices"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/problem"
)

// ImportMode says how an import treats an existing namespace.
type ImportMode string

const (
	// Skip keeps the namespace as it is, or upgrades one of the same origin
	// (PlanUpgrade).
	Skip ImportMode = "SKIP"
	// Merge adds missing definitions and changes none.
	Merge ImportMode = "MERGE"
	// PreferNew adds missing definitions, and replaces existing definitions by the
	// file's. It keeps definitions that the file lacks, except as PlanFollow does
	// in a namespace of the same origin.
	PreferNew ImportMode = "PREFER_NEW"
	// Overwrite makes the namespace equal the file. It keeps visibility, protection
	// and owner if the file lacks them.
	Overwrite ImportMode = "OVERWRITE"
)

// ImportPlan is the planned effect of importing one document.
type ImportPlan struct {
	Outcome     ImportOutcome
	Result      *Document // the namespace after the import; nil if nothing is written
	Differences []string  // from the namespace before to the one after; if skipped, to the file
	Warnings    problem.Problems
	Edits       []ImportEdit     // local edits that an upgrade keeps
	Problems    problem.Problems // why the import fails
}

// PlanImport returns the plan for a document without problems. existing is the
// current namespace with all of its fields, or nil. Every mode keeps fields
// that the file does not have, except that Overwrite clears display name and
// description. A new namespace is public, with a warning, if the file does not
// say; the caller sets its owner if the file has none. Overwrite fails if it
// would change a protected namespace, unless includeProtected is set. PreferNew
// fails likewise if an object would lose a property.
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
			return failure(problem.ErrProtected,
				"%s is protected; replacing the object %s by one with fewer properties requires includeProtected",
				Shorten(existing.Name), Shorten(object))
		}
	case Overwrite:
		result = withAccessOf(existing, incoming)
		if closed && len(Differences(existing, result)) > 0 {
			return failure(problem.ErrProtected, "%s is protected; overwriting it requires includeProtected",
				Shorten(existing.Name))
		}
	case Skip:
		plan := ImportPlan{Outcome: ImportSkipped, Differences: Differences(existing, withAccessOf(existing, incoming))}
		if len(plan.Differences) == 0 {
			plan.Outcome = ImportUnchanged
		}
		return plan
	default:
		return failure(nil, "unknown import mode %s", Shorten(string(mode)))
	}
	return planChange(existing, result)
}

// losingObject returns the name of the first object that loses a property, or
// "".
func losingObject(before, after []DocumentObject) string {
	now := lists.ByKey(after, objectName)
	for _, old := range before {
		if old.LosesProperties(now[old.Name]) {
			return old.Name
		}
	}
	return ""
}

// failure returns the plan of a refused import. kind is the kind of refusal,
// nil for invalid input.
func failure(kind error, format string, args ...any) ImportPlan {
	plan := ImportPlan{Outcome: ImportFailed}
	plan.Problems.AddKind(kind, "$", format, args...)
	return plan
}

func planCreation(incoming *Document) ImportPlan {
	plan := ImportPlan{Outcome: ImportCreated}
	result := *incoming
	if result.Visibility == nil {
		result.Visibility = new(access.Public)
		plan.Warnings.Add("$.visibility", "is missing; read as public")
	}
	if result.Protected == nil {
		result.Protected = new(bool)
	}
	plan.Result, plan.Differences = &result, Differences(&Document{}, &result)
	return plan
}

// planChange returns the plan of a change to result, which fails if result is
// invalid: documents that are valid on their own may together be too large or
// make a cycle of tags.
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
		c.problem("$", "would have %d bytes, at most %d are allowed", size, MaxDocument)
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

// withFieldsOf returns the incoming document, with the fields that it lacks
// taken from existing.
func withFieldsOf(existing, incoming *Document) *Document {
	result := *withAccessOf(existing, incoming)
	result.DisplayName = cmp.Or(incoming.DisplayName, existing.DisplayName)
	result.Description = cmp.Or(incoming.Description, existing.Description)
	return &result
}

// withAccessOf returns the incoming document, with visibility, protection and
// owner taken from existing if it lacks them.
func withAccessOf(existing, incoming *Document) *Document {
	result := *incoming
	result.Visibility = cmp.Or(incoming.Visibility, existing.Visibility)
	result.Protected = cmp.Or(incoming.Protected, existing.Protected)
	result.Owner = cmp.Or(incoming.Owner, existing.Owner)
	return &result
}

// mergeDocuments adds the incoming definitions to existing ones. If both have a
// definition, the incoming one replaces it only if prefer is set.
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

// mergeAssociations merges associations. An association of the file corresponds
// to one of the namespace with the same type, preferably one with the same
// target and prefix, too. It replaces that one if prefer is set. Others are
// new.
func mergeAssociations(existing, incoming []DocumentAssociation, prefer bool) []DocumentAssociation {
	merged := slices.Clone(existing)
	taken, placed := make([]bool, len(existing)), make([]bool, len(incoming))
	for inCommon := 3; inCommon > 0; inCommon-- { // the number of type, target and prefix that they share
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
