package shard

// Rebuilding reports whether a copy was made because it was missing, and does
// not hold yet what the other copies of its range have. It takes edits all the
// same; whom it may answer is for the caller to decide. It costs one atomic
// load while no copy of the node is in that state, and survives a crash.
func (l *Local) Rebuilding(name string) bool { return l.engine.Rebuilding(name) }

// AllRebuilding returns the names of all copies that Rebuilding is true of,
// sorted.
func (l *Local) AllRebuilding() []string { return l.engine.AllRebuilding() }

// Rebuilt ends the state of Rebuilding for a copy, durably on return. A copy
// that is complete is left alone.
func (l *Local) Rebuilt(name string) error { return l.engine.ClearRebuilding(name) }
