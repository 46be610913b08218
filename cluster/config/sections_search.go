package config

// Queries are the sections about selectors and full text.
type Queries struct {
	Mango  Mango
	Search Search
}

// Search is sections [dreyfus] and [nouveau]: full-text search.
type Search struct {
	Limit              int64 // rows of an answer when the request does not say
	LimitPartitions    int64 // the same in a partitioned database
	MaxLimit           int64
	MaxLimitPartitions int64
	MaxGroupLimit      int64
	NouveauMaxLimit    int64 // rows that Mango asks an index of type nouveau for at once
}

func readSearch(r *reader) Search {
	const s = "dreyfus"
	const usual = 200
	partitions := int64(2000)
	most := r.integer(s, "max_limit", usual, between(1, 1<<20))
	if most != usual { // it counts for both then
		partitions = most
	}
	return Search{
		Limit:              r.integer(s, "limit", 25, between(0, 1<<20)),
		LimitPartitions:    r.integer(s, "limit_partitions", 2000, between(0, 1<<20)),
		MaxLimit:           most,
		MaxLimitPartitions: r.integer(s, "max_limit_partitions", partitions, between(1, 1<<20)),
		MaxGroupLimit:      r.integer(s, "max_group_limit", 200, between(1, 1<<20)),
		NouveauMaxLimit:    r.integer("nouveau", "max_limit", 200, between(1, 1<<20)),
	}
}
