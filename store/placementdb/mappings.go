package placementdb

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/visible"
)

// mappingsText returns mappings as stored: a JSON object of provider uuids by
// suffix, or nil for none.
func mappingsText(mappings []placement.Mapping) *string {
	if len(mappings) == 0 {
		return nil
	}
	of := make(map[string][]string, len(mappings))
	for _, mapping := range mappings {
		of[mapping.Suffix] = mapping.Providers
	}
	return new(sqldb.JSONOf(of))
}

// mappingsOf parses stored mappings, and returns them ordered by suffix.
func mappingsOf(text *string) ([]placement.Mapping, error) {
	if text == nil {
		return nil, nil
	}
	var of map[string][]string
	if err := json.Unmarshal([]byte(*text), &of); err != nil {
		return nil, fmt.Errorf("parse the mappings of a consumer: %w", err)
	}
	mappings := make([]placement.Mapping, 0, len(of))
	for _, suffix := range slices.Sorted(maps.Keys(of)) {
		mappings = append(mappings, placement.Mapping{Suffix: suffix, Providers: of[suffix]})
	}
	return mappings, nil
}

// MappingsOfConsumers returns the mappings of the consumers that the viewer
// sees, by uuid of the consumer, each list ordered by suffix. A consumer
// without mappings is absent. Mappings may name deleted providers.
func (s *PlacementStore) MappingsOfConsumers(ctx context.Context,
	uuids []string) (map[string][]placement.Mapping, error) {
	if err := visible.SeesPlacement(ctx); err != nil {
		return nil, err
	}
	found := map[string][]placement.Mapping{}
	seen, args := visible.ConsumerClause(ctx, "c.project_id", 2)
	err := s.Query(ctx, s.Pool, `SELECT c.uuid, c.mappings FROM consumers c
		WHERE c.mappings IS NOT NULL AND `+s.Listed("c.uuid", "$1", "text")+` AND `+seen, func(rows *sql.Rows) error {
		var uuid, text string
		if err := rows.Scan(&uuid, &text); err != nil {
			return err
		}
		mappings, err := mappingsOf(&text)
		found[uuid] = mappings
		return err
	}, append([]any{sqldb.JSONOf(uuids)}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("list mappings of consumers: %w", err)
	}
	return found, nil
}
