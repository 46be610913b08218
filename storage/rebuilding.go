package storage

import (
	"fmt"

	"divan/storage/instance"
)

// SetRebuilding notes durably that a store does not hold yet what it should; the
// store need not exist. Marking it again changes nothing.
//
// A store that is made as a rebuilding one has its mark, durably, before it is
// there.
func (e *Engine) SetRebuilding(name string) error {
	if err := e.rebuilding.Add(name); err != nil {
		return instance.DiskError("mark store "+name, err)
	}
	return nil
}

// ClearRebuilding takes the mark away, durably on return; a store without one is
// left alone.
func (e *Engine) ClearRebuilding(name string) error {
	if err := e.rebuilding.Remove(name); err != nil {
		return fmt.Errorf("take the mark off store %s: %w", name, err)
	}
	return nil
}

// Rebuilding reports whether a store has a mark. It costs one atomic load while
// none has.
func (e *Engine) Rebuilding(name string) bool { return e.rebuilding.Has(name) }

// AllRebuilding returns the names of all stores with a mark, sorted.
func (e *Engine) AllRebuilding() []string { return e.rebuilding.All() }
