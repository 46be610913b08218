package storage

import "fmt"

// Programs that did not know states of copies (copies with ids are from version 2 of
// the cluster on) marked stores that did not hold yet what they should. None is marked any
// more; what they have marked counts until the map says that the copy joins.

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
