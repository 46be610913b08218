package shard

import (
	"context"
	"fmt"

	"divan/storage"
	"divan/storage/paths"
)

// Copies is which copies of shards this node has: it makes and removes them, keeps their
// directories in place while they are in use, and knows which ones are gone.
type Copies struct {
	engine      *storage.Engine
	states      *copyStates
	compactions *Compactions
	onDrop      func(copy string)
}

// CreateOptions are fixed when a copy is made.
type CreateOptions struct {
	ID          uint64 // of the copy in the map of its database
	Partitioned bool   // the ids are partition:id
}

// Create makes an empty copy, durable on return; fault.Exists when it is
// there.
func (c *Copies) Create(ctx context.Context, name string, o CreateOptions) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := c.clear(ctx, name); err != nil {
		return err
	}
	if err := c.states.engine.Create(name, storage.CreateOptions{CopyID: o.ID, Small: true, Partitioned: o.Partitioned}); err != nil {
		return fmt.Errorf("create %s: %w", name, err)
	}
	return nil
}

// Drop removes a copy with everything in it, as soon as it has no readers any
// more; fault.NoCopy when it is not there. Requests that wait to write to it
// get fault.NoCopy; its watchers are woken.
func (c *Copies) Drop(ctx context.Context, name string) error {
	if err := c.remove(ctx, name, c.states.engine.Drop); err != nil {
		return fmt.Errorf("drop %s: %w", name, err)
	}
	return nil
}

// remove has the engine take the store of a copy away.
func (c *Copies) remove(ctx context.Context, name string, out func(name string) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.compactions.stop(name)
	if err := out(name); err != nil {
		return err
	}
	if c.onDrop != nil {
		c.onDrop(name)
	}
	if exited := c.states.forgetDropped(name); exited != nil {
		<-exited // it has no store any more: at once
	}
	return nil
}

// Has reports whether a copy is on this node. It is not opened for that.
func (c *Copies) Has(name string) bool { return c.states.engine.Catalog().Has(name) }

// DiskFull is fault.InsufficientStorage while the disk of this node is full.
func (c *Copies) DiskFull() error { return c.states.engine.DiskFull() }

// Names lists the copies on this node.
func (c *Copies) Names() ([]string, error) {
	names, err := c.states.engine.Catalog().Names()
	if err != nil {
		return nil, fmt.Errorf("list copies: %w", err)
	}
	return names, nil
}

// Stored is Names with what the directories say which copies they are.
func (c *Copies) Stored() ([]paths.Store, error) {
	stores, err := c.states.engine.Catalog().Stored()
	if err != nil {
		return nil, fmt.Errorf("list copies: %w", err)
	}
	return stores, nil
}

// ID returns which copy of its database a directory says that it is, without
// opening it.
func (c *Copies) ID(name string) (uint64, error) { return c.states.engine.Catalog().CopyID(name) }

// Lost reports whether a copy was here once and is gone, although it was not
// dropped. Requests for it get fault.Unavailable.
func (c *Copies) Lost(name string) bool { return c.states.engine.Losses().Lost(name) }

// NoteMade notes that copies are here, of those that were listed: only what is
// noted can be missed.
func (c *Copies) NoteMade(names []string) error { return c.states.engine.Losses().NoteMade(names) }

// FindLost looks which copies have lost what they held. Some say so only when they are opened.
func (c *Copies) FindLost(ctx context.Context) error { return c.states.engine.FindLost(ctx) }

// ContentsLost returns the copies, sorted, whose directories are there, and which have lost what they
// held: Has is false of them, and Create takes their place.
func (c *Copies) ContentsLost() []string { return c.states.engine.Losses().Contents() }

// LossNews has something when ContentsLost has more.
func (c *Copies) LossNews() <-chan struct{} { return c.states.engine.Losses().News() }

// clear sets the directory of a copy aside that has lost what it held.
func (c *Copies) clear(ctx context.Context, name string) error {
	if !c.states.engine.Losses().ContentLost(name) {
		return nil
	}
	return c.SetAside(ctx, name)
}

// AcceptLoss makes a copy that is lost again, empty. fault.Exists when it is
// there.
func (c *Copies) AcceptLoss(ctx context.Context, name string, o CreateOptions) error {
	if err := c.clear(ctx, name); err != nil {
		return err
	}
	if err := c.states.engine.Losses().Forget(name); err != nil {
		return fmt.Errorf("give up what %s held: %w", name, err)
	}
	return c.Create(ctx, name, o)
}

// SetAside takes away a directory that is not the copy that should be there, which is
// lost from then on: its files stay on the disk.
func (c *Copies) SetAside(ctx context.Context, name string) error {
	if err := c.remove(ctx, name, c.states.engine.SetAside); err != nil {
		return fmt.Errorf("set aside %s: %w", name, err)
	}
	return nil
}

// Orphan is Drop for a copy that no database names and that was not dropped: its
// files are set aside and stay on the disk.
func (c *Copies) Orphan(ctx context.Context, name string) error {
	if err := c.remove(ctx, name, c.states.engine.Orphan); err != nil {
		return fmt.Errorf("set aside %s: %w", name, err)
	}
	return nil
}
