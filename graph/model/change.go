package model

import (
	"context"

	"github.com/cadastre-dev/cadastre/change"
)

// ChangeConnection is a page of the feed of changes, which never ends.
type ChangeConnection struct {
	*Connection[change.Change]
	Cursor string // where the page ends
	// Newest returns the cursor after the newest change.
	Newest func(context.Context) (string, error)
}

// Latest returns the cursor after the newest change.
func (c *ChangeConnection) Latest(ctx context.Context) (*string, error) {
	cursor, err := c.Newest(ctx)
	return &cursor, err
}
