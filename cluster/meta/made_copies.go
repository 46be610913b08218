package meta

import "fmt"

// A node makes its copies of a database when it applies the command that creates it. How
// far it has come is kept with its metadata, so that a disk whose shards are gone does
// not pass for one on which they were never made.

// madeKey is where the stable store has up to which command this node has made its
// copies.
func madeKey() []byte { return []byte("divan_made") }

// CopiesMade notes that this node has made, once, all copies that the commands up to an
// index gave it.
func (c *Copies) CopiesMade(index uint64) error {
	s := c.stores.Load()
	if s == nil || index <= storedNumber(*s, madeKey()) {
		return nil
	}
	if err := s.Stable.SetUint64(madeKey(), index); err != nil {
		return fmt.Errorf("write down which copies were made: %w", err)
	}
	return nil
}

// MadeCopies returns up to which command this node has made its copies, as far as it has
// noted that.
func (c *Copies) MadeCopies() uint64 {
	if s := c.stores.Load(); s != nil {
		return storedNumber(*s, madeKey())
	}
	return 0
}
