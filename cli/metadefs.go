package cli

import (
	"fmt"

	"github.com/cadastre-dev/cadastre/metadef"
)

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
