package client

// Followed returns the documents of the functions that follow changes.
func Followed() []string {
	return []string{followResources, followNamespaces, followProviders, followCapacity, followCandidates}
}
