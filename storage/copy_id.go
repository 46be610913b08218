package storage

// CopyID returns which copy of its database the store is.
func (s *Store) CopyID() uint64 { return s.id.Copy }

// CopyID is Store.CopyID of a store that need not be open.
func (e *Engine) CopyID(name string) (uint64, error) {
	id, _, err := e.readIdentity(name)
	if err == nil {
		err = id.Check(name)
	}
	return id.Copy, err
}
