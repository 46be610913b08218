package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"divan/test/sim/workload"
)

const (
	httpPort    = 5984
	clusterPort = 5986
	user        = "adm"
	password    = "pass"
	secret      = "a secret of this run only"
	stopWithin  = 60 * time.Second
)

// process is the program on one host.
type process struct {
	*host
	binary string
	dir    string // of its data
	seeds  string // names of all hosts
	cmd    *exec.Cmd
	ended  chan struct{} // closed when the program has ended
	err    error         // how it ended
}

func (p *process) name() string { return "divan@" + p.ip }

func (p *process) target() workload.Target {
	return workload.Target{Name: p.name(), URL: fmt.Sprintf("http://%s:%d", p.ip, httpPort)}
}

// start starts the program; its log goes on in the same file.
func (p *process) start(ctx context.Context) error {
	log, err := os.OpenFile(p.dir+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the program has its own handle
	p.cmd = exec.CommandContext(context.WithoutCancel(ctx), "ip", "netns", "exec", p.ns, p.binary, "serve", "--data", p.dir,
		"--listen", fmt.Sprintf("0.0.0.0:%d", httpPort), "--admin", user+":"+password)
	p.cmd.Env = append(os.Environ(),
		"NODENAME="+p.name(), "DIVAN_CLUSTER__SEEDLIST="+p.seeds, "DIVAN_CLUSTER__SECRET="+secret,
		fmt.Sprintf("DIVAN_CLUSTER__PORT=%d", clusterPort), "DIVAN_MEM3__SYNC_DELAY=1000",
		"DIVAN_CHTTPD_AUTH__ITERATIONS=10",
	)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := p.cmd.Start(); err != nil {
		return err
	}
	p.ended = make(chan struct{})
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return nil
}

func (p *process) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// signal sends a signal to the program: ip replaces itself by it.
func (p *process) signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

// kill ends the program as a power cut would, but for the disk.
func (p *process) kill() error {
	err := p.signal(syscall.SIGKILL)
	<-p.ended
	return err
}

// stop asks the program to end and checks that it does so in good order.
func (p *process) stop() error {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	late := time.NewTimer(stopWithin)
	defer late.Stop()
	select {
	case <-p.ended:
	case <-late.C:
		return errors.Join(fmt.Errorf("node %s does not stop within %v", p.name(), stopWithin), p.signal(syscall.SIGQUIT))
	}
	if p.err != nil {
		return fmt.Errorf("node %s stopped in bad order: %w (%s)", p.name(), p.err, filepath.Base(p.dir)+".log")
	}
	return nil
}
