package storage

// OpenStores returns how many stores hold a Pebble instance now.
func (e *Engine) OpenStores() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.mu.open
}
