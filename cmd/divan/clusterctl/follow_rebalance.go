package clusterctl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"divan/cmd/divan/progress"
)

// errReplaced says that what was followed has ended unseen.
var errReplaced = errors.New("another rebalance was begun; look at it with --follow")

// rebalanceSource follows a rebalance, or what it does to drain a node.
type rebalanceSource struct {
	c       *command
	id      string // of the rebalance
	drained string // the node that is drained, which any rebalance does; empty: none
	began   time.Time
	seen    bool // the server knows the rebalance

	last    *rebalanceState
	drain   *drain          // of drained
	running map[string]move // at the last look
	failed  map[string]bool // that were told
}

func (c *command) rebalanceSource(id, drained string) *rebalanceSource {
	return &rebalanceSource{c: c, id: id, drained: drained, began: time.Now(), failed: map[string]bool{}}
}

// look implements source.
func (s *rebalanceSource) look(ctx context.Context, show *progress.Display) (extent, bool, error) {
	r, err := s.c.rebalanceState(ctx)
	if err != nil {
		return extent{}, false, err
	}
	switch {
	case r.ID == s.id:
		s.seen = true
	case !s.seen && time.Since(s.began) < patience:
		// It was asked of another node, behind a load balancer.
		text := s.c.client.Host() + " does not know of it yet"
		return extent{text: text, brief: text}, false, nil
	case s.drained == "":
		return extent{}, false, errReplaced
	}
	s.tell(r, show)
	s.last = r
	e := extent{
		done: r.Moved.Bytes + r.Failed.Bytes + int64(r.Moved.Copies+r.Failed.Copies), // copies without bytes count too
		all:  r.Planned.Bytes + int64(r.Planned.Copies),
		text: r.progress(),
	}
	e.brief = fmt.Sprintf("%d of %s, %s of %s", r.Moved.Copies, copies(r.Planned.Copies), size(r.Moved.Bytes), size(r.Planned.Bytes))
	e.all = max(e.all, e.done)
	ended := r.State != stateRunning && len(r.Running) == 0
	if s.drained == "" {
		return e, ended, nil
	}
	if s.drain, err = s.c.drain(ctx, s.drained); err != nil {
		return extent{}, false, err
	}
	e.brief = fmt.Sprintf("%s left, %s of %s", copies(s.drain.Copies), size(r.Moved.Bytes), size(r.Planned.Bytes))
	e.text = fmt.Sprintf("%s left on %s; %s", copies(s.drain.Copies), s.drained, e.text)
	// What has left may not be counted yet. The rebalance itself may have more to do than this.
	leaving := slices.ContainsFunc(r.Running, func(m move) bool { return m.From == s.drained })
	return e, ended || s.drain.Drained && !leaving || !s.drain.Draining, nil
}

// tell prints what has ended since the last look. On a terminal the bar says what succeeds.
func (s *rebalanceSource) tell(r *rebalanceState, show *progress.Display) {
	told, unsaid := 0, 0
	line := func(text string) {
		if told++; told <= linesAtOnce {
			show.Line("%s", text)
			return
		}
		unsaid++
	}
	running := make(map[string]move, len(r.Running))
	for _, m := range r.Running {
		running[m.of()] = m
	}
	failed := map[string]bool{}
	for i := range r.Failures {
		m := &r.Failures[i]
		failed[m.of()] = true
		if key := m.of() + m.Why; !s.failed[key] {
			s.failed[key] = true
			line("failed " + m.of() + ": " + oneLine(m.Why))
		}
	}
	for key, m := range s.running {
		if _, still := running[key]; still || failed[key] || s.c.cfg.Terminal || r.State == "cancelled" {
			continue
		}
		line(fmt.Sprintf("moved %s, %s", key, size(m.Bytes)))
	}
	if unsaid > 0 {
		show.Line("%s", strings.TrimSpace(more(unsaid, 0)))
	}
	s.running = running
}

// outcome prints how it has ended, and returns an error unless all was moved.
func (s *rebalanceSource) outcome() error {
	r := s.last
	if err := s.c.printf("%s moved, %s.\n", copies(r.Moved.Copies), size(r.Moved.Bytes)); err != nil {
		return err
	}
	for _, l := range r.Left {
		if err := s.c.printf("%s, %s: left as they are: %s.\n", copies(l.Copies), size(l.Bytes), l.Why); err != nil {
			return err
		}
	}
	switch {
	case r.State == jobStopped:
		return fmt.Errorf("the rebalance was stopped (%s); --resume has it go on", oneLine(r.Reason))
	case r.State != stateCompleted:
		return fmt.Errorf("the rebalance was %s (%s)", r.State, oneLine(r.Reason))
	case r.Failed.Copies > 0 && len(r.Failures) > 0:
		return fmt.Errorf("%s could not be moved; the last one: %s", copies(r.Failed.Copies), oneLine(r.Failures[len(r.Failures)-1].Why))
	case r.Failed.Copies > 0:
		return fmt.Errorf("%s could not be moved", copies(r.Failed.Copies))
	}
	return nil
}
