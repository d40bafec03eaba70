package cli

// Command is a command of the table, for tests.
type Command struct {
	Path     string // its words
	Examples []string
}

// Commands returns all commands in the order of the table.
func Commands() (all []Command) {
	for _, of := range table() {
		paths := []string{}
		if of.name == "serve" {
			paths = append(paths, of.name)
		}
		for _, v := range of.verbs {
			paths = append(paths, v.path())
		}
		for _, path := range paths {
			all = append(all, Command{path, Examples(path)})
		}
	}
	return all
}
