package find

import (
	"bytes"

	"divan/shard"
)

// docs reads the documents by id.
type docs struct {
	*Stream
	scan  *shard.DocScan
	load  func() (*shard.Doc, error)
	at    int  // the range that is read
	begun bool // the scan stands at a document of it
}

func (s *Stream) openDocs(shards *shard.Local) (source, error) {
	scan, err := shards.ScanDocs(s.ctx, s.req.Copy, s.req.Desc)
	if err != nil {
		return nil, err
	}
	s.Seq = scan.Seq
	d := &docs{Stream: s, scan: scan}
	d.load = func() (*shard.Doc, error) { return scan.Doc(s.req.Conflicts) }
	return d, nil
}

func (d *docs) close() { d.scan.Close() }

// fill implements source.
func (d *docs) fill(b *Batch) (more bool, err error) {
	for ok := d.stand(); ok; ok = d.step() {
		if b.full() {
			return true, nil
		}
		if b.Figures.Keys%checkEvery == 0 && d.ctx.Err() != nil {
			return false, d.ctx.Err()
		}
		b.lastID, b.Moved = append(b.lastID[:0], d.scan.ID()...), true
		if enough, err := d.look(b); enough || err != nil {
			return false, err
		}
	}
	return false, d.scan.Err()
}

// designPrefix begins the ids of design documents. They are in no answer, but CouchDB
// counts them as examined.
const designPrefix = "_design/"

// look adds the document at hand if it matches.
func (d *docs) look(b *Batch) (enough bool, err error) {
	b.Figures.Keys++
	if bytes.HasPrefix(d.scan.ID(), []byte(designPrefix)) {
		if !d.req.Plain {
			b.Figures.Docs++
		}
		return false, nil
	}
	if d.req.Plain {
		b.add(len(b.bytes))
		return d.matched(b), nil
	}
	b.Figures.Docs++
	body, err := d.scan.Body()
	if err != nil {
		return false, err
	}
	from := len(b.bytes)
	out, ok, err := d.match.append(b.bytes, body, d.load)
	if b.bytes = out; !ok || err != nil {
		return false, err
	}
	if !d.match.count {
		b.add(from)
	}
	return d.matched(b), nil
}

// stand moves to the first document, or stays where the last batch ended.
func (d *docs) stand() bool {
	if d.begun {
		return d.at < len(d.req.Ranges)
	}
	d.begun = true
	var ok bool
	after, begin := d.req.After, d.req.Ranges[0].Lo
	if d.req.Desc {
		begin = d.req.Ranges[0].Hi
	}
	switch {
	case after != nil:
		ok = d.scan.Seek(after.ID)
		if ok && string(d.scan.ID()) == after.ID {
			ok = d.scan.Next()
		}
	case begin != nil:
		ok = d.scan.Seek(string(begin))
	default:
		ok = d.scan.First()
	}
	return d.settle(ok)
}

// step moves to the next document.
func (d *docs) step() bool { return d.settle(d.scan.Next()) }

// settle moves on as long as the document at hand is outside of the ranges.
func (d *docs) settle(ok bool) bool {
	ranges := d.req.Ranges
	for ok {
		id := d.scan.ID()
		for d.at < len(ranges) && d.behind(id, &ranges[d.at]) {
			d.at++
		}
		if d.at == len(ranges) {
			return false
		}
		to, before := d.before(id, &ranges[d.at])
		if !before {
			return true
		}
		ok = d.scan.Seek(string(to))
	}
	d.at = len(ranges)
	return false
}

// behind reports whether an id lies behind a range in the direction.
func (d *docs) behind(id []byte, r *Range) bool {
	if d.req.Desc {
		return bytes.Compare(id, r.Lo) < 0
	}
	return r.Hi != nil && bytes.Compare(id, r.Hi) > 0
}

// before reports whether an id lies before a range in the direction, and returns
// where that begins.
func (d *docs) before(id []byte, r *Range) (begin []byte, is bool) {
	if d.req.Desc {
		return r.Hi, r.Hi != nil && bytes.Compare(id, r.Hi) > 0
	}
	return r.Lo, bytes.Compare(id, r.Lo) < 0
}
