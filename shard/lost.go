package shard

import (
	"context"
	"fmt"
)

// Lost reports whether a copy was here once and is gone, although nobody dropped
// it. What asks for it gets fault.Unavailable.
func (l *Local) Lost(name string) bool { return l.engine.Lost(name) }

// NoteMade notes that copies are here, of those that were listed: only what is
// noted can be missed.
func (l *Local) NoteMade(names []string) error { return l.engine.NoteMade(names) }

// AcceptLoss makes a copy that is lost again, empty. fault.Exists when it is
// there.
func (l *Local) AcceptLoss(ctx context.Context, name string, o CreateOptions) error {
	if err := l.engine.ForgetLost(name); err != nil {
		return fmt.Errorf("give up what %s held: %w", name, err)
	}
	return l.Create(ctx, name, o)
}

// SetAside takes away a directory that is not the copy that should be there, which is
// lost from then on: its files stay on the disk.
func (l *Local) SetAside(ctx context.Context, name string) error {
	if err := l.remove(ctx, name, l.engine.SetAside); err != nil {
		return fmt.Errorf("set aside %s: %w", name, err)
	}
	return nil
}

// Orphan is Drop for a copy that no database names and nobody dropped: its files
// are set aside and stay on the disk.
func (l *Local) Orphan(ctx context.Context, name string) error {
	if err := l.remove(ctx, name, l.engine.Orphan); err != nil {
		return fmt.Errorf("set aside %s: %w", name, err)
	}
	return nil
}
