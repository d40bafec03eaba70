package cli

// Command is a command of the table, for tests.
type Command struct {
	Path     string // its words
	Examples []string
	Fields   map[string]string // of the schema, by flag
}

// Commands returns all commands in the order of the table.
func Commands() (all []Command) {
	for _, of := range table() {
		if of.name == "serve" {
			all = append(all, Command{Path: "serve", Examples: examplesOf("serve")})
		}
		for _, v := range of.verbs {
			command := Command{Path: v.path(), Examples: examplesOf(v.path()), Fields: map[string]string{}}
			for _, p := range v.params() {
				if p.at != "" {
					command.Fields[p.flag] = p.at
				}
			}
			all = append(all, command)
		}
	}
	return all
}
