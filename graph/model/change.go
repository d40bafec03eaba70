package model

import (
	"context"

	"github.com/cadastre-dev/cadastre/change"
)

// ChangeConnection is a page of the feed of changes, which never ends.
type ChangeConnection struct {
	*Connection[change.Change]
	Cursor string
	newest func(context.Context) (string, error)
}

// NewChangeConnection returns a connection of a page that ends at a cursor.
// Newest returns the cursor after the newest change.
func NewChangeConnection(of *Connection[change.Change], cursor string,
	newest func(context.Context) (string, error)) *ChangeConnection {
	return &ChangeConnection{Connection: of, Cursor: cursor, newest: newest}
}

// Latest returns the cursor after the newest change.
func (c *ChangeConnection) Latest(ctx context.Context) (*string, error) {
	cursor, err := c.newest(ctx)
	return &cursor, err
}
