package placementdb

import (
	"slices"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/internal/soak"
	"github.com/cadastre-dev/cadastre/store/sqldb/changelog"
)

// TestWorldModel runs the cache and the follower's decision of several
// processes through random schedules, and checks the invariants after every
// step. CADASTRE_SOAK_SCHEDULES sets the number of schedules,
// CADASTRE_SOAK_SEED the first seed.
func TestWorldModel(t *testing.T) {
	t.Parallel()
	first, schedules := soak.Seed(t), uint64(soak.Count(t, "CADASTRE_SOAK_SCHEDULES", 3000))
	for seed := first; seed < first+schedules; seed++ {
		s := newSchedule(seed, scheduleLength)
		if wrongIn(s, newModelProcess) != "" {
			t.Fatalf("schedule %d: %s", seed, wrongIn(shrink(s, newModelProcess), newModelProcess))
		}
	}
}

// scheduleLength is the number of actions in a schedule.
const scheduleLength = 150

// TestWorldModelCatchesABrokenDecision checks that the model detects decisions
// that forget something.
func TestWorldModelCatchesABrokenDecision(t *testing.T) {
	t.Parallel()
	for forgets, decided := range map[string]func(held *heldWorld, at changelog.Snapshot, notes []placementNote) plan{
		"deletions": func(held *heldWorld, at changelog.Snapshot, notes []placementNote) plan {
			p := decide(held, at, notes)
			p.absent = nil
			return p
		},
		"names": func(held *heldWorld, at changelog.Snapshot, notes []placementNote) plan {
			p := decide(held, at, notes)
			p.names = false
			return p
		},
		"one of several providers": func(held *heldWorld, at changelog.Snapshot, notes []placementNote) plan {
			p := decide(held, at, notes)
			p.rows = p.rows[:min(1, len(p.rows))]
			return p
		},
		"that notes were deleted": func(held *heldWorld, at changelog.Snapshot, notes []placementNote) plan {
			return decide(held, at,
				slices.DeleteFunc(notes, func(n placementNote) bool { return n.kind == changelog.PrunedKind }))
		},
		"that the server ran anew": func(held *heldWorld, at changelog.Snapshot, notes []placementNote) plan {
			return decide(&heldWorld{world: held.world,
				upTo: changelog.Snapshot{Server: at.Server, Oldest: held.upTo.Oldest}}, at, notes)
		},
		"that a uuid was given again": func(held *heldWorld, at changelog.Snapshot, notes []placementNote) plan {
			return decide(held, at, slices.DeleteFunc(notes, func(n placementNote) bool {
				provider, found := held.world.Provider(n.key)
				return found && n.row != 0 && provider.Version == n.version
			}))
		},
		"half of the log": func(held *heldWorld, at changelog.Snapshot, notes []placementNote) plan {
			return decide(held, at, notes[len(notes)/2:])
		},
	} {
		t.Run(forgets, func(t *testing.T) {
			t.Parallel()
			under := func(d *modelDatabase, _ int) worldUnderTest { return newDecidingProcess(d, decided) }
			for seed := range uint64(20_000) {
				if wrong := wrongIn(newSchedule(seed, scheduleLength), under); wrong != "" {
					first, _, _ := strings.Cut(wrong, "\n")
					t.Logf("schedule %d: %s", seed, first)
					return
				}
			}
			t.Error("20,000 schedules found nothing wrong")
		})
	}
}
