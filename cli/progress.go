package cli

import (
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress returns a bar that shows how much of the work is done: on a
// terminal, when it takes longer than a second.
func (s *session) progress(what string, total int) *progress {
	p := &progress{run: s, started: time.Now()}
	if file, ok := s.stderr.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		p.bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(file), progressbar.OptionSetDescription(what),
			progressbar.OptionShowCount(), progressbar.OptionClearOnFinish(), progressbar.OptionSetRenderBlankState(false))
	}
	return p
}

// progress is a bar, or none.
type progress struct {
	run     *session
	bar     *progressbar.ProgressBar
	started time.Time
	pending int
}

func (p *progress) add(n int) {
	p.pending += n
	if p.bar == nil || time.Since(p.started) < time.Second {
		return
	}
	_ = p.bar.Add(p.pending)
	p.pending = 0
}

// notef writes a line above the bar.
func (p *progress) notef(format string, args ...any) {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
	p.run.notef(format, args...)
}

func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}
