package format

import (
	"encoding/binary"

	"divan/storage/doc"
)

// Purge is one entry of the purge log.
type Purge struct {
	Seq  uint64   // purge sequence, not an update sequence
	UUID [16]byte // names the request, so that a repeated one is known
	ID   string
	Revs []doc.Rev
	// Paths are the known paths of the revisions that were removed: each with
	// its ancestors, as far as some copy knew them. A later entry of the same
	// UUID has all that an earlier one has.
	Paths []doc.Path
}

// purgePaths in the version byte of a purge tells that paths follow.
const purgePaths = 0x01

// AppendPurge writes an entry of the purge log: version and flags, uuid, id, the
// revisions, the paths when there are any.
func AppendPurge(dst []byte, p *Purge) []byte {
	head := byte(valueVersion)
	if len(p.Paths) > 0 {
		head |= purgePaths
	}
	dst = append(dst, head)
	dst = append(dst, p.UUID[:]...)
	dst = binary.AppendUvarint(dst, uint64(len(p.ID)))
	dst = append(dst, p.ID...)
	dst = binary.AppendUvarint(dst, uint64(len(p.Revs)))
	for _, rev := range p.Revs {
		dst = appendRev(dst, rev)
	}
	if len(p.Paths) == 0 {
		return dst
	}
	dst = binary.AppendUvarint(dst, uint64(len(p.Paths)))
	for _, path := range p.Paths {
		dst = binary.AppendUvarint(dst, path.Start)
		dst = binary.AppendUvarint(dst, uint64(len(path.IDs)))
		for _, id := range path.IDs {
			dst = binary.AppendUvarint(dst, uint64(len(id)))
			dst = append(dst, id...)
		}
	}
	return dst
}

// DecodePurge reads what AppendPurge wrote. Nothing aliases b.
func DecodePurge(seq uint64, b []byte) (Purge, error) {
	r := cursor{b: b}
	p := Purge{Seq: seq}
	head := r.byte()
	copy(p.UUID[:], r.take(uint64(len(p.UUID))))
	p.ID = string(r.take(r.uvarint()))
	n := r.uvarint()
	if r.bad || head&^purgePaths != valueVersion || n > uint64(len(r.b)) {
		return Purge{}, Corrupt("purge")
	}
	p.Revs = make([]doc.Rev, 0, n)
	for range n {
		p.Revs = append(p.Revs, r.rev())
	}
	if head&purgePaths != 0 {
		p.Paths = r.paths()
	}
	if r.bad || len(r.b) != 0 {
		return Purge{}, Corrupt("purge")
	}
	return p, nil
}

// paths reads the paths of a purge; at least one, or the value is bad.
func (c *cursor) paths() []doc.Path {
	n := c.uvarint()
	if c.bad || n == 0 || n > uint64(len(c.b)) {
		c.bad = true
		return nil
	}
	paths := make([]doc.Path, n)
	for i := range paths {
		paths[i].Start = c.uvarint()
		count := c.uvarint()
		if c.bad || count > uint64(len(c.b)) {
			c.bad = true
			return nil
		}
		paths[i].IDs = make([]string, count)
		for k := range paths[i].IDs {
			paths[i].IDs[k] = string(c.take(c.uvarint()))
		}
	}
	return paths
}
