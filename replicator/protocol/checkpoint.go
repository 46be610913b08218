package protocol

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"divan/replicator/endpoint"
	"divan/storage/fault"
)

// load reads the checkpoint of a side.
func (s *side) load(ctx context.Context, id string) error {
	body, rev, err := s.Local(ctx, id)
	if fault.Is(err, fault.NotFound) && !fault.Is(err, fault.NoDatabase) {
		return nil
	}
	if err == nil {
		hold := s.memory.Hold()
		defer hold.Release()
		if err = hold.Take(ctx, endpoint.MemoryFactor*int64(len(body))); err == nil {
			s.history, err = parseHistory(body, rev)
		}
		err = endpoint.NoMemory("the checkpoint", err)
	}
	if err != nil {
		return fmt.Errorf("read the checkpoint of the %s: %w", s.name, err)
	}
	return nil
}

// commit makes what was written durable and checks that the database is still the one that the run
// began with: in one made anew under its name, documents and positions are others.
func (s *side) commit(ctx context.Context) error {
	instance, err := s.Commit(ctx)
	if fault.Is(err, fault.Forbidden) || fault.Is(err, fault.Unauthorized) { // nothing of ours is written there
		var info endpoint.Info
		info, err = s.Info(ctx)
		instance = info.InstanceStart
	}
	if err != nil {
		return fmt.Errorf("commit the %s: %w", s.name, err)
	}
	if instance != s.instance {
		return fault.Newf(fault.Unavailable, "instance_start_time of the %s has changed since the replication began", s.name)
	}
	return nil
}

// save writes a checkpoint. Another run may have written one since, as a continuous replication and
// one that is not have the same: ours is as good. Or it is ours already, and only the answer was
// lost.
func (s *side) save(ctx context.Context, id string, body []byte) error {
	rev, err := s.PutLocal(ctx, id, s.history.rev, body)
	if fault.Is(err, fault.Conflict) {
		there := side{Database: s.Database, name: s.name, memory: s.memory}
		if err := there.load(ctx, id); err != nil {
			return err
		}
		if rev, err = there.history.rev, nil; !bytes.Equal(there.history.text, body) {
			rev, err = s.PutLocal(ctx, id, rev, body)
		}
	}
	if err != nil {
		return fmt.Errorf("write the checkpoint of the %s: %w", s.name, err)
	}
	s.history.rev = rev
	return nil
}

// checkpoint remembers on both sides that everything up to seq is copied.
func (r *run) checkpoint(ctx context.Context, seq endpoint.Seq) error {
	err := r.remember(ctx, seq)
	if err == nil {
		r.Figures.Checkpoints.Add(1)
	}
	countIf(ctx, &r.Figures.FailedCheckpoints, err)
	return err
}

// remember is checkpoint. The target is first: a source that knows more than the
// target would be believed.
func (r *run) remember(ctx context.Context, seq endpoint.Seq) error {
	for _, s := range []*side{&r.target, &r.source} {
		if err := s.commit(ctx); err != nil {
			return err
		}
	}
	if r.Fence != nil {
		if err := r.Fence(ctx); err != nil {
			return fmt.Errorf("before a checkpoint: %w", err)
		}
	}
	stats := r.Progress.Snapshot()
	body := r.session.appendHistory(nil, seq, &stats, time.Now())
	if err := r.target.save(ctx, r.ID.Base, body); err != nil {
		return err
	}
	if err := r.saveSource(ctx, body); err != nil {
		return err
	}
	r.answer = body
	behind := r.pending(ctx, seq)
	r.Progress.update(func(s *Stats) { s.CheckpointedSeq, s.ChangesPending = seq, r.done.count(behind) })
	return nil
}

// saveSource writes the checkpoint of the source, unless it takes none. Then the
// next run starts anew, which costs time but harms nothing.
func (r *run) saveSource(ctx context.Context, body []byte) error {
	if r.source.readOnly {
		return nil
	}
	err := r.source.save(ctx, r.ID.Base, body)
	if err == nil || fault.RepeatOf(err) != fault.Lasting {
		return err
	}
	r.source.readOnly = true
	r.log.Warn("the source takes no checkpoint: another run will compare everything again", zap.Error(err))
	return nil
}
