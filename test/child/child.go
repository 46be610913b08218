// Package child runs programs for the programs that try Divan out.
//
// Goroutines: one per process; it ends with the process.
package child

import (
	"os"
	"os/exec"
	"syscall"
)

// Process is a program at work.
type Process struct {
	cmd   *exec.Cmd
	ended chan struct{}
	err   error
}

// Start starts a program. What it prints is appended to a file; empty: the
// command says where it goes.
func Start(cmd *exec.Cmd, output string) (*Process, error) {
	if output != "" {
		out, err := os.OpenFile(output, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, err
		}
		defer func() { _ = out.Close() }() // the program has its own handle
		cmd.Stdout, cmd.Stderr = out, out
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Process{cmd: cmd, ended: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// PID is the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Ended is closed when the program has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Running reports whether the program has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// Wait waits for the end and returns how it was.
func (p *Process) Wait() error {
	<-p.ended
	return p.err
}

// Signal sends a signal; it may be gone already.
func (p *Process) Signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// Kill ends it at once and waits for the end.
func (p *Process) Kill() {
	p.Signal(syscall.SIGKILL)
	<-p.ended
}
