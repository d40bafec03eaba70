package cli

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/cadastre-dev/cadastre/internal/lists"
)

// deletion is the flag of every command that deletes.
type deletion struct {
	Yes bool `help:"Do not ask before anything is deleted."`
}

// confirm asks a question about what is going to be deleted, unless --yes is
// set, and returns an error unless the answer is the word.
func (d deletion) confirm(run *session, word, question string, args ...any) error {
	if d.Yes {
		return nil
	}
	run.notef("%s Type %s: ", printable(fmt.Sprintf(question, args...)), word)
	if run.program.Stdin != nil {
		answer, _ := bufio.NewReader(run.program.Stdin).ReadString('\n')
		if strings.TrimSpace(answer) == word {
			return nil
		}
	}
	run.notef("\n")
	return fmt.Errorf("nothing was deleted: type %s to confirm, or use --yes", word)
}

// quoted returns some names in words: all of a few, and how many others there
// are.
func quoted(names []string) string {
	const shown = 5
	text := strings.Join(lists.Map(names[:min(len(names), shown)], func(name string) string { return fmt.Sprintf("%q", name) }), ", ")
	if more := len(names) - shown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
