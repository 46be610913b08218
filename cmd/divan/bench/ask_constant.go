package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

// constant is the constant handler at work: a process, so that its processor time is its own.
type constant struct {
	client *fasthttp.HostClient
	pid    int
	stop   func() // ends the process and waits for its end
}

// startConstant starts the command of Config.Constant. Its process ends when ctx does, with stop, and with
// this process, whose end closes its input.
func startConstant(ctx context.Context, cfg Config) (*constant, error) {
	ctx, cancel := context.WithCancel(ctx)
	var said strings.Builder
	args := append(cfg.Constant[1:len(cfg.Constant):len(cfg.Constant)], "--doc-size", strconv.Itoa(cfg.DocSize))
	cmd := exec.CommandContext(ctx, cfg.Constant[0], args...) //nolint:gosec // it is this program
	cmd.Stderr = &said
	input, err1 := cmd.StdinPipe()
	output, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		cancel()
		return nil, fmt.Errorf("start the constant handler: %w", err)
	}
	stop := func() {
		_ = input.Close()
		cancel()
		_ = cmd.Wait() // it was killed
	}
	address, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		stop()
		return nil, fmt.Errorf("start the constant handler: it tells no address: %w %s", err, strings.TrimSpace(said.String()))
	}
	client := newHostClient(strings.TrimSpace(address), cfg.Clients+16)
	return &constant{client: client, pid: cmd.Process.Pid, stop: func() { client.CloseIdleConnections(); stop() }}, nil
}

// errConstantAnswered keeps a workload from taking the constant answer for one of the server.
var errConstantAnswered = errors.New("the constant handler has answered")

// timedRequests is timed for a workload whose unit is one request. When there is a constant handler, the same
// clients send it requests of the same kind right before and right after: what else the machine does then
// slows both.
func (c *clients) timedRequests(ctx context.Context, r *recorder, newClient func(nr int) client) error {
	if err := c.askConstant(ctx, r, newClient); err != nil {
		return err
	}
	if err := c.timed(ctx, r, newClient); err != nil {
		return err
	}
	return c.askConstant(ctx, r, newClient)
}

// constantTime is how long the constant handler is asked before a workload, and again after it: the kernel counts
// processor time in steps of 10 ms.
func constantTime(duration time.Duration) time.Duration {
	return max(duration/4, 500*time.Millisecond)
}

// askConstant adds what requests like those of the clients cost the constant handler.
func (c *clients) askConstant(ctx context.Context, r *recorder, newClient func(nr int) client) error {
	if c.constant == nil {
		return nil
	}
	asked := newRecorder(workload{}, Config{PIDs: []int{c.constant.pid}})
	err := c.during(ctx, constantTime(c.duration), asked, func(nr int) client {
		work := newClient(nr)
		return func(a *call, i int64) (int64, error) {
			a.constant = c.constant.client
			_, err := work(a, i)
			if errors.Is(err, errConstantAnswered) {
				return 1, nil
			}
			return 0, err
		}
	})
	if err != nil {
		return fmt.Errorf("the constant handler: %w", err)
	}
	used := asked.usage()
	r.constant.seconds += used.seconds
	r.constant.requests += used.requests
	return nil
}
