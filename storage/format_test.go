package storage

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"divan/storage/doc"
	"divan/storage/format"
	"divan/storage/identity"
	"divan/storage/keyspace"
)

// blockBytes is a doc.BlockWriter that keeps what it is given.
type blockBytes map[uint64][]byte

func (b blockBytes) PutBlock(number uint64, block []byte) { b[number] = block }
func (b blockBytes) DeleteBlock(number uint64)            { delete(b, number) }

// TestFormat holds the bytes of FORMAT.md. A change here is a new format.
func TestFormat(t *testing.T) {
	key := keyspace.ContentKey{0xc0, 15: 0x0c}
	rev := doc.Rev{Pos: 2, ID: strings.Repeat("\xab", 16)}
	text := doc.Rev{Pos: 300, ID: "local"}
	rec := &doc.Record{ID: "doc", Seq: 7, Winner: rev}
	rec.Tree.Merge(doc.Path{Start: 2, IDs: []string{rev.ID, "a"}}, doc.Node{Rev: rev, Stored: true})
	rec.Tree.Merge(doc.Path{Start: 300, IDs: []string{text.ID}}, doc.Node{Rev: text, Deleted: true, Stored: true})
	id := identity.New("shards/x", 12, true)
	id.UUID = [16]byte{0: 1, 15: 0xff}
	small := id
	small.Small = true
	line := doc.Path{Start: 47, IDs: strings.Split(strings.Repeat("a", 47), "")}
	long := &doc.Record{ID: "doc", Seq: 7, Winner: line.Rev(), External: 9, Active: 10}
	long.Tree.Merge(line, doc.Node{Rev: line.Rev(), Stored: true, External: 9, Active: 10})
	blocks := blockBytes{}
	long.Settle(nil, blocks)
	for _, c := range []struct {
		name string
		got  []byte
		want string
	}{
		{"document", keyspace.AppendDoc(nil, "a\x00b"), "64 00 610062"},
		{"head", keyspace.AppendHead(nil, "a\x00b"), "68 00 610062"},
		{"local", keyspace.AppendLocal(nil, "_local/x"), "6c 00 5f6c6f63616c2f78"},
		{"sequence", keyspace.AppendSeq(nil, 0x0102), "73 00 0000000000000102"},
		{"purge", keyspace.AppendPurge(nil, 3), "70 00 0000000000000003"},
		{"counters key", keyspace.AppendMeta(nil, keyspace.MetaCounters), "6d 00 636f756e74657273"},
		{"body", keyspace.AppendBody(nil, "a\x00b", rev), "62 00 6100ff62 0001 0000000000000002 abababababababababababababababab"},
		{"chunk", keyspace.AppendChunk(nil, "d", key, 5), "61 00 64 0001 c000000000000000000000000000000c 00000005"},
		{"upload", keyspace.Upload("d", key), "75 00 64 0001 c000000000000000000000000000000c"},
		{"low block", keyspace.AppendAgg(nil, keyspace.AggDocs, keyspace.LevelLow, "id"), "67 00 64 01 6964"},
		{"top block", keyspace.AppendAgg(nil, keyspace.AggSeqs, keyspace.LevelTop, "\x00\x00\x00\x00\x00\x01\x00\x00"), "67 00 73 02 0000000000010000"},
		{
			"counters", format.AppendCounters(nil, 300, &Counters{Live: 1, Deleted: 2, Seq: 3, PurgeSeq: 4, PurgeTrimmed: 5, External: -6, Active: 700}),
			"10 ac02 01 02 03 04 05 0b f80a",
		},
		{"origins key", keyspace.AppendMeta(nil, keyspace.MetaOrigins), "6d 00 6f726967696e73"},
		{"since key", keyspace.AppendMeta(nil, keyspace.MetaSince), "6d 00 73696e6365"},
		{"since", format.AppendPosition(nil, format.Position{Seq: 300, PurgeSeq: 1}), "10 ac02 01"},
		{"origins", format.AppendOrigins(nil, []Origin{{UUID: [16]byte{1}, Upto: 300}}), "10 01 01000000000000000000000000000000 ac02"},
		{
			"change", format.AppendChange(nil, rec),
			"10 03646f63 02 00 02 10 abababababababababababababababab 01 ac02 05 6c6f63616c",
		},
		{
			"purge value", format.AppendPurge(nil, &Purge{Seq: 9, UUID: [16]byte{1}, ID: "doc", Revs: []doc.Rev{rev}}),
			"10 01000000000000000000000000000000 03646f63 01 02 10 abababababababababababababababab",
		},
		{
			"purge value with paths", format.AppendPurge(nil, &Purge{
				Seq: 9, UUID: [16]byte{1}, ID: "doc", Revs: []doc.Rev{rev}, Paths: []doc.Path{{Start: 2, IDs: []string{rev.ID, "x"}}},
			}),
			"11 01000000000000000000000000000000 03646f63 01 02 10 abababababababababababababababab" +
				" 01 02 02 10 abababababababababababababababab 01 78",
		},
		{"sums", format.AppendSums(nil, Sums{Live: 1, Deleted: -1, Active: 64}), "02 01 00 8001"},
		{"sums of documents only", format.AppendSums(nil, Sums{Live: 3}), "06"},
		{"no sums", format.AppendSums(nil, Sums{}), ""},
		{"block key", keyspace.AppendBlock(nil, "a\x00b", 3), "72 00 6100ff62 0001 0000000000000003"},
		// 16 of 47 revisions, of which the newest is stored, from position 32 on; the oldest of all has position 1.
		{"record with blocks", long.AppendBinary(nil), "1c 07 2f 01 61 09 0a 01 10 10" + strings.Repeat("61", 16) + "14 20 01" + strings.Repeat("10 01", 14) + "12 01 09 0a"},
		// Positions 1 to 31.
		{"block", blocks[0], "10 1f 1f" + strings.Repeat("61", 31) + "14 01 01" + strings.Repeat("10 01", 30)},
		{"store file", []byte(id.FileName()), hex.EncodeToString([]byte("STORE-1-010000000000000000000000000000ff-53ffbd6bed26e7ef72148264944e8b50-12-partitioned"))},
		{"file of a small store", []byte(small.FileName()), hex.EncodeToString([]byte("STORE-1-010000000000000000000000000000ff-53ffbd6bed26e7ef72148264944e8b50-12-small-partitioned"))},
	} {
		if got, want := hex.EncodeToString(c.got), strings.ReplaceAll(c.want, " ", ""); got != want {
			t.Errorf("%s is\n%s, want\n%s", c.name, got, want)
		}
	}
	for id, want := range map[string]uint64{"": 0x8570e254, "a": 0x82b19d9c, "doc-00000001": 0xcbdacbd6} {
		if got := keyspace.BorderHash(id); got != want {
			t.Errorf("keyspace.BorderHash(%q) = %#x, want %#x", id, got, want)
		}
	}
	for _, id := range []identity.Identity{id, small} {
		if got, err := identity.Find([]string{"x", id.FileName()}); err != nil || got != id {
			t.Errorf("identity.Find = %+v, %v", got, err)
		}
	}
}

// TestKeysKeepOrder: keys order as what they are made of, and come apart again.
func TestKeysKeepOrder(t *testing.T) {
	ids := rapid.StringOf(rapid.RuneFrom([]rune("ab\x00\x01\xff")))
	rapid.Check(t, func(t *rapid.T) {
		a, b := ids.Draw(t, "a"), ids.Draw(t, "b")
		key := keyspace.ContentKey(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "key"))
		ra := doc.Rev{Pos: rapid.Uint64().Draw(t, "pos"), ID: ids.Draw(t, "rev")}
		ka, kb := keyspace.AppendBody(nil, a, ra), keyspace.AppendBody(nil, b, doc.Rev{})
		if a != b && (bytes.Compare(ka, kb) < 0) != (a < b) {
			t.Fatalf("%q and %q order as %x and %x", a, b, ka, kb)
		}
		if id, rev, ok := keyspace.CutBody(ka); !ok || string(id) != a || rev != ra {
			t.Fatalf("keyspace.CutBody(%x) = %q, %v, %v", ka, id, rev, ok)
		}
		if id, k, n, ok := keyspace.CutChunk(keyspace.AppendChunk(nil, a, key, 7)); !ok || string(id) != a || k != key || n != 7 {
			t.Fatalf("keyspace.CutChunk: %q, %x, %d, %v", id, k, n, ok)
		}
		if id, n, ok := keyspace.CutBlock(keyspace.AppendBlock(nil, a, ra.Pos)); !ok || string(id) != a || n != ra.Pos {
			t.Fatalf("keyspace.CutBlock: %q, %d, %v", id, n, ok)
		}
		if id, k, ok := keyspace.CutUpload(keyspace.Upload(a, key)); !ok || string(id) != a || k != key {
			t.Fatalf("keyspace.CutUpload: %q, %x, %v", id, k, ok)
		}
		lo, hi := keyspace.OfDoc(keyspace.Bodies, a), keyspace.OfDocEnd(keyspace.Bodies, a)
		if inside := bytes.Compare(kb, lo) >= 0 && bytes.Compare(kb, hi) < 0; inside != (a == b) {
			t.Fatalf("a key of %q lies in the space of %q: %v", b, a, inside)
		}
	})
}

// TestValuesRoundTrip: what is written is read.
func TestValuesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64()
		s := Sums{Live: n.Draw(t, "live"), Deleted: n.Draw(t, "deleted"), External: n.Draw(t, "external"), Active: n.Draw(t, "active")}
		if got, err := format.DecodeSums(format.AppendSums(nil, s)); err != nil || got != s {
			t.Fatalf("sums %+v became %+v, %v", s, got, err)
		}
		u := rapid.Uint64()
		c := Counters{
			Live: u.Draw(t, "l"), Deleted: u.Draw(t, "d"), Seq: u.Draw(t, "s"), PurgeSeq: u.Draw(t, "p"),
			PurgeTrimmed: u.Draw(t, "t"), External: s.External, Active: s.Active,
		}
		if batch, got, err := format.DecodeCounters(format.AppendCounters(nil, 9, &c)); err != nil || got != c || batch != 9 {
			t.Fatalf("counters %+v became %+v, %v", c, got, err)
		}
	})
}

func fuzzSeeds(f *testing.F) {
	f.Helper()
	f.Add([]byte{})
	f.Add(format.AppendCounters(nil, 1, &Counters{Live: 2}))
	f.Add(format.AppendPurge(nil, &Purge{ID: "a", Revs: []doc.Rev{{Pos: 1, ID: "x"}}}))
	f.Add(format.AppendPurge(nil, &Purge{ID: "a", Revs: []doc.Rev{{Pos: 2, ID: "x"}}, Paths: []doc.Path{{Start: 2, IDs: []string{"x", "y"}}}}))
	f.Add(format.AppendSums(nil, Sums{Live: 1, Deleted: 2, External: 3, Active: 4}))
	rec := &doc.Record{ID: "doc"}
	rec.Tree.Merge(doc.Path{Start: 1, IDs: []string{"x"}}, doc.Node{Rev: doc.Rev{Pos: 1, ID: "x"}})
	f.Add(format.AppendChange(nil, rec))
	f.Add(keyspace.AppendBody(nil, "a\x00b", doc.Rev{Pos: 1, ID: "x"}))
	f.Add(keyspace.AppendChunk(nil, "a", keyspace.ContentKey{1}, 3))
}

// FuzzDecode: damaged bytes give errors, not panics, and what decodes does so to
// the bytes it came from.
func FuzzDecode(f *testing.F) {
	fuzzSeeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := format.DecodePurge(1, b); err == nil {
			if _, err := format.DecodePurge(1, format.AppendPurge(nil, &p)); err != nil {
				t.Errorf("purge: %v", err)
			}
		}
		var c Change
		_ = format.DecodeChange(b, &c)
		if s, err := format.DecodeSums(b); err == nil {
			if got, err := format.DecodeSums(format.AppendSums(nil, s)); err != nil || got != s {
				t.Errorf("sums: %v", err)
			}
		}
		if batch, c, err := format.DecodeCounters(b); err == nil {
			if _, got, err := format.DecodeCounters(format.AppendCounters(nil, batch, &c)); err != nil || got != c {
				t.Errorf("counters: %v", err)
			}
		}
		_, _ = identity.Find([]string{string(b), identity.Prefix + string(b), identity.Prefix + "1-" + string(b)})
		if len(b) < keyspace.PrefixLen {
			return
		}
		if id, rev, ok := keyspace.CutBody(b); ok && !bytes.Equal(keyspace.AppendBody(nil, string(id), rev)[keyspace.PrefixLen:], b[keyspace.PrefixLen:]) {
			t.Errorf("body key %x", b)
		}
		if id, key, n, ok := keyspace.CutChunk(b); ok && !bytes.Equal(keyspace.AppendChunk(nil, string(id), key, n)[keyspace.PrefixLen:], b[keyspace.PrefixLen:]) {
			t.Errorf("chunk key %x", b)
		}
		if id, key, ok := keyspace.CutUpload(b); ok && !bytes.Equal(keyspace.Upload(string(id), key)[keyspace.PrefixLen:], b[keyspace.PrefixLen:]) {
			t.Errorf("upload key %x", b)
		}
	})
}
