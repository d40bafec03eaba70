package store

import (
	"context"
	"fmt"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/catalog"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/capability"
	"github.com/cadastre-dev/cadastre/ent/capabilitymember"
	"github.com/cadastre-dev/cadastre/ent/capabilityvalue"
	"github.com/cadastre-dev/cadastre/ent/metadataitem"
	"github.com/cadastre-dev/cadastre/ent/resource"
	"github.com/cadastre-dev/cadastre/ent/resourcetype"
)

// condition asks the database what Condition.Matches tells of one resource.
// Capabilities gives the registry entries that a name stands for, those that
// the viewer may know of: a private one is nowhere in the statement.
type condition struct {
	catalog.Condition
	capabilities map[string][]int64
}

// holds is the condition as a predicate on resources. Every test is a set of
// resources, which an index finds.
func (c condition) holds(s *entsql.Selector) *entsql.Predicate {
	members := make([]*entsql.Predicate, len(c.Members))
	for i, member := range c.Members {
		members[i] = condition{member, c.capabilities}.holds(s)
	}
	switch {
	case c.Kind == catalog.ConditionAll && len(members) == 0:
		return entsql.ExprP("1 = 1")
	case c.Kind == catalog.ConditionAll:
		return entsql.And(members...)
	case c.Kind == catalog.ConditionAny && len(members) > 0:
		return entsql.Or(members...)
	case c.Kind == catalog.ConditionNot:
		return entsql.Not(members[0])
	case c.Kind == catalog.ConditionMetadata:
		return metadataTest(s, c.Test)
	case c.Kind == catalog.ConditionCapability && len(c.capabilities[c.Test.Name]) > 0:
		return capabilityTest(s, c.Test, c.capabilities[c.Test.Name])
	}
	return entsql.ExprP("1 = 0")
}

// metadataTest holds for the resources with an item that the test holds of.
func metadataTest(s *entsql.Selector, test catalog.Test) *entsql.Predicate {
	items := entsql.Dialect(s.Dialect()).Table(metadataitem.Table)
	value := items.C(metadataitem.FieldValue)
	item := entsql.EQ(items.C(metadataitem.FieldKey), test.Name)
	switch test.Operator {
	case catalog.Equals:
		item = entsql.And(item, isAmong(s, items.C(metadataitem.FieldValueHash), hashesOf(test.Operands)), isAmong(s, value, test.Operands))
	case catalog.HasPrefix:
		item = entsql.And(item, hasPrefix(value, items.C(metadataitem.FieldValuePrefix), test.Operands[0]))
	case catalog.Has:
		item = entsql.And(item, containsText(value, test.Operands[0]))
	}
	return resourcesAmong(s, entsql.Dialect(s.Dialect()).Select(items.C(metadataitem.FieldResourceID)).From(items).Where(item))
}

// capabilityTest holds for the resources with a value that the test holds of.
func capabilityTest(s *entsql.Selector, test catalog.Test, ids []int64) *entsql.Predicate {
	if test.Operator == catalog.Exists {
		values := entsql.Dialect(s.Dialect()).Table(capabilityvalue.Table)
		return resourcesAmong(s, entsql.Dialect(s.Dialect()).Select(values.C(capabilityvalue.FieldResourceID)).From(values).
			Where(isAmong(s, values.C(capabilityvalue.FieldCapabilityID), ids)))
	}
	each := make([]*entsql.Predicate, len(test.Operands))
	for i, operand := range test.Operands {
		each[i] = memberTest(s, test, ids, operand)
	}
	switch {
	case test.Operator == catalog.HasAll:
		return entsql.And(each...)
	case len(each) == 0:
		return entsql.ExprP("1 = 0")
	}
	return entsql.Or(each...)
}

func memberTest(s *entsql.Selector, test catalog.Test, ids []int64, operand string) *entsql.Predicate {
	members := entsql.Dialect(s.Dialect()).Table(capabilitymember.Table)
	value, number := members.C(capabilitymember.FieldValue), members.C(capabilitymember.FieldNumberKey)
	same := entsql.And(entsql.EQ(members.C(capabilitymember.FieldValueHash), hashOf(operand)), entsql.EQ(value, operand))
	key, isNumber := catalog.NumberKey(operand)
	var holds *entsql.Predicate
	switch {
	case test.Operator == catalog.Has || test.Operator == catalog.HasAll:
		inText := entsql.And(entsql.EQ(members.C(capabilitymember.FieldInList), false), containsText(value, operand))
		holds = entsql.Or(same, inText)
	case test.Comparison == catalog.AsText:
		holds = compared(test.Operator, value, operand, same)
	case isNumber:
		holds = compared(test.Operator, number, key, entsql.EQ(number, key))
	case test.Comparison == catalog.Pairwise:
		holds = entsql.And(entsql.IsNull(number), compared(test.Operator, value, operand, same))
	default:
		return entsql.ExprP("1 = 0")
	}
	return resourcesAmong(s, entsql.Dialect(s.Dialect()).Select(members.C(capabilitymember.FieldResourceID)).From(members).
		Where(entsql.And(isAmong(s, members.C(capabilitymember.FieldCapabilityID), ids), holds)))
}

// compared compares a column with an operand; equal is how the column is best
// asked for the same.
func compared(operator catalog.Operator, column, operand string, equal *entsql.Predicate) *entsql.Predicate {
	switch operator {
	case catalog.Equals:
		return equal
	case catalog.Differs:
		return entsql.NEQ(column, operand)
	case catalog.Less:
		return entsql.LT(column, operand)
	case catalog.LessOrEqual:
		return entsql.LTE(column, operand)
	case catalog.Greater:
		return entsql.GT(column, operand)
	}
	return entsql.GTE(column, operand)
}

func resourcesAmong(s *entsql.Selector, ids *entsql.Selector) *entsql.Predicate {
	return entsql.In(s.C(resource.FieldID), ids)
}

func hashesOf(texts []string) []int64 {
	hashes := make([]int64, len(texts))
	for i, text := range texts {
		hashes[i] = hashOf(text)
	}
	return hashes
}

// knownCapabilities are the registry entries of names that the viewer may know
// of: of the types, or of all types when types is nil.
func (s *Store) knownCapabilities(ctx context.Context, names, types []string) (map[string][]int64, error) {
	viewer := catalog.ViewerFrom(ctx)
	if len(names) == 0 || catalog.MayDiscover(viewer, s.options.CapabilityDiscovery) != nil {
		return nil, nil
	}
	rows, err := s.ent.Capability.Query().Where(among(capability.FieldName, names), capabilitiesSeen(viewer, true), visibleResourceTypeOf(ctx, capability.FieldResourceTypeID), func(s *entsql.Selector) {
		if types != nil {
			table := entsql.Dialect(s.Dialect()).Table(resourcetype.Table)
			s.Where(entsql.In(s.C(capability.FieldResourceTypeID), entsql.Dialect(s.Dialect()).
				Select(table.C(resourcetype.FieldID)).From(table).Where(isAmong(s, table.C(resourcetype.FieldName), types))))
		}
	}).Order(ent.Asc(capability.FieldID)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("look up capabilities: %w", err)
	}
	known := map[string][]int64{}
	for _, row := range rows {
		known[row.Name] = append(known[row.Name], row.ID)
	}
	return known, nil
}

// containsText holds where a column has a text somewhere, code point by code
// point.
func containsText(column, text string) *entsql.Predicate {
	return entsql.P(func(b *entsql.Builder) {
		function := "instr("
		if b.Dialect() == dialect.Postgres {
			function = "strpos("
		}
		b.WriteString(function).Ident(column).Comma().Arg(text).WriteString(") > 0")
	})
}
