package reshard

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"divan/reshard/job"
	"divan/storage/fault"
)

// Stop stops all jobs of the cluster. When they are stopped already, the reason stays
// what it is.
func (t *Table) Stop(ctx context.Context, reason string) error {
	return t.setState(ctx, State{Stopped: true, Reason: reason})
}

// Start lets all jobs run that Stop has stopped.
func (t *Table) Start(ctx context.Context) error { return t.setState(ctx, State{}) }

func (t *Table) setState(ctx context.Context, want State) error {
	err := retry(func() error {
		now, version := t.state()
		if now.Stopped == want.Stopped {
			return nil
		}
		value, err := json.Marshal(want)
		if err != nil {
			return fmt.Errorf("keep state of resharding: %w", err)
		}
		_, err = t.records.PutRecord(ctx, stateKey, value, version)
		return err
	})
	if err != nil {
		return err
	}
	for _, e := range t.entries() {
		if err := t.settle(ctx, e.id); err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
	}
	return nil
}

// settle brings a job in line with the state of the cluster.
func (t *Table) settle(ctx context.Context, id string) error {
	return t.change(ctx, id, func(j *job.Job) (bool, error) { return t.settled(j), nil })
}

// settled does that in the job alone, and reports whether anything changed.
func (t *Table) settled(j *job.Job) bool {
	now := time.Now().Unix()
	if t.State().Stopped {
		return j.Disable(now, t.history())
	}
	return j.Enable(now, t.history())
}
