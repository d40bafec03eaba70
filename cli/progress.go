package cli

import (
	"fmt"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress shows on a terminal how far work has come that takes longer than a
// second; elsewhere it shows nothing.
func (s *session) progress(what string, total int) *progress {
	p := &progress{run: s, started: time.Now()}
	if file, ok := s.stderr.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		p.bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(file), progressbar.OptionSetDescription(what),
			progressbar.OptionShowCount(), progressbar.OptionClearOnFinish(), progressbar.OptionSetRenderBlankState(false))
	}
	return p
}

// progress counts what is done.
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

// printf writes a line above the bar.
func (p *progress) printf(format string, args ...any) {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
	fmt.Fprintf(p.run.stderr, format, args...)
}

func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}
