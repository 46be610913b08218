package ownership

import (
	"hash/fnv"
	"io"

	"divan/cluster/meta"
)

// Slot returns the slot of a job, from 0 up to but without meta.SlotCount. A job
// of a replicator document is named by its database and the id of the document,
// one of a request by the id of the replication. All versions of the program
// must come to the same.
func Slot(parts ...string) int {
	h := fnv.New64a()
	for i, p := range parts {
		if i > 0 {
			_, _ = h.Write([]byte{0}) // never fails
		}
		_, _ = io.WriteString(h, p)
	}
	return int(h.Sum64() % meta.SlotCount)
}
