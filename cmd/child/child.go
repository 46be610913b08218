// Package child runs programs for the programs that try Divan out.
//
// Goroutines: one per process; it ends with the process.
package child

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
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

// FreePort returns a port of 127.0.0.1 on which no program listens, neither with TCP nor with UDP.
// Systems give none of its range to outgoing connections (from 32768 on in Linux, from
// 49152 elsewhere), so that a program that is started again finds it free.
func FreePort(ctx context.Context) (int, error) {
	var last error
	for range 100 {
		port := 10_000 + rand.IntN(20_000)
		if last = bindable(ctx, fmt.Sprintf("127.0.0.1:%d", port)); last == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no port is free: %w", last)
}

func bindable(ctx context.Context, address string) error {
	var c net.ListenConfig
	l, err := c.Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	p, err := c.ListenPacket(ctx, "udp", address)
	if err == nil {
		err = p.Close()
	}
	return errors.Join(err, l.Close())
}
