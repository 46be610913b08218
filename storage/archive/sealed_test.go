package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"divan/storage/fault"
)

func drawRunID(t *rapid.T) RunID {
	id := RunID{Seconds: rapid.Int64Range(0, 253402300799).Draw(t, "seconds")}
	copy(id.Nonce[:], rapid.SliceOfN(rapid.Byte(), len(id.Nonce), len(id.Nonce)).Draw(t, "nonce"))
	return id
}

func drawKey(t *rapid.T) *Key {
	k := Key(drawSum(t))
	return &k
}

func drawHeader(t *rapid.T) *Header {
	n := rapid.Uint64()
	h := &Header{
		Format: Format, ID: drawRunID(t), Index: n.Draw(t, "index"), Term: n.Draw(t, "term"),
		Aligned: rapid.Bool().Draw(t, "aligned"), Moments: n.Draw(t, "moments"), Partial: n.Draw(t, "partial"), MayLack: n.Draw(t, "may lack"),
		Counts: Counts{n.Draw(t, "databases"), n.Draw(t, "shards"), n.Draw(t, "live"), n.Draw(t, "deleted"), n.Draw(t, "new"), n.Draw(t, "all")},
	}
	if rapid.Bool().Draw(t, "child") {
		parent := drawRunID(t)
		h.Parent = &parent
		h.LeftOut = []string{rapid.StringOf(rapid.RuneFrom([]rune("a<\"\u2028é"))).Draw(t, "left out")}
	}
	if refs := drawRefs(t, drawPacks(t), KindMetadata); refs != nil {
		h.Metadata = &refs[0]
	}
	for _, part := range rapid.SliceOfNDistinct(rapid.Byte(), 1, 4, rapid.ID).Draw(t, "parts") {
		page := Object{Name: Name{ClassPage, drawSum(t)}, Size: n.Draw(t, "size"), Sum: drawSum(t)}
		h.Pages = append(h.Pages, PageRef{part, page})
	}
	slices.SortFunc(h.Pages, func(a, b PageRef) int { return int(a.Part) - int(b.Part) })
	return h
}

// checkDamage holds that no bit of an object can change, and none can be cut off.
func checkDamage(t *rapid.T, text []byte, decode func(text []byte) error) {
	bad := slices.Clone(text)
	bad[rapid.IntRange(0, len(bad)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
	if err := decode(bad); !fault.Is(err, fault.Corruption) {
		t.Fatalf("a flipped bit: %v", err)
	}
	if err := decode(text[:rapid.IntRange(0, len(text)-1).Draw(t, "cut")]); !fault.Is(err, fault.Corruption) {
		t.Fatalf("cut: %v", err)
	}
	if !json.Valid(text) {
		t.Fatalf("no JSON: %s", text)
	}
}

func TestHeader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, key := drawHeader(t), drawKey(t)
		text, err := h.Encode(key)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range []*Key{key, nil} {
			if read, err := DecodeHeader(h.ID, text, k); err != nil || !reflect.DeepEqual(read, h) {
				t.Fatalf("%+v, %v; written %+v", read, err, h)
			}
		}
		checkDamage(t, text, func(text []byte) error { _, err := DecodeHeader(h.ID, text, key); return err })
		other := *key
		other[0]++
		if _, err := DecodeHeader(h.ID, text, &other); !fault.Is(err, fault.Corruption) {
			t.Fatalf("another key: %v", err)
		}
		// Without the key only the HMAC is not believed.
		bad := slices.Clone(text)
		bad[rapid.IntRange(0, len(bad)-1).Draw(t, "at")] ^= 1
		if read, err := DecodeHeader(h.ID, bad, nil); err == nil && !reflect.DeepEqual(read, h) {
			t.Fatalf("%+v; written %+v", read, h)
		}
		renamed := h.ID
		renamed.Seconds ^= 1
		if _, err := DecodeHeader(renamed, text, key); !fault.Is(err, fault.Corruption) {
			t.Fatalf("another name: %v", err)
		}
	})
}

func TestMark(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, key := &Mark{Format: Format, ID: drawRunID(t)}, drawKey(t)
		for range rapid.IntRange(0, 3).Draw(t, "objects") {
			class := rapid.SampledFrom([]Class{ClassContent, ClassPage}).Draw(t, "class")
			m.Objects = append(m.Objects, Name{class, drawSum(t)}, PackName(drawUUID(t)))
			m.Backups = append(m.Backups, drawRunID(t))
		}
		text, err := m.Encode(key)
		if err != nil {
			t.Fatal(err)
		}
		if read, err := DecodeMark(m.ID, text, key); err != nil || !reflect.DeepEqual(read, m) {
			t.Fatalf("%+v, %v; written %+v", read, err, m)
		}
		checkDamage(t, text, func(text []byte) error { _, err := DecodeMark(m.ID, text, key); return err })
		if _, err := DecodeMark(RunID{Seconds: m.ID.Seconds ^ 1}, text, key); !fault.Is(err, fault.Corruption) {
			t.Fatalf("another name: %v", err)
		}
	})
}

func TestMarkLimits(t *testing.T) {
	key := &Key{1}
	m := &Mark{ID: RunID{Seconds: 1e9}, Objects: make([]Name, MaxMarked), Backups: make([]RunID, MaxMarked)}
	for i := range m.Objects {
		m.Objects[i].Class = ClassContent
	}
	if _, err := m.Encode(key); err != nil {
		t.Error(err)
	}
	m.Objects = append(m.Objects, Name{})
	if _, err := m.Encode(key); err == nil {
		t.Error("too many objects")
	}
	if made := m.ID.Time(); m.Due(made.Add(MarkAge-1)) || !m.Due(made.Add(MarkAge)) {
		t.Error("a mark is due after a day")
	}
}

func TestRepository(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &Repository{Format: Format, ID: drawUUID(t), Made: drawRunID(t).Time(), Cluster: drawUUID(t)}
		if rapid.Bool().Draw(t, "plain") {
			r.Key = drawKey(t)
		} else {
			r.Keys = []WrappedKey{{rapid.String().Draw(t, "recipient"), rapid.SliceOfN(rapid.Byte(), 1, 9).Draw(t, "key")}}
		}
		text, err := r.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if read, err := DecodeRepository(text); err != nil || !reflect.DeepEqual(read, r) {
			t.Fatalf("%+v, %v; written %+v", read, err, r)
		}
		checkDamage(t, text, func(text []byte) error { _, err := DecodeRepository(text); return err })
	})
	for _, r := range []*Repository{{}, {Key: &Key{}, Keys: []WrappedKey{{}}}} {
		if _, err := r.Encode(); !fault.Is(err, fault.Corruption) {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

// TestSealed: what is sealed by right sums is not believed either.
func TestSealed(t *testing.T) {
	id, key := RunID{Seconds: 1e9}, &Key{1}
	front := `{"format":1,"id":"` + id.String() + `"`
	text := func(body string) []byte { return sealText(headerSealer(key), []byte(body)) }
	if _, err := DecodeHeader(id, text(front), key); err != nil {
		t.Fatal(err)
	}
	page := `{"part":1,"name":"pages/` + strings.Repeat("ab", 32) + `","size":1,"sha256":"` + strings.Repeat("ab", 32) + `"}`
	for _, body := range []string{
		``, `{`, `[1`, front + `,`, front + `}`, `{"format":0`, `{"format":1`, front + `,"raft_index":-1`,
		front + `,"pages":[` + page + `,` + page + `]`, front + `,"pages":[{"part":1}]`, front + `,"pages":[` + strings.ToUpper(page) + `]`,
		front + `,"pages":[{"part":256,"name":"pages/` + strings.Repeat("ab", 32) + `"}]`,
		front + `,"metadata":{}`, front + `,"metadata":{"kind":5,"offset":9,"pack":{"name":"pages/` + strings.Repeat("ab", 32) + `"}}`,
		front + `,"metadata":{"kind":4,"offset":9,"pack":{"name":"packs/ab/` + strings.Repeat("ab", 16) + `"}}`,
	} {
		if h, err := DecodeHeader(id, text(body), key); !fault.Is(err, fault.Corruption) {
			t.Errorf("%s: %+v, %v", body, h, err)
		}
	}
	if _, err := DecodeHeader(id, text(`{"format":2`), key); !fault.Is(err, fault.Misconfigured) {
		t.Errorf("a newer format: %v", err)
	}
	if _, err := DecodeHeader(id, text(front+strings.Repeat(" ", MaxHeader)), key); !fault.Is(err, fault.Corruption) {
		t.Errorf("too long: %v", err)
	}
	if _, err := (&Header{ID: id, LeftOut: []string{strings.Repeat("a", MaxHeader)}}).Encode(key); err == nil {
		t.Error("written, too long")
	}
	// One purpose's HMAC is not another's.
	mark, err := (&Mark{ID: id}).Encode(key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := DecodeHeader(id, mark, key); !fault.Is(err, fault.Corruption) {
		t.Errorf("a mark as a header: %v", err)
	}
	// The HMAC of a text that a client chose is in the name of a content.
	good := text(front)
	at := bytes.LastIndex(good, []byte(macMember))
	name := NewContentName(key)
	_, _ = name.Write(good[:at])
	sum := name.Name().ID
	forged := slices.Concat(good[:at], []byte(macMember), hex.AppendEncode(nil, sum[:]), []byte(`"`+sealedEnd))
	if _, err := DecodeHeader(id, forged, key); !fault.Is(err, fault.Corruption) {
		t.Errorf("a content as a header: %v", err)
	}
}

func fuzzJSON(f *testing.F, s *sealer, seed any, decode func(text []byte) error) {
	f.Helper()
	text, err := s.seal(seed)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	at := bytes.LastIndex(text, []byte(sumMember))
	f.Add(text[:at])
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, text := range [][]byte{text, sealText(s, text)} {
			if err := decode(text); err != nil && !fault.Is(err, fault.Corruption) && !fault.Is(err, fault.Misconfigured) {
				t.Fatal(err)
			}
		}
	})
}

func FuzzHeader(f *testing.F) {
	key := &Key{1}
	h := &Header{Format: Format, ID: RunID{Seconds: 1e9}, Pages: []PageRef{{1, Object{Name: Name{Class: ClassPage}}}}}
	h.Metadata = &goodPage().Databases[0].Shards[0].Fill[0]
	h.Parent = &h.ID
	fuzzJSON(f, headerSealer(key), h, func(text []byte) error {
		h, err := DecodeHeader(h.ID, text, key)
		if err == nil {
			_, err = h.Encode(key)
		}
		return err
	})
}

func FuzzMark(f *testing.F) {
	key := &Key{1}
	m := &Mark{Format: Format, ID: RunID{Seconds: 1e9}, Objects: []Name{{Class: ClassPage}, {Class: ClassPack}}}
	fuzzJSON(f, markSealer(key), m, func(text []byte) error { _, err := DecodeMark(m.ID, text, key); return err })
}

func FuzzRepository(f *testing.F) {
	s := &sealer{max: MaxRepository}
	r := &Repository{Format: Format, Made: time.Unix(1e9, 0), Key: &Key{1}}
	fuzzJSON(f, s, r, func(text []byte) error { _, err := DecodeRepository(text); return err })
}

// sealText seals what need not be JSON.
func sealText(s *sealer, text []byte) []byte {
	sum := sha256.Sum256(text)
	text = slices.Concat(text, []byte(sumMember), hex.AppendEncode(nil, sum[:]), []byte{'"'})
	if s.mac {
		h := s.key.mac(s.purpose)
		_, _ = h.Write(text)
		text = slices.Concat(text, []byte(macMember), hex.AppendEncode(nil, h.Sum(nil)), []byte{'"'})
	}
	return append(text, sealedEnd...)
}
