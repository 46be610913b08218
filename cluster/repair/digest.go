package repair

import (
	"context"
	"encoding/binary"
	"math/bits"
	"math/rand/v2"

	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// A digest is the changes of a copy behind a sequence, each as one number made of the document's id
// and leaves. When all is well, both copies have taken the same changes since the last checkpoint:
// the numbers of the target tell the source so without a read of a single document on either side.
// Changes that are not among them are asked about one by one.

const (
	// maxDigest bounds the changes of one digest.
	maxDigest = 50_000
	// spareDigest is how many more changes are asked for than the source has:
	// the two copies take the same edits in other orders.
	spareDigest = 1000
)

// seed makes the numbers of one digest. It is random for each, so that no client can choose ids
// whose numbers are the same.
type seed [2]uint64

func newSeed() seed { return seed{rand.Uint64(), rand.Uint64()} }

// number hashes a document's id and leaves, winner first.
func (s seed) number(id string, leaves []doc.Rev) uint64 {
	h := s.text(s[0], id)
	for i := range leaves {
		h = s.text(h^leaves[i].Pos, leaves[i].ID)
	}
	return h
}

// text adds a text and its length to a hash.
func (s seed) text(h uint64, t string) uint64 {
	n := uint64(len(t))
	for len(t) >= 8 {
		word := uint64(t[0]) | uint64(t[1])<<8 | uint64(t[2])<<16 | uint64(t[3])<<24 |
			uint64(t[4])<<32 | uint64(t[5])<<40 | uint64(t[6])<<48 | uint64(t[7])<<56
		h = mix(h^word, s[1])
		t = t[8:]
	}
	word := n << 56
	for i := range len(t) {
		word |= uint64(t[i]) << (8 * i)
	}
	return mix(h^word, s[1]^n)
}

// mix folds the product of two words; the constants keep zero from staying
// zero.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^0x9e3779b97f4a7c15, b^0xd1b54a32d192ed03)
	return hi ^ lo
}

// digest returns the answer to opDigest: the uuid of the copy, and the numbers.
func digest(ctx context.Context, local *shard.Local, m *message) ([]byte, error) {
	if m.Seed == nil {
		return nil, fault.New(fault.BadRequest, "malformed request to repair")
	}
	limit := max(0, min(m.Limit, maxDigest))
	stream, err := local.Changes(ctx, shard.ChangesRequest{Copy: m.Copy, Since: m.Since, AllLeaves: true})
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	out := make([]byte, 0, 16+8*min(uint64(limit), stream.Seq-min(m.Since, stream.Seq)))
	out = append(out, stream.UUID[:]...)
	var b shard.ChangeBatch
	for more := true; more && limit > 0; {
		if more, err = stream.Next(&b); err != nil {
			return nil, err
		}
		rows := b.Rows[:min(limit, len(b.Rows))]
		for i := range rows {
			out = binary.LittleEndian.AppendUint64(out, m.Seed.number(rows[i].ID, rows[i].Leaves))
		}
		limit -= len(rows)
	}
	return out, nil
}

// digestSet is the changes that the target has among its own. The zero
// value has none.
type digestSet struct {
	seed seed
	have map[uint64]struct{}
}

// newDigestSet reads an answer to opDigest of that copy.
func newDigestSet(s seed, uuid [16]byte, answer []byte) (digestSet, error) {
	if len(answer) < len(uuid) || (len(answer)-len(uuid))%8 != 0 || [16]byte(answer) != uuid {
		return digestSet{}, fault.New(fault.Internal, "digest of another copy, or none")
	}
	answer = answer[len(uuid):]
	v := digestSet{seed: s, have: make(map[uint64]struct{}, len(answer)/8)}
	for ; len(answer) > 0; answer = answer[8:] {
		v.have[binary.LittleEndian.Uint64(answer)] = struct{}{}
	}
	return v, nil
}

// has reports whether the target is known to have a change.
func (v *digestSet) has(c *shard.Change) bool {
	if len(v.have) == 0 {
		return false
	}
	_, ok := v.have[v.seed.number(c.ID, c.Leaves)]
	return ok
}
