package store

import (
	"context"
	"fmt"

	"github.com/cadastre-dev/cadastre/catalog"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/placement"
)

// Content is what an empty database can be filled with at once. Things refer to
// each other by name and uuid; what is referred to comes first.
type Content struct {
	Definitions     []string // texts of definition files
	ResourceTypes   []string // beyond the built-in ones
	Capabilities    []CapabilityContent
	Resources       []ResourceContent
	Traits          []string // custom ones
	ResourceClasses []string // custom ones
	Providers       []placement.Provider
	Claims          []placement.Claim
}

// CapabilityContent is an entry of the capability registry, with its resource
// type by name.
type CapabilityContent struct {
	ResourceType string
	Name         string
	Private      bool
}

// ResourceContent is a resource with everything that hangs off it.
type ResourceContent struct {
	UUID        string
	Type        string // name of the resource type
	Parent      string // uuid of the parent, "" for none
	Name        string
	Description string
	ProjectID   string
	Visibility  catalog.Visibility
	// Metadata has Key, Value and UserModifiable of each item; keys are unique.
	Metadata     []catalog.MetadataItem
	Capabilities []catalog.KeyValue
	Tags         []string
}

// FillEmpty fills an empty database, in one transaction: one that was ended
// meanwhile leaves nothing. A database that holds any namespace, resource or
// provider stays as it is.
func (s *Store) FillEmpty(ctx context.Context, content Content) error {
	err := s.transact(ctx, func(tx *ent.Tx) error {
		empty, err := isEmpty(ctx, tx)
		if err != nil || !empty {
			return err
		}
		return s.insertContent(ctx, tx, content)
	})
	if err != nil {
		return fmt.Errorf("fill an empty database: %w", err)
	}
	return nil
}

func isEmpty(ctx context.Context, tx *ent.Tx) (bool, error) {
	for _, held := range []func(context.Context) (bool, error){
		tx.Namespace.Query().Exist, tx.Resource.Query().Exist, tx.ResourceProvider.Query().Exist,
	} {
		if some, err := held(ctx); err != nil || some {
			return false, err
		}
	}
	return true, nil
}

// insertContent writes the content.
func (s *Store) insertContent(ctx context.Context, tx *ent.Tx, content Content) error {
	for _, text := range content.Definitions {
		document, _, problems := catalog.ParseDocument(text)
		if err := problems.Err(); err != nil {
			return err
		}
		if _, err := s.insertDocument(ctx, tx, document); err != nil {
			return err
		}
	}
	return s.insertResourceTypes(ctx, tx, content.ResourceTypes, false)
}
