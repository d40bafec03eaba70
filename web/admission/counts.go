package admission

import (
	"maps"
	"sync"
	"time"
)

// maxCounted bounds the projects with separate counts. All other projects
// are counted together, as others.
const maxCounted = 1000

// others is the name for all projects without separate counts. No project
// has this name.
const others = "\x00others"

// Count has the waits and refusals of a project.
type Count struct {
	Waits     uint64 // operations that waited, or were refused without waiting
	Waited    time.Duration
	OverShare uint64 // refused by ErrOverShare
	Full      uint64 // refused by errFull
}

// Counts are counts by project. The zero value has none.
type Counts struct {
	mu        sync.Mutex
	byProject map[string]Count
}

// Add counts an operation of a project that waited for some time, and its error.
func (c *Counts) Add(project string, waited time.Duration, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byProject == nil {
		c.byProject = map[string]Count{}
	}
	of, known := c.byProject[project]
	if !known && len(c.byProject) >= maxCounted {
		project = others
		of = c.byProject[project]
	}
	of.Waits++
	of.Waited += waited
	switch err {
	case ErrOverShare:
		of.OverShare++
	case errFull:
		of.Full++
	}
	c.byProject[project] = of
}

// All returns the counts of all projects that have any.
func (c *Counts) All() map[string]Count {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.byProject)
}
