package storage

// Stats are figures about an engine, for metrics.
type Stats struct {
	OpenStores             int    // with a Pebble instance, or the view of a small one
	OpenSmall              int    // of these with a view
	SmallBytes             int64  // that the views take, about
	SmallDamaged           bool   // files of small stores are damaged, and not yet written anew
	PinnedStores           int    // in use
	Compactions            int    // running
	CacheBytes             int64  // blocks in the cache
	MemtableBytes          int64  // that memtables of open stores take at most
	CacheHits, CacheMisses int64  // since the start
	DiskFree, DiskSize     uint64 // bytes of the disk of the data directory; 0: it does not tell
	BitsCorrected          int64  // bits of files that were other ones than their checksums say, and were set right
	Commits                uint64 // batches whose way to the disk has ended, since the start
}

// Stats returns the figures of the moment.
func (e *Engine) Stats() Stats {
	shared := &e.env.shared
	m := shared.Memory.Cache.Metrics()
	s := Stats{CacheBytes: m.Size, CacheHits: m.Hits, CacheMisses: m.Misses}
	s.Commits, s.BitsCorrected = e.env.syncs.commits.Load(), shared.Mending.Corrected()
	s.DiskFree, s.DiskSize = e.env.space.Usage()
	s.Compactions, s.MemtableBytes = shared.Scheduler.Running(), shared.Memory.Memtables()
	s.SmallDamaged = e.small.damage.Met()
	e.cache.stats(&s)
	return s
}
