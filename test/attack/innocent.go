package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"time"
)

// innocent is a client that writes documents and reads them, and remembers what
// was acknowledged. It has its connections before an attack begins, and is a process
// of its own: it waits for the server and not for the attackers.
type innocent struct {
	server *server
	cmd    *exec.Cmd
	in     io.WriteCloser // a line asks what was waited, the end for what was acknowledged
	out    *json.Decoder
	acked  []string // when it has been stopped
}

// waits are the waiting times of a client.
type waits struct {
	Took    []time.Duration
	Longest time.Duration // between two successes
	Refused int
}

const (
	// shortest is the least that a usual wait counts as: on a machine whose processors are
	// busy, everything waits for its turn.
	shortest = 10 * time.Millisecond
	gapLimit = time.Second
)

// p99 is the time that 99 of 100 requests took at most.
func (w *waits) p99() time.Duration {
	if len(w.Took) == 0 {
		return 0
	}
	slices.Sort(w.Took)
	return w.Took[len(w.Took)*99/100]
}

// watch has an innocent client work, and measures what it waits without an attack.
func (w *world) watch(ctx context.Context, s *server) error {
	if !w.functions {
		if err := s.must(ctx, http.MethodPut, "/kept?q=2", nil); err != nil {
			return err
		}
	}
	var err error
	if w.innocent, err = newInnocent(ctx, s, w.functions); err != nil {
		return err
	}
	select {
	case <-time.After(2 * time.Second):
	case <-ctx.Done():
		return ctx.Err()
	}
	w.usual, err = w.innocent.take()
	w.watched = err == nil
	return err
}

// attacked plays an attack for as long as the flags say, and notes what the
// innocent client waited meanwhile.
func (w *world) attacked(ctx context.Context, play func(ctx context.Context)) {
	limited, cancel := context.WithTimeout(ctx, w.length)
	defer cancel()
	_, before := w.innocent.take()
	play(limited)
	var after error
	w.meanwhile, after = w.innocent.take()
	w.failure = errors.Join(before, after)
}

// told describes the waits of the innocent client.
func (w *world) told() string {
	if !w.watched {
		return ""
	}
	return fmt.Sprintf("p99 %.1f ms, usually %.1f ms, longest wait %.2f s, %d refused; ",
		ms(w.meanwhile.p99()), ms(w.usual.p99()), w.meanwhile.Longest.Seconds(), w.meanwhile.Refused)
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// judge says whether the innocent client suffered.
func (w *world) judge() error {
	most := 10 * max(w.usual.p99(), shortest)
	switch {
	case w.meanwhile.Longest > gapLimit:
		return fmt.Errorf("the innocent client got nothing for %.1f s", w.meanwhile.Longest.Seconds())
	case w.meanwhile.p99() > most:
		return fmt.Errorf("its p99 was %v, more than %v", w.meanwhile.p99(), most)
	}
	return nil
}

// newInnocent starts an innocent client.
func newInnocent(ctx context.Context, s *server, functions bool) (*innocent, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	i := &innocent{server: s, cmd: exec.CommandContext(context.WithoutCancel(ctx), program, "-innocent", s.host, "-functions="+strconv.FormatBool(functions))}
	i.cmd.Stderr = os.Stderr
	out, err := i.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if i.in, err = i.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	i.out = json.NewDecoder(out)
	return i, i.cmd.Start()
}

// take returns what was waited since the last call.
func (i *innocent) take() (w waits, err error) {
	if _, err = io.WriteString(i.in, "\n"); err == nil {
		err = i.out.Decode(&w)
	}
	return w, err
}

// stop ends it. Only the first call does something.
func (i *innocent) stop() error {
	if i.in == nil {
		return nil
	}
	err := i.in.Close()
	i.in = nil
	if err == nil {
		err = i.out.Decode(&i.acked)
	}
	return errors.Join(err, i.cmd.Wait())
}

// check looks for what was acknowledged.
func (i *innocent) check(ctx context.Context) error {
	for part := range slices.Chunk(i.acked, 1000) {
		var answer struct {
			Rows []struct {
				Key   string `json:"key"`
				Error string `json:"error"`
			} `json:"rows"`
		}
		status, err := i.server.call(ctx, http.MethodPost, "/kept/_all_docs", map[string]any{"keys": part}, &answer)
		if err != nil || status != http.StatusOK {
			return fmt.Errorf("the documents cannot be read: status %d, %w", status, err)
		}
		for _, row := range answer.Rows {
			if row.Error != "" {
				return fmt.Errorf("LOST: document %s, which was acknowledged, is %s", row.Key, row.Error)
			}
		}
		if len(answer.Rows) != len(part) {
			return fmt.Errorf("LOST: %d of %d documents", len(part)-len(answer.Rows), len(part))
		}
	}
	return nil
}
