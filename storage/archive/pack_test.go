package archive

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"divan/storage/bitflip"
	"divan/storage/fault"
)

// item is an entry with its bytes.
type item struct {
	Label
	text []byte
}

func drawRange(t *rapid.T) Range {
	a, b := rapid.Uint32().Draw(t, "a"), rapid.Uint32().Draw(t, "b")
	return Range{min(a, b), max(a, b)}
}

func drawUUID(t *rapid.T) (u UUID) {
	copy(u[:], rapid.SliceOfN(rapid.Byte(), len(u), len(u)).Draw(t, "uuid"))
	return u
}

func drawSum(t *rapid.T) (s Sum) {
	copy(s[:], rapid.SliceOfN(rapid.Byte(), len(s), len(s)).Draw(t, "sum"))
	return s
}

func drawItem(t *rapid.T) item {
	l := Label{Kind: Kind(rapid.IntRange(1, 255).Draw(t, "kind")), Database: drawUUID(t), Range: drawRange(t)}
	l.Seq = rapid.Uint64().Draw(t, "seq")
	return item{l, rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "text")}
}

// writePack writes items, in pieces of so many bytes.
func writePack(tb rapid.TB, items []item, piece int) ([]byte, []Entry) {
	tb.Helper()
	var out bytes.Buffer
	p := NewPackWriter(&out)
	var entries []Entry
	for _, it := range items {
		if err := p.Begin(it.Label); err != nil {
			tb.Fatal(err)
		}
		for b := range slices.Chunk(it.text, piece) {
			if _, err := p.Write(b); err != nil {
				tb.Fatal(err)
			}
		}
		e, err := p.End()
		if err != nil {
			tb.Fatal(err)
		}
		entries = append(entries, e)
	}
	if err := p.Close(); err != nil {
		tb.Fatal(err)
	}
	if p.Size() != uint64(out.Len()) {
		tb.Fatalf("size %d of %d", p.Size(), out.Len())
	}
	return out.Bytes(), entries
}

func listPack(pack []byte) (entries []Entry, err error) {
	p, err := OpenPack(bytes.NewReader(pack), int64(len(pack)))
	if err != nil {
		return nil, err
	}
	for e, err := range p.All() {
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	if p.Len() != uint64(len(entries)) {
		return nil, errors.New("another number of entries")
	}
	slices.SortStableFunc(entries, func(a, b Entry) int { return int(a.Offset) - int(b.Offset) })
	return entries, nil
}

func readPack(pack []byte) (items []item, err error) {
	entries, err := listPack(pack)
	for _, e := range entries {
		text, err := io.ReadAll(e.Reader(bytes.NewReader(pack)))
		if err != nil {
			return nil, err
		}
		items = append(items, item{e.Label, text})
	}
	return items, err
}

func sameItems(a, b []item) bool {
	return slices.EqualFunc(a, b, func(a, b item) bool { return a.Label == b.Label && bytes.Equal(a.text, b.text) })
}

func TestPack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items := rapid.SliceOfN(rapid.Custom(drawItem), 0, 30).Draw(t, "items")
		repeat := rapid.SampledFrom([]int{1, 1, 1, 60}).Draw(t, "repeat") // several blocks
		items = slices.Repeat(items, repeat)
		pack, entries := writePack(t, items, rapid.IntRange(1, 50).Draw(t, "piece"))
		listed, err := listPack(pack)
		if err != nil || !reflect.DeepEqual(listed, entries) {
			t.Fatalf("listed %v, %v; written %v", listed, err, entries)
		}
		if read, err := readPack(pack); err != nil || !sameItems(read, items) {
			t.Fatalf("read %v, %v", read, err)
		}
		bad := slices.Clone(pack)
		bad[rapid.IntRange(0, len(bad)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if read, err := readPack(bad); !fault.Is(err, fault.Corruption) {
			t.Fatalf("a flipped bit: %v, %v", read, err)
		}
		if read, err := readPack(pack[:rapid.IntRange(0, len(pack)-1).Draw(t, "cut")]); !fault.Is(err, fault.Corruption) {
			t.Fatalf("cut: %v, %v", read, err)
		}
	})
}

// TestDamagedPack flips each bit and cuts at each byte.
func TestDamagedPack(t *testing.T) {
	l := Label{Kind: KindTable, Range: Range{1, 2}, Seq: 3}
	pack, _ := writePack(t, []item{{l, []byte("first")}, {l, nil}, {l, []byte("third")}}, 3)
	for at := range pack {
		for bit := byte(1); bit > 0; bit <<= 1 {
			pack[at] ^= bit
			if _, err := readPack(pack); !fault.Is(err, fault.Corruption) {
				t.Fatalf("byte %d: %v", at, err)
			}
			pack[at] ^= bit
		}
		if _, err := readPack(pack[:at]); !fault.Is(err, fault.Corruption) {
			t.Fatalf("%d bytes: %v", at, err)
		}
	}
}

// withBlock returns a pack that has nothing but a block of an index.
func withBlock(front, block []byte, entries uint64) []byte {
	pack := append([]byte(packMagic), front...)
	at := len(pack)
	pack = append(pack, block...)
	pack = binary.BigEndian.AppendUint32(pack, bitflip.Sum(block))
	footer := binary.BigEndian.AppendUint64(nil, uint64(at))
	footer = binary.BigEndian.AppendUint32(footer, uint32(len(pack)-at))
	footer = binary.BigEndian.AppendUint64(footer, entries)
	footer = binary.BigEndian.AppendUint32(footer, bitflip.Sum(footer))
	return append(append(pack, footer...), packEnd...)
}

// TestHostilePack: what is sealed by right sums is not believed either.
func TestHostilePack(t *testing.T) {
	huge := binary.AppendUvarint(nil, 1<<63)
	row := appendRow(nil, &Entry{Label: Label{Kind: KindTable}, Extent: Extent{Length: 3}})
	head := func(v ...byte) []byte { return append([]byte{valueVersion}, v...) }
	good := append(head(0, 0, 1), row...)
	if read, err := readPack(withBlock([]byte("abc"), good, 1)); err == nil || len(read) > 0 {
		t.Fatal("the sum of the entry is another one")
	}
	if listed, err := listPack(withBlock([]byte("abc"), good, 1)); err != nil || len(listed) != 1 {
		t.Fatal(listed, err)
	}
	other := func(change func(e *Entry)) []byte {
		e := Entry{Label: Label{Kind: KindTable}, Extent: Extent{Length: 3}}
		change(&e)
		return append(head(0, 0, 1), appendRow(nil, &e)...)
	}
	for name, pack := range map[string][]byte{
		"more entries":      withBlock([]byte("abc"), good, 2),
		"fewer entries":     withBlock([]byte("abc"), good, 0),
		"absurd entries":    withBlock([]byte("abc"), good, 1<<63),
		"a longer front":    withBlock([]byte("abcd"), good, 1),
		"a shorter front":   withBlock([]byte("ab"), good, 1),
		"itself before":     withBlock([]byte("abc"), append(head(11, byte(len(good)+4), 1), row...), 1),
		"too many rows":     withBlock([]byte("abc"), append(head(0, 0, 2), row...), 1),
		"no rows":           withBlock(nil, head(0, 0, 0), 0),
		"absurd rows":       withBlock([]byte("abc"), slices.Concat(head(0, 0), huge, row), 1),
		"absurd offset":     withBlock([]byte("abc"), slices.Concat(head(), huge, []byte{1, 1}, row), 1),
		"absurd length":     withBlock([]byte("abc"), slices.Concat(head(1), huge, []byte{1}, row), 1),
		"bytes behind":      withBlock([]byte("abc"), append(slices.Clone(good), 0), 1),
		"a version":         withBlock([]byte("abc"), append([]byte{0x20, 0, 0, 1}, row...), 1),
		"no kind":           withBlock([]byte("abc"), other(func(e *Entry) { e.Kind = 0 }), 1),
		"a range backwards": withBlock([]byte("abc"), other(func(e *Entry) { e.Range = Range{2, 1} }), 1),
		"a huge entry":      withBlock([]byte("abc"), other(func(e *Entry) { e.Length = 1 << 63 }), 1),
		"a huge block":      withBlock([]byte("abc"), make([]byte, maxBlock), 1),
		"nothing":           nil,
	} {
		if listed, err := listPack(pack); !fault.Is(err, fault.Corruption) {
			t.Errorf("%s: %v, %v", name, listed, err)
		}
	}
	for _, e := range []Extent{{Offset: 0, Length: 1}, {Offset: 1 << 63, Length: 1}, {Offset: 8, Length: 1<<63 - 1}, {Offset: 8, Length: 9}} {
		if _, err := io.ReadAll(e.Reader(bytes.NewReader([]byte("0123456789")))); !fault.Is(err, fault.Corruption) {
			t.Errorf("%v: %v", e, err)
		}
	}
}

// TestPackErrors: an error of the target stays, and one of the disk is no damage.
func TestPackErrors(t *testing.T) {
	full := errors.New("full")
	for after := range 120 {
		p := NewPackWriter(&limited{after, full})
		_ = p.Begin(Label{Kind: KindTable})
		_, _ = p.Write([]byte("some text of an entry"))
		_, _ = p.End()
		if err := p.Close(); !errors.Is(err, full) {
			t.Fatalf("%d bytes: %v", after, err)
		}
	}
	misuse := map[string]func(p *PackWriter){
		"write first": func(p *PackWriter) { _, _ = p.Write([]byte("a")) },
		"end first":   func(p *PackWriter) { _, _ = p.End() },
		"no kind":     func(p *PackWriter) { _ = p.Begin(Label{}); _, _ = p.End() },
		"no end":      func(p *PackWriter) { _ = p.Begin(Label{Kind: KindTable}) },
		"begin twice": func(p *PackWriter) {
			_ = p.Begin(Label{Kind: KindTable})
			_ = p.Begin(Label{Kind: KindTable})
			_, _ = p.End()
		},
	}
	for name, do := range misuse {
		p := NewPackWriter(io.Discard)
		do(p)
		if p.Close() == nil {
			t.Error(name)
		}
	}
	broken := errors.New("broken")
	if _, err := OpenPack(readerAt{iotest.ErrReader(broken)}, 100); !errors.Is(err, broken) || fault.Is(err, fault.Corruption) {
		t.Error(err)
	}
}

type readerAt struct{ io.Reader }

func (r readerAt) ReadAt(b []byte, _ int64) (int, error) { return r.Read(b) }

// limited takes so many bytes.
type limited struct {
	left int
	err  error
}

func (l *limited) Write(b []byte) (int, error) {
	if len(b) > l.left {
		n := l.left
		l.left = 0
		return n, l.err
	}
	l.left -= len(b)
	return len(b), nil
}

func heap() uint64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

// TestPackMemory: neither side holds the index of a pack, which is 15 MB here.
func TestPackMemory(t *testing.T) {
	const entries, bound = 200_000, 1 << 20
	f, err := os.Create(filepath.Join(t.TempDir(), "pack"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	before := heap()
	p := NewPackWriter(f)
	for i := range entries {
		if err := p.Begin(Label{Kind: KindBatches, Database: UUID{1}, Seq: uint64(i)}); err != nil {
			t.Fatal(err)
		}
		if _, err := p.End(); err != nil {
			t.Fatal(err)
		}
	}
	if got := heap(); got > before+bound {
		t.Errorf("writing takes %d bytes", got-before)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	pack, err := OpenPack(f, int64(p.Size()))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range pack.All() {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == entries/2 {
			if got := heap(); got > before+bound {
				t.Errorf("listing takes %d bytes", got-before)
			}
		}
	}
	if n != entries {
		t.Error(n)
	}
}

func FuzzPack(f *testing.F) {
	pack, _ := writePack(f, []item{{Label{Kind: KindFill, Seq: 300}, []byte("fill")}, {Label{Kind: KindTable}, nil}}, 9)
	f.Add(pack)
	f.Add([]byte(nil))
	f.Fuzz(func(_ *testing.T, pack []byte) { _, _ = readPack(pack) })
}

func FuzzBlock(f *testing.F) {
	row := appendRow(nil, &Entry{Label: Label{Kind: KindTable}, Extent: Extent{Length: 3}})
	f.Add([]byte("abc"), append([]byte{valueVersion, 0, 0, 1}, row...), uint64(1))
	f.Fuzz(func(t *testing.T, front, block []byte, entries uint64) {
		pack := withBlock(front, block, entries)
		listed, err := listPack(pack)
		if err != nil {
			return
		}
		for _, e := range listed {
			if e.Offset+e.Length > uint64(len(pack)) {
				t.Fatalf("%v of %d bytes", e, len(pack))
			}
		}
	})
}

func BenchmarkPackWrite(b *testing.B) {
	block := make([]byte, 64<<10)
	b.SetBytes(int64(len(block)))
	p := NewPackWriter(NewMeasure(io.Discard))
	_ = p.Begin(Label{Kind: KindTable})
	for b.Loop() {
		_, _ = p.Write(block)
	}
}
