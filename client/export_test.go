package client

// Followed returns the documents of the functions that follow changes.
func Followed() (documents []string) {
	entries, _ := subscriptions.ReadDir("operations/live")
	for _, entry := range entries {
		text, _ := subscriptions.ReadFile("operations/live/" + entry.Name())
		documents = append(documents, string(text))
	}
	return documents
}
