package quorum

import (
	"bytes"

	"divan/shard"
)

// LocalVotes counts the copies that answered the same as one, nil included.
func LocalVotes(list []*shard.LocalDoc, one *shard.LocalDoc) int {
	n := 0
	for _, o := range list {
		if (o == nil) == (one == nil) && (o == nil || (o.Rev == one.Rev && bytes.Equal(o.Body, one.Body))) {
			n++
		}
	}
	return n
}

// ChooseLocal returns the answer that a majority of all copies gave, else the
// document with the highest count, and among those the one that most copies
// have; nil when there is none.
func ChooseLocal(list []*shard.LocalDoc, majority int) *shard.LocalDoc {
	var best *shard.LocalDoc
	votes := 0
	for _, l := range list {
		n := LocalVotes(list, l)
		switch {
		case n >= majority:
			return l
		case l == nil || (best != nil && l.Rev < best.Rev):
		case best == nil || l.Rev > best.Rev || n > votes:
			best, votes = l, n
		}
	}
	return best
}
