package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/internal/pgserver"
)

var updateTutorial = flag.Bool("update-tutorial", false,
	"write what the commands of docs/tutorial.md print into the page")

// TestTutorial runs the commands of docs/tutorial.md in order, like a reader,
// with the built program in an empty folder, and compares their output. The
// server listens on a free port instead of 8080.
func TestTutorial(t *testing.T) {
	t.Parallel()
	const page = "docs/tutorial.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.Symlink(built(t), filepath.Join(folder, "cadastre")); err != nil {
		t.Fatal(err)
	}
	typist := newTypist(t, folder)
	commands := 0
	shown := regexp.MustCompile("(?s)```(sh|console)\n(.*?)```\n").
		ReplaceAllStringFunc(string(text), func(block string) string {
			fence, body, _ := strings.Cut(strings.TrimSuffix(block, "```\n"), "\n")
			if fence == "```sh" {
				if printed := typist.run(body); printed != "" {
					t.Errorf("%s prints %s", body, printed)
				}
				return block
			}
			got := fence + "\n"
			for _, step := range strings.Split("\n"+body, "\n$ ")[1:] {
				command, _ := splitStep(step)
				got += "$ " + command + "\n" + typist.run(strings.ReplaceAll(command, "\n> ", "\n"))
				commands++
			}
			return got + "```\n"
		})
	if commands < 25 {
		t.Errorf("the page has %d commands", commands)
	}
	if *updateTutorial {
		if err := os.WriteFile(page, []byte(shown), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if shown != string(text) {
		t.Errorf("the commands of %s print otherwise: look at the difference after go test . -run TestTutorial -update-tutorial\n%s", page, firstDifference(string(text), shown))
	}
}

// splitStep returns a command, with its continuation lines, and the output
// below it on the page.
func splitStep(step string) (command, printed string) {
	lines := strings.Split(strings.TrimSuffix(step, "\n"), "\n")
	n := 1
	for n < len(lines) && strings.HasPrefix(lines[n], "> ") {
		n++
	}
	return strings.Join(lines[:n], "\n"), strings.Join(lines[n:], "\n")
}

func firstDifference(want, got string) string {
	wanted, found := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(wanted), len(found)) {
		if wanted[i] != found[i] {
			return fmt.Sprintf("line %d\nthe page has  %s\nit prints     %s", i+1, wanted[i], found[i])
		}
	}
	return "one is longer"
}

// typist is a person with two terminals in one folder. One runs a server, the
// other all other commands.
type typist struct {
	t       *testing.T
	folder  string
	address string
	stdin   io.Writer
	printed *bufio.Reader
}

func newTypist(t *testing.T, folder string) *typist {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("needs bash")
	}
	port, err := pgserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprint("127.0.0.1:", port)
	command := exec.CommandContext(t.Context(), bash)
	command.Dir = folder
	command.Env = typistEnvironment(folder, address)
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stderr = command.Stdout
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = command.Wait()
	})
	return &typist{t, folder, address, stdin, bufio.NewReader(stdout)}
}

// typistEnvironment is the environment of the terminals. It sets the server's
// address, because the page uses the default port.
func typistEnvironment(folder, address string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + folder, "CADASTRE_LISTEN=" + address,
		"CADASTRE_SERVER=http://" + address}
}

// run runs a command and returns its output. For a server it returns the line
// that says that it serves.
func (p *typist) run(command string) string {
	p.t.Helper()
	if strings.HasPrefix(command, "./cadastre serve") {
		return p.serve(command)
	}
	const end = "--- the command has ended ---"
	if _, err := fmt.Fprintf(p.stdin, "{ %s\n} </dev/null\necho '%s'\n", command, end); err != nil {
		p.t.Fatal(err)
	}
	var printed strings.Builder
	for {
		line, err := p.printed.ReadString('\n')
		if err != nil {
			p.t.Fatalf("%s: %v after %s", command, err, printed.String())
		}
		if before, ok := strings.CutSuffix(line, end+"\n"); ok {
			printed.WriteString(before)
			return strings.ReplaceAll(printed.String(), p.address, "127.0.0.1:8080")
		}
		printed.WriteString(line)
	}
}

// serve starts a server in the first terminal. It returns the end of the line
// that says that it serves.
func (p *typist) serve(command string) string {
	p.t.Helper()
	log := filepath.Join(p.folder, "serve.log")
	file, err := os.Create(log)
	if err != nil {
		p.t.Fatal(err)
	}
	server := exec.Command("bash", "-c", "exec "+command)
	server.Dir, server.Env = p.folder, typistEnvironment(p.folder, p.address)
	server.Stdout, server.Stderr = file, file
	if err := server.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = server.Process.Signal(os.Interrupt)
		_ = server.Wait()
		_ = file.Close()
	})
	for deadline := time.Now().Add(patience.Of(p.t, 30*time.Second)); time.Now().
		Before(deadline); time.Sleep(20 * time.Millisecond) {
		text, err := os.ReadFile(log)
		if err != nil {
			p.t.Fatal(err)
		}
		if _, after, ok := strings.Cut(string(text), "msg=serving"); ok && strings.HasSuffix(after, "\n") {
			return strings.ReplaceAll("msg=serving"+after, p.address, "127.0.0.1:8080")
		}
	}
	p.t.Fatalf("%s does not serve", command)
	return ""
}
