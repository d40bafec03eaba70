package placement

// UsesTrait reports whether any provider has a trait.
func (w *World) UsesTrait(name string) bool {
	members := w.traitMembers.at(w.traits.lookup(name))
	for i := range (w.idLimit + 63) / 64 {
		if members.word(int(i)) != 0 {
			return true
		}
	}
	return false
}

// UsesResourceClass reports whether any provider has an inventory of a class.
func (w *World) UsesResourceClass(name string) bool {
	column := w.column(w.classes.lookup(name))
	for id := range w.idLimit {
		if column.free.at(id) != 0 {
			return true
		}
	}
	return false
}

// HasChildren reports whether a provider has children, false for an unknown uuid.
func (w *World) HasChildren(uuid string) bool {
	id, ok := w.byUUID.get(uuid)
	if !ok {
		return false
	}
	n := w.nodes.at(id)
	return n.tree.ends[n.index] > n.index+1
}
