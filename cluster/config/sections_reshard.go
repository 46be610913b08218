package config

import "time"

// Reshard is section [reshard].
type Reshard struct {
	MaxJobs           int // of a node that have not ended
	MaxHistory        int // entries of the history of a job
	MaxRetries        int // of what has failed
	RetryInterval     time.Duration
	MaxBytesPerSecond int64 // that clones of this node copy; Infinity: as fast as it goes
	RequireNode       bool  // a request for jobs has to name a node
	RequireRange      bool  // it has to name a range
	SplitAbove        int64 // bytes of a copy on the disk, with its indexes, above which its shard is split by itself; 0: never
}

// minSplitAbove is below what no shard is worth a split.
const minSplitAbove = 1 << 20

func readReshard(r *reader) Reshard {
	const s = "reshard"
	c := Reshard{
		MaxJobs:           r.count(s, "max_jobs", 48, atLeast(0)),
		MaxHistory:        r.count(s, "max_history", 20, atLeast(1)),
		MaxRetries:        r.count(s, "max_retries", 5, atLeast(0)),
		RetryInterval:     r.duration(s, "retry_interval_sec", 10*time.Second, time.Second, atLeast(0)),
		MaxBytesPerSecond: r.integer(s, "max_bytes_per_second", 100<<20, atLeastOrInfinity(1<<10)),
		RequireNode:       r.boolean(s, "require_node_param", false),
		RequireRange:      r.boolean(s, "require_range_param", false),
		SplitAbove:        r.integer(s, "split_above", 0, atLeast(0)),
	}
	if c.SplitAbove > 0 && c.SplitAbove < minSplitAbove {
		r.bad(s, "split_above", "0, or at least 1048576 bytes")
		c.SplitAbove = 0
	}
	return c
}
