package shard

// Rebuilding reports whether a program that did not know states of copies has marked
// the copy as one that lacks what the other copies of its range have.
func (l *Local) Rebuilding(name string) bool { return l.engine.Rebuilding(name) }

// AllRebuilding returns the names of all copies that Rebuilding is true of, sorted.
func (l *Local) AllRebuilding() []string { return l.engine.AllRebuilding() }

// EndRebuilding takes the mark of a copy away, durably on return.
func (l *Local) EndRebuilding(name string) error { return l.engine.ClearRebuilding(name) }
