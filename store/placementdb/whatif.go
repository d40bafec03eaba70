package placementdb

import (
	"context"

	"github.com/cadastre-dev/cadastre/placement"
)

// WhatIf returns the world with changes, which are not stored. It releases the
// consumers that the viewer sees, others are unknown. Any role may call it.
func (s *PlacementStore) WhatIf(ctx context.Context, changes []placement.WhatIfChange) (*placement.Foreseen, error) {
	world, err := s.World(ctx)
	if err != nil {
		return nil, err
	}
	var released []string
	for i := range changes {
		if consumer := changes[i].ReleaseConsumer; consumer != nil {
			released = append(released, *consumer)
		}
	}
	var held map[string][]*placement.Allocation
	if len(released) > 0 && len(changes) <= placement.MaxWhatIfChanges {
		if held, err = s.AllocationsOfConsumers(ctx, released); err != nil {
			return nil, err
		}
	}
	after, problems := world.WhatIf("changes", changes, held, s.Now())
	return after, problemsIn(world, problems).Err()
}
