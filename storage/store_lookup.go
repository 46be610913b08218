package storage

// lookup returns the store of a name when it is open, nil when it is not, and whether it is dropped
// and still in use.
func (c *storeCache) lookup(name string) (open member, dropped bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	en := c.mu.entries[name]
	if en == nil {
		return nil, false
	}
	if en.busy == nil {
		open = en.store
	}
	return open, en.dropped
}

// pinOpen pins a store that has an instance or a view of its own. nil: there is none.
func (c *storeCache) pinOpen(name string) member {
	c.mu.Lock()
	defer c.mu.Unlock()
	en := c.mu.entries[name]
	if en == nil || en.busy != nil || en.dropped || !en.store.base().counted {
		return nil
	}
	en.pin()
	return en.store
}

// members returns the stores that are open, or being closed.
func (c *storeCache) members() (all []member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, en := range c.mu.entries {
		if en.store != nil {
			all = append(all, en.store)
		}
	}
	return all
}

// stats adds its figures.
func (c *storeCache) stats(s *Stats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := &c.mu.lru
	s.OpenStores, s.OpenSmall, s.SmallBytes = l.open+l.openSmall, l.openSmall, l.smallBytes
	for _, en := range c.mu.entries {
		if en.pins > 0 {
			s.PinnedStores++
		}
	}
}
