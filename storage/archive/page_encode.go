package archive

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"

	"divan/storage/format"
)

const flagMayLack = 0x01

// Encode returns the page and its name. The same content has the same name.
func (p *Page) Encode() (Name, []byte, error) {
	if err := p.check(); err != nil {
		return Name{}, nil, err
	}
	e := pageEncoder{packs: map[Name]uint64{}}
	text := e.page(p)
	switch {
	case e.err != nil:
		return Name{}, nil, e.err
	case len(text) > MaxPage:
		return Name{}, nil, errors.New("write a page: it is too large")
	}
	return Name{Class: ClassPage, ID: sha256.Sum256(text)}, text, nil
}

// refs calls fn for all references of a page, in their order.
func (p *Page) refs(fn func(*Ref)) {
	for i := range p.Databases {
		for j := range p.Databases[i].Shards {
			p.Databases[i].Shards[j].refs(fn)
		}
	}
}

// pageEncoder numbers packs in the order in which they are first referred to.
type pageEncoder struct {
	b     []byte
	packs map[Name]uint64
	order []*Object
	err   error
}

func (e *pageEncoder) page(p *Page) []byte {
	p.refs(func(r *Ref) { e.add(r.Pack) })
	e.b = append(e.b, valueVersion, p.Part)
	e.number(uint64(len(e.order)))
	for _, o := range e.order {
		e.b = append(e.b, o.Name.ID[:len(UUID{})]...)
		e.number(o.Size)
		e.b = append(e.b, o.Sum[:]...)
	}
	e.number(uint64(len(p.Databases)))
	for i := range p.Databases {
		e.database(&p.Databases[i])
	}
	return e.b
}

func (e *pageEncoder) add(pack *Object) {
	n, ok := e.packs[pack.Name]
	switch {
	case !ok:
		e.packs[pack.Name] = uint64(len(e.order))
		e.order = append(e.order, pack)
	case *e.order[n] != *pack:
		e.err = errors.New("write a page: a pack has two sizes or sums")
	}
}

func (e *pageEncoder) number(n uint64) { e.b = binary.AppendUvarint(e.b, n) }

func (e *pageEncoder) database(db *Database) {
	e.b = append(e.b, db.ID[:]...)
	e.b = appendBytes(e.b, db.Name)
	e.number(db.Moment)
	e.number(uint64(len(db.Shards)))
	for i := range db.Shards {
		e.shard(&db.Shards[i])
	}
	e.number(uint64(len(db.Missing)))
	for _, r := range db.Missing {
		e.b = appendRange(e.b, r)
	}
}

func (e *pageEncoder) shard(s *Shard) {
	e.b = appendRange(e.b, s.Range)
	flags := byte(0)
	if s.MayLack {
		flags = flagMayLack
	}
	e.b = append(e.b, flags)
	e.b = append(e.b, s.Copy[:]...)
	e.b = appendBytes(e.b, format.AppendCounters(nil, 0, &s.Totals))
	e.b = binary.BigEndian.AppendUint64(e.b, s.Print)
	e.number(uint64(len(s.Chain)))
	for i := range s.Chain {
		step := &s.Chain[i]
		e.b = appendRange(e.b, step.Range)
		e.b = append(e.b, step.Upto.Copy[:]...)
		e.number(step.Upto.Seq)
		e.number(step.Upto.PurgeSeq)
		e.refs(step.Refs)
	}
	e.refs(s.Fill)
	e.refs(s.Locals)
}

func (e *pageEncoder) refs(refs []Ref) {
	e.number(uint64(len(refs)))
	eachRef(refs, func(r *Ref) {
		e.b = append(e.b, byte(r.Kind))
		e.number(e.packs[r.Pack.Name])
		e.number(r.Offset)
		e.number(r.Length)
		e.b = append(e.b, r.Sum[:]...)
	})
}
