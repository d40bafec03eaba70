package cli

import (
	"fmt"

	"github.com/cadastre-dev/cadastre/metadef"
)

type metadefsCommand struct {
	Export exportCommand         `cmd:"" help:"Write the namespaces of a server as definition files." example:"cadastre metadefs export definitions --name Cadastre::Watchdog"`
	Load   loadCommand           `cmd:"" help:"Load definition files, or the product's own definitions, into a server." example:"cadastre metadefs load --builtin ;; cadastre metadefs load definitions --mode merge --dry-run"`
	Unload unloadCommand         `cmd:"" help:"Delete namespaces with everything in them; asks first." example:"cadastre metadefs unload Cadastre::Watchdog --include-protected --yes"`
	Schema metadefsSchemaCommand `cmd:"" help:"Print the JSON Schema of a definition file, for editors." example:"cadastre metadefs schema"`
}

type metadefsSchemaCommand struct{}

func (metadefsSchemaCommand) Run(run *session) error {
	return run.printf("%s", metadef.DocumentSchema())
}

// counted returns a number of things in words: 1 file, 2 files.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
