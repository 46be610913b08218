package storage

import (
	"crypto/rand"
	"encoding/hex"
	"slices"
	"strings"
)

// drop removes a store of any kind; move takes the files of one that is not open out of their place.
func (c *storeCache) drop(name string, move func(name string) error) error {
	for {
		c.mu.Lock()
		en := c.mu.entries[name]
		switch {
		case c.mu.closed:
			c.mu.Unlock()
			return errClosed()
		case en == nil:
			en = c.newBusyLocked(name)
			c.mu.Unlock()
			err := move(name)
			c.remove(en)
			return err
		case en.busy != nil:
			wait := en.busy
			c.mu.Unlock()
			<-wait
		case en.dropped:
			c.mu.Unlock()
			return noStore()
		case en.pins > 0:
			en.dropped = true
			en.store.base().dropped.Store(true)
			c.mu.Unlock()
			return nil
		default:
			en.dropped = true
			en.take()
			c.mu.Unlock()
			return c.closeStores([]*entry{en})
		}
	}
}

// dropBelow drops the open stores below a directory that have no pins, and waits for those that
// are being opened or closed.
func (c *storeCache) dropBelow(dir string) {
	for _, en := range c.takeBelow(dir + "/") {
		_ = c.closeStores([]*entry{en}) // logged there
	}
}

func (c *storeCache) takeBelow(prefix string) (out []*entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for again := true; again; {
		again = false
		for name, en := range c.mu.entries {
			switch {
			case !strings.HasPrefix(name, prefix) || slices.Contains(out, en):
			case en.busy != nil:
				wait := en.busy
				c.mu.Unlock()
				<-wait
				c.mu.Lock()
				again = true
			case en.unused != nil:
				en.dropped = true
				out = append(out, en.take())
			}
			if again {
				break
			}
		}
	}
	return out
}

// displace drops a store at once although it has pins: move takes its files out of their place, and
// another store may be opened under the name then.
func (c *storeCache) displace(s *handle, move func() error) error {
	c.mu.Lock()
	en := s.entry
	if en.dropped {
		c.mu.Unlock()
		return nil
	}
	en.dropped, en.displaced = true, true
	delete(c.mu.entries, en.name)
	var unique [12]byte
	_, _ = rand.Read(unique[:]) // never fails
	en.name += "#" + hex.EncodeToString(unique[:])
	c.mu.entries[en.name] = en
	place := c.newBusyLocked(s.name)
	c.mu.Unlock()
	defer c.remove(place)
	return move()
}
