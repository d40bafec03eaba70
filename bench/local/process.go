// Package local runs servers on this machine for the programs that time and
// break them. Its processes end with their parent. It can also run a separate
// PostgreSQL.
package local

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"

	"github.com/cadastre-dev/cadastre/internal/pgserver"
)

// stopTime is how long a process may take to end.
const stopTime = 20 * time.Second

// guard runs a program until the guard's input is closed, then sends the program a
// signal. The system closes the input at the latest when this program ends. The
// guard prints the process id of the program.
const guard = `signal=$1; shift
exec 3<&0
"$@" 3<&- >&2 & program=$!
echo $program
{ read -r _ <&3; kill -s "$signal" $program; } & reader=$!
wait $program; code=$?
kill $reader 2>/dev/null
exit $code`

// Process is a program that runs under a guard.
type Process struct {
	PID   int
	log   string // file with its output
	guard *exec.Cmd
	input io.Closer
	done  chan struct{} // closed once it ended
	err   error         // why it ended; valid once it did
}

// Start starts a command as the user of a credential, nil for the current user.
// The signal is the one that ends the command. The command's output goes to a
// file.
func Start(log, signal string, as *syscall.Credential, env []string, command ...string) (*Process, error) {
	output, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = output.Close() }()
	p := &Process{log: log, done: make(chan struct{})}
	p.guard = exec.Command("/bin/sh", append([]string{"-c", guard, "guard", signal}, command...)...)
	p.guard.Dir, p.guard.Env, p.guard.Stderr = filepath.Dir(log), env, output
	// The benchmark, not the terminal, passes an interrupt on to the program.
	p.guard.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: as}
	if p.input, err = p.guard.StdinPipe(); err != nil {
		return nil, err
	}
	printed, err := p.guard.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.guard.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(printed).ReadString('\n')
	if err == nil {
		p.PID, err = strconv.Atoi(strings.TrimSpace(line))
	}
	go func() {
		p.err = p.guard.Wait()
		close(p.done)
	}()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read the process id of %s: %w", command[0], err), p.Stop())
	}
	return p, nil
}

// Stop ends the process. It kills the process if that takes too long.
func (p *Process) Stop() error {
	_ = p.input.Close() // which tells the guard
	if p.endsSoon() {
		return nil
	}
	err := fmt.Errorf("process %d did not end within %v", p.PID, stopTime)
	if p.PID > 0 {
		err = errors.Join(err, syscall.Kill(p.PID, syscall.SIGKILL))
	}
	err = errors.Join(err, p.guard.Process.Kill())
	<-p.done
	return err
}

// Kill sends a signal that ends the process, and waits until it ended. PostgreSQL
// crashes by SIGQUIT, and recovers at its next start.
func (p *Process) Kill(signal syscall.Signal) error {
	if err := syscall.Kill(p.PID, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	if p.endsSoon() {
		return nil
	}
	return errors.Join(fmt.Errorf("process %d did not end within %v of %v", p.PID, stopTime, signal), p.Stop())
}

// endsSoon waits until the process has ended, for stopTime at most. It reports
// whether the process has ended.
func (p *Process) endsSoon() bool {
	select {
	case <-p.done:
		return true
	case <-time.After(stopTime):
		return false
	}
}

// Ended returns a channel that is closed once the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.done }

// Await calls ready until it returns nil, for startTime at most. It stops with an
// error when the process ends.
func (p *Process) Await(ready func() error) error {
	for deadline := time.Now().Add(startTime); ; time.Sleep(20 * time.Millisecond) {
		err := ready()
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("it ended (%v):\n%s", p.err, p.lastLines())
		default:
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("it was not ready after %v: %w\n%s", startTime, err, p.lastLines())
		}
	}
}

// lastLines returns the end of the log.
func (p *Process) lastLines() string {
	const enough = 2000
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-enough):])
}

// Memory returns the resident memory of the process in bytes, and its peak since
// ResetPeak; 0 if the system does not report them.
func (p *Process) Memory() (now, peak float64) {
	process, err := procfs.NewProc(p.PID)
	if err != nil {
		return 0, 0
	}
	status, err := process.NewStatus()
	if err != nil {
		return 0, 0
	}
	return float64(status.VmRSS), float64(status.VmHWM)
}

// ResetPeak makes the system count the peak of the memory from now on. If the
// system refuses, the peak is the one since the start.
func (p *Process) ResetPeak() {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.PID), []byte("5"), 0)
}

// clockTick is the unit of times in /proc/PID/stat. On Linux it is always a
// hundredth of a second.
const clockTick = 10 * time.Millisecond

// CPU returns the CPU time that the process and its children have used so far,
// including ended children; 0 if the system does not report it.
func (p *Process) CPU() (time.Duration, error) {
	if runtime.GOOS != "linux" {
		return 0, nil
	}
	sum, err := cpuOf(p.PID)
	if err != nil {
		return 0, err
	}
	children, err := pgserver.Children(p.PID)
	if err != nil {
		return 0, err
	}
	for _, child := range children {
		if used, err := cpuOf(child); err == nil { // or it ended meanwhile
			sum += used
		}
	}
	process, err := procfs.NewProc(p.PID)
	if err != nil {
		return 0, err
	}
	stat, err := process.Stat()
	return sum + time.Duration(stat.CUTime+stat.CSTime)*clockTick, err
}

// cpuOf returns the CPU time of the running threads of a process.
func cpuOf(pid int) (sum time.Duration, err error) {
	threads, err := procfs.AllThreads(pid)
	if err != nil {
		return 0, err
	}
	for _, thread := range threads {
		of, err := thread.Schedstat()
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it ended meanwhile, or the system keeps no such times
		}
		if err != nil {
			return 0, err
		}
		sum += time.Duration(of.RunningNanoseconds)
	}
	return sum, nil
}

// Setup is the configuration of a server of Cadastre. The server has the limits
// of a production server: measurements do not disable any.
type Setup struct {
	Program  string
	Folder   string // for logs
	Name     string // prefix of file names
	Database string // URL
	Tokens   string // file
	Env      []string
	Args     []string // flags of `serve`
	Before   []string // a command that runs the program, such as a shell; empty for none
}

// Server is a process of Cadastre.
type Server struct {
	*Process
	Setup
	Host     string // and port
	Profiles string // address of its profiles
	starts   int
}

// StartServer starts a server and waits until it is ready.
func StartServer(ctx context.Context, of Setup) (*Server, error) {
	s := &Server{Setup: of}
	if err := Addresses(&s.Host, &s.Profiles); err != nil {
		return nil, err
	}
	return s, s.Start(ctx)
}

// Start starts the server, also after it ended, always at the same address. It waits
// until the server is ready.
func (s *Server) Start(ctx context.Context) error {
	program, err := filepath.Abs(s.Program) // processes run in the folder of their log
	if err != nil {
		return err
	}
	command := slices.Concat(s.Before,
		[]string{program, "serve", "--listen", s.Host, "--database", s.Database, "--tokens", s.Tokens}, s.Args)
	s.starts++
	log := filepath.Join(s.Folder, fmt.Sprintf("%s-%d.log", s.Name, s.starts))
	env := slices.Concat(environment(), []string{"CADASTRE_PPROF_LISTEN=" + s.Profiles}, s.Env)
	p, err := Start(log, "TERM", nil, env, command...)
	if err != nil {
		return err
	}
	s.Process = p
	probe := NewClient(s.Host, "", "", 1, startTime)
	defer probe.Close()
	if err := p.Await(func() error { _, err := probe.get(ctx, "/readyz"); return err }); err != nil {
		return errors.Join(err, p.Stop())
	}
	return nil
}

// environment returns the variables of this process that do not configure a
// server or its runtime.
func environment() (env []string) {
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "CADASTRE_") && !strings.HasPrefix(variable, "GO") {
			env = append(env, variable)
		}
	}
	return env
}

// Token is a token with its viewer.
type Token struct{ Token, User, Project, Role string }

// WriteTokens writes a file of tokens.
func WriteTokens(file string, all []Token) error {
	var text strings.Builder
	text.WriteString("tokens:\n")
	for _, of := range all {
		fmt.Fprintf(&text, "  - {token: %s, user: %s, project: %s, roles: [%s]}\n",
			of.Token, of.User, of.Project, of.Role)
	}
	return os.WriteFile(file, []byte(text.String()), 0o600)
}

// startTime is the maximum time until a server is ready. A start with a million
// providers on a busy machine takes minutes.
const startTime = 10 * time.Minute

// Addresses sets each of some addresses to the loopback address with an unused port.
func Addresses(into ...*string) error {
	for _, address := range into {
		port, err := pgserver.FreePort()
		if err != nil {
			return err
		}
		*address = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	}
	return nil
}
