package format

import "encoding/binary"

// Counters are the totals of a store as of one batch.
type Counters struct {
	Live, Deleted    uint64 // documents by the state of their winner
	Seq              uint64 // last update sequence
	PurgeSeq         uint64 // last purge sequence
	PurgeTrimmed     uint64 // purge entries up to this sequence are gone
	External, Active int64  // bytes, sums over all documents as their records have them
}

// Plus returns the counters after a batch that adds d. Sequences only grow.
func (c Counters) Plus(d *Counters) Counters {
	return Counters{
		Live: c.Live + d.Live, Deleted: c.Deleted + d.Deleted, // may wrap around and back
		Seq:          max(c.Seq, d.Seq),
		PurgeSeq:     max(c.PurgeSeq, d.PurgeSeq),
		PurgeTrimmed: max(c.PurgeTrimmed, d.PurgeTrimmed),
		External:     c.External + d.External, Active: c.Active + d.Active,
	}
}

// AppendCounters writes the meta entry: version, batch number, the fields in
// order.
func AppendCounters(dst []byte, batch uint64, c *Counters) []byte {
	dst = append(dst, valueVersion)
	dst = binary.AppendUvarint(dst, batch)
	for _, v := range [...]uint64{c.Live, c.Deleted, c.Seq, c.PurgeSeq, c.PurgeTrimmed} {
		dst = binary.AppendUvarint(dst, v)
	}
	dst = binary.AppendVarint(dst, c.External)
	return binary.AppendVarint(dst, c.Active)
}

// DecodeCounters reads what AppendCounters wrote.
func DecodeCounters(b []byte) (batch uint64, c Counters, err error) {
	r := cursor{b: b}
	version := r.byte()
	batch = r.uvarint()
	for _, p := range [...]*uint64{&c.Live, &c.Deleted, &c.Seq, &c.PurgeSeq, &c.PurgeTrimmed} {
		*p = r.uvarint()
	}
	c.External, c.Active = r.varint(), r.varint()
	if r.bad || version != valueVersion || len(r.b) != 0 {
		return 0, Counters{}, Corrupt("counters")
	}
	return batch, c, nil
}
