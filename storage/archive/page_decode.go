package archive

import (
	"crypto/sha256"

	"divan/storage/format"
)

// The fewest bytes that items of a page have.
const (
	leastPack     = len(UUID{}) + 1 + len(Sum{})
	leastDatabase = len(UUID{}) + 4
	leastShard    = 4 + 4 + 1 + len(UUID{}) + 1 + 8 + 3
	leastRange    = 4 + 4
	leastStep     = 4 + 4 + len(UUID{}) + 3
	leastRef      = 4 + len(Sum{})
)

// DecodePage reads the page of that name.
func DecodePage(name Name, text []byte) (*Page, error) {
	if len(text) > MaxPage || name != (Name{Class: ClassPage, ID: sha256.Sum256(text)}) {
		return nil, damaged("a page is not what its name says")
	}
	return decodePage(text)
}

func decodePage(text []byte) (*Page, error) {
	d := pageDecoder{cursor: cursor{b: text}}
	version := d.byte()
	p := &Page{Part: d.byte()}
	d.packs = items[*Object](&d.cursor, leastPack)
	known := make(map[Name]struct{}, len(d.packs))
	for i := range d.packs {
		d.packs[i] = &Object{Name: PackName(d.uuid()), Size: d.uvarint(), Sum: d.sum()}
		known[d.packs[i].Name] = struct{}{}
	}
	d.bad = d.bad || len(known) < len(d.packs)
	p.Databases = items[Database](&d.cursor, leastDatabase)
	for i := range p.Databases {
		d.database(&p.Databases[i])
	}
	if d.bad || version != valueVersion || len(d.b) > 0 {
		return nil, damaged("a page does not decode")
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	return p, nil
}

type pageDecoder struct {
	cursor
	packs []*Object
}

func (d *pageDecoder) database(db *Database) {
	db.ID = d.uuid()
	db.Name = string(d.take(d.uvarint()))
	db.Moment = d.uvarint()
	db.Shards = items[Shard](&d.cursor, leastShard)
	for i := range db.Shards {
		d.shard(&db.Shards[i])
	}
	db.Missing = items[Range](&d.cursor, leastRange)
	for i := range db.Missing {
		db.Missing[i] = d.rng()
	}
}

func (d *pageDecoder) shard(s *Shard) {
	s.Range = d.rng()
	flags := d.byte()
	s.MayLack, d.bad = flags == flagMayLack, d.bad || flags > flagMayLack
	s.Copy = d.uuid()
	_, totals, err := format.DecodeCounters(d.take(d.uvarint()))
	s.Totals, d.bad = totals, d.bad || err != nil
	s.Print = d.be64()
	s.Chain = items[Step](&d.cursor, leastStep)
	for i := range s.Chain {
		step := &s.Chain[i]
		step.Range = d.rng()
		step.Upto = Position{Copy: d.uuid(), Seq: d.uvarint(), PurgeSeq: d.uvarint()}
		step.Refs = d.refs()
	}
	s.Fill, s.Locals = d.refs(), d.refs()
}

func (d *pageDecoder) refs() []Ref {
	refs := items[Ref](&d.cursor, leastRef)
	for i := range refs {
		kind, pack := Kind(d.byte()), d.uvarint()
		if pack >= uint64(len(d.packs)) {
			d.b, d.bad = nil, true
			return nil
		}
		refs[i] = Ref{Pack: d.packs[pack], Kind: kind, Extent: Extent{Offset: d.uvarint(), Length: d.uvarint(), Sum: d.sum()}}
	}
	return refs
}
