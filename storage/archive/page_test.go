package archive

import (
	"bytes"
	"math"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"divan/storage/fault"
	"divan/storage/format"
)

func drawTotals(t *rapid.T) format.Counters {
	n := rapid.Uint64()
	return format.Counters{
		Live: n.Draw(t, "live"), Deleted: n.Draw(t, "deleted"), Seq: n.Draw(t, "seq"), PurgeSeq: n.Draw(t, "purge seq"),
		PurgeTrimmed: n.Draw(t, "trimmed"), External: rapid.Int64().Draw(t, "external"), Active: rapid.Int64().Draw(t, "active"),
	}
}

func drawPacks(t *rapid.T) []*Object {
	return rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) *Object {
		return &Object{Name: PackName(drawUUID(t)), Size: rapid.Uint64().Draw(t, "size"), Sum: drawSum(t)}
	}), 1, 3, func(o *Object) Name { return o.Name }).Draw(t, "packs")
}

func drawRefs(t *rapid.T, packs []*Object, kinds ...Kind) []Ref {
	refs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Ref {
		e := Extent{Offset: rapid.Uint64Range(8, 1<<40).Draw(t, "offset"), Length: rapid.Uint64Range(0, 1<<40).Draw(t, "length"), Sum: drawSum(t)}
		return Ref{Pack: rapid.SampledFrom(packs).Draw(t, "pack"), Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Extent: e}
	}), 0, 3).Draw(t, "refs")
	if len(refs) == 0 {
		return nil
	}
	return refs
}

func drawShard(t *rapid.T, r Range, packs []*Object) Shard {
	s := Shard{Range: r, MayLack: rapid.Bool().Draw(t, "may lack"), Copy: drawUUID(t), Totals: drawTotals(t)}
	s.Print = rapid.Uint64().Draw(t, "print")
	for range rapid.IntRange(1, 3).Draw(t, "steps") {
		wide := Range{rapid.Uint32Range(0, r.Begin).Draw(t, "begin"), rapid.Uint32Range(r.End, math.MaxUint32).Draw(t, "end")}
		at := Position{drawUUID(t), rapid.Uint64().Draw(t, "seq"), rapid.Uint64().Draw(t, "purge seq")}
		s.Chain = append(s.Chain, Step{Range: wide, Upto: at, Refs: drawRefs(t, packs, KindTable, KindBatches, KindContents)})
	}
	s.Fill, s.Locals = drawRefs(t, packs, KindFill, KindContents), drawRefs(t, packs, KindLocals)
	return s
}

func drawDatabase(t *rapid.T, packs []*Object) Database {
	db := Database{Name: rapid.String().Draw(t, "name"), Moment: rapid.Uint64().Draw(t, "moment")}
	ends := rapid.SliceOfNDistinct(rapid.Uint32(), 0, 8, rapid.ID).Draw(t, "ends")
	slices.Sort(ends)
	for pair := range slices.Chunk(ends, 2) {
		r := Range{pair[0], pair[len(pair)-1]}
		if rapid.IntRange(0, 3).Draw(t, "missing") == 0 {
			db.Missing = append(db.Missing, r)
		} else {
			db.Shards = append(db.Shards, drawShard(t, r, packs))
		}
	}
	return db
}

// inPart returns the n-th id that belongs to a part.
func inPart(part byte, n int) (id UUID) {
	for i := 0; ; i++ {
		id = UUID{byte(i >> 16), byte(i >> 8), byte(i)}
		if Part(id) == part {
			if n--; n < 0 {
				return id
			}
		}
	}
}

func drawPage(t *rapid.T) *Page {
	packs := drawPacks(t)
	p := &Page{Part: rapid.ByteRange(0, 7).Draw(t, "part")}
	for i := range rapid.IntRange(0, 3).Draw(t, "databases") {
		db := drawDatabase(t, packs)
		db.ID = inPart(p.Part, i)
		p.Databases = append(p.Databases, db)
	}
	return p
}

func TestPage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPage(t)
		name, text, err := p.Encode()
		if err != nil {
			t.Fatal(err)
		}
		read, err := DecodePage(name, text)
		if err != nil || !reflect.DeepEqual(read, p) {
			t.Fatalf("%+v, %v; written %+v", read, err, p)
		}
		again, _, err := read.Encode()
		if err != nil || again != name {
			t.Fatalf("%v, then %v, %v", name, again, err)
		}
		bad := slices.Clone(text)
		bad[rapid.IntRange(0, len(bad)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if _, err := DecodePage(name, bad); !fault.Is(err, fault.Corruption) {
			t.Fatalf("a flipped bit: %v", err)
		}
		cut := text[:rapid.IntRange(0, len(text)-1).Draw(t, "cut")]
		if _, err := DecodePage(name, cut); !fault.Is(err, fault.Corruption) {
			t.Fatalf("cut: %v", err)
		}
		if _, err := decodePage(cut); !fault.Is(err, fault.Corruption) {
			t.Fatalf("cut, with its name: %v", err)
		}
	})
}

// goodPage is a page with a database of two shards.
func goodPage() *Page {
	pack := &Object{Name: PackName(UUID{0xab, 15: 1}), Size: 300, Sum: Sum{1}}
	ref := func(kind Kind) []Ref { return []Ref{{pack, kind, Extent{8, 20, Sum{2}}}} }
	shard := Shard{
		Range: Range{0, 9}, Copy: UUID{7}, Totals: format.Counters{Live: 1, Seq: 2}, Print: 3,
		Chain: []Step{{Range{0, 20}, Position{UUID{7}, 2, 1}, ref(KindTable)}}, Fill: ref(KindFill), Locals: ref(KindLocals),
	}
	other := shard
	other.Range, other.MayLack, other.Fill, other.Locals = Range{15, 19}, true, nil, nil
	db := Database{ID: inPart(5, 0), Name: "db", Moment: 4, Shards: []Shard{shard, other}, Missing: []Range{{10, 14}, {20, math.MaxUint32}}}
	return &Page{Part: 5, Databases: []Database{db}}
}

// TestHostilePage: a page with the right name is not believed either.
func TestHostilePage(t *testing.T) {
	for name, change := range map[string]func(p *Page){
		"another part":      func(p *Page) { p.Part++ },
		"twice":             func(p *Page) { p.Databases = slices.Repeat(p.Databases, 2) },
		"overlapping":       func(p *Page) { p.Databases[0].Shards[1].Range.Begin = 9 },
		"others' range":     func(p *Page) { p.Databases[0].Missing[0].End = 15 },
		"backwards":         func(p *Page) { p.Databases[0].Missing[1] = Range{30, 29} },
		"all of it twice":   func(p *Page) { p.Databases[0].Missing[1] = Range{0, math.MaxUint32} },
		"behind the end":    func(p *Page) { p.Databases[0].Missing = append(p.Databases[0].Missing, Range{0, 0}) },
		"no base":           func(p *Page) { p.Databases[0].Shards[0].Chain = nil },
		"less than covered": func(p *Page) { p.Databases[0].Shards[0].Chain[0].Range = Range{1, 9} },
		"a kind":            func(p *Page) { p.Databases[0].Shards[0].Chain[0].Refs[0].Kind = KindFill },
		"a kind of fill":    func(p *Page) { p.Databases[0].Shards[0].Fill[0].Kind = KindTable },
		"a kind of locals":  func(p *Page) { p.Databases[0].Shards[0].Locals[0].Kind = KindTable },
		"an offset":         func(p *Page) { p.Databases[0].Shards[0].Fill[0].Offset = 1 << 63 },
		"a length":          func(p *Page) { p.Databases[0].Shards[0].Fill[0].Length = math.MaxInt64 },
		"the magic":         func(p *Page) { p.Databases[0].Shards[0].Fill[0].Offset = 7 },
	} {
		p := goodPage()
		if _, _, err := p.Encode(); err != nil {
			t.Fatal(err)
		}
		change(p)
		if _, _, err := p.Encode(); !fault.Is(err, fault.Corruption) {
			t.Errorf("%s: written, %v", name, err)
		}
		e := pageEncoder{packs: map[Name]uint64{}}
		if p, err := decodePage(e.page(p)); !fault.Is(err, fault.Corruption) {
			t.Errorf("%s: read as %+v, %v", name, p, err)
		}
	}
	twice := []byte{valueVersion, 0, 2}
	for size := range 2 {
		twice = append(append(twice, make([]byte, len(UUID{}))...), byte(size))
		twice = append(twice, make([]byte, len(Sum{}))...)
	}
	if p, err := decodePage(append(twice, 0)); !fault.Is(err, fault.Corruption) {
		t.Errorf("a pack of two sizes: %v, %v", p, err)
	}
	p := goodPage()
	p.Databases[0].Shards[1].Chain = slices.Clone(p.Databases[0].Shards[1].Chain)
	p.Databases[0].Shards[1].Chain[0].Refs = []Ref{{&Object{Name: PackName(UUID{0xab, 15: 1})}, KindTable, Extent{Offset: 8}}}
	if _, _, err := p.Encode(); err == nil {
		t.Error("a pack of two sizes")
	}
	p = goodPage()
	p.Databases[0].Name = string(make([]byte, MaxPage))
	if _, _, err := p.Encode(); err == nil {
		t.Error("too large")
	}
}

func FuzzPage(f *testing.F) {
	_, text, err := goodPage().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte{valueVersion, 0, 0, 0})
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := decodePage(text)
		if err != nil {
			if !fault.Is(err, fault.Corruption) {
				t.Fatal(err)
			}
			return
		}
		name, again, err := p.Encode()
		if err != nil {
			t.Fatal(err)
		}
		read, err := DecodePage(name, again)
		if err != nil || !reflect.DeepEqual(read, p) {
			t.Fatalf("%+v reads as %+v, %v", p, read, err)
		}
	})
}

func TestContents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOf(rapid.Custom(func(t *rapid.T) Content {
			return Content{drawSum(t), rapid.Uint64().Draw(t, "size")}
		})).Draw(t, "contents")
		var text []byte
		for _, c := range list {
			text = AppendContent(text, c)
		}
		read := func(text []byte) (read []Content, err error) {
			err = ReadContents(bytes.NewReader(text), func(c Content) error {
				read = append(read, c)
				return nil
			})
			return read, err
		}
		if got, err := read(text); err != nil || !slices.Equal(got, list) {
			t.Fatalf("%v, %v", got, err)
		}
		if cut := rapid.IntRange(0, len(text)).Draw(t, "cut"); cut%contentRow != 0 {
			if got, err := read(text[:cut]); !fault.Is(err, fault.Corruption) {
				t.Fatalf("%v, %v", got, err)
			}
		}
	})
}

func FuzzContents(f *testing.F) {
	f.Add(AppendContent(nil, Content{Sum{1}, 300}))
	f.Fuzz(func(t *testing.T, text []byte) {
		var again []byte
		err := ReadContents(bytes.NewReader(text), func(c Content) error {
			again = AppendContent(again, c)
			return nil
		})
		if (err == nil) != bytes.Equal(text, again) {
			t.Fatalf("%x, %v", again, err)
		}
	})
}
