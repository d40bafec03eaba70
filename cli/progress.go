package cli

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress returns a bar that shows how much of the work is done: on a
// terminal, when it takes longer than a second.
func (s *session) progress(what string, total int) *progress {
	var terminal io.Writer = io.Discard
	if file, ok := s.stderr.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		terminal = file
	}
	return &progress{run: s, started: time.Now(), bar: progressbar.NewOptions(total, progressbar.OptionSetWriter(terminal),
		progressbar.OptionSetDescription(what), progressbar.OptionShowCount(), progressbar.OptionClearOnFinish(), progressbar.OptionSetRenderBlankState(false))}
}

// progress is a bar, on a terminal or on nothing.
type progress struct {
	run     *session
	bar     *progressbar.ProgressBar
	started time.Time
	pending int
}

func (p *progress) add(n int) {
	p.pending += n
	if time.Since(p.started) >= time.Second {
		_ = p.bar.Add(p.pending)
		p.pending = 0
	}
}

// notef writes a line above the bar.
func (p *progress) notef(format string, args ...any) {
	p.end()
	p.run.notef(format, args...)
}

func (p *progress) end() { _ = p.bar.Clear() }
