package catalog

// NamespaceFilter chooses namespaces; every condition given must hold. A nil
// list is no condition, an empty one matches nothing.
type NamespaceFilter struct {
	ResourceTypes []string
	Visibility    *Visibility
}

// ResourceTypeFilter chooses resource types; every condition given must hold. A
// nil list is no condition, an empty one matches nothing.
type ResourceTypeFilter struct {
	Names []string
}
