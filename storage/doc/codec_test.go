package doc

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"divan/storage/fault"
)

func bytes16(t *rapid.T, label string) (b [16]byte) {
	copy(b[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, label))
	return b
}

func attachments(t *rapid.T) []Attachment {
	var list []Attachment
	for range rapid.IntRange(0, 3).Draw(t, "attachments") {
		list = append(list, Attachment{
			Name: rapid.String().Draw(t, "name"), ContentType: rapid.String().Draw(t, "type"),
			RevPos: rapid.Uint64().Draw(t, "revpos"), Digest: bytes16(t, "digest"),
			Length: rapid.Int64().Draw(t, "length"), StoredLength: rapid.Int64().Draw(t, "stored"),
			Gzip: rapid.Bool().Draw(t, "gzip"), Key: bytes16(t, "key"),
		})
	}
	return list
}

func revision(t *rapid.T) Revision {
	return Revision{
		Deleted: rapid.Bool().Draw(t, "deleted"),
		Body:    rapid.SliceOf(rapid.Byte()).Draw(t, "body"),
		Atts:    attachments(t),
	}
}

// TestRevisionRoundTrip checks that every revision comes back, and that no
// prefix of its bytes decodes.
func TestRevisionRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := revision(t)
		b := v.AppendBinary([]byte("x"))[1:]
		if n := v.BinaryLen(); n != len(b) {
			t.Fatalf("%d bytes, and not %d", len(b), n)
		}
		got, err := DecodeRevision(b)
		if err != nil || got.Deleted != v.Deleted || !bytes.Equal(got.Body, v.Body) || !reflect.DeepEqual(got.Atts, v.Atts) {
			t.Fatalf("%+v, %v; want %+v", got, err, v)
		}
		cut := rapid.IntRange(0, len(b)-1).Draw(t, "cut")
		if _, err := DecodeRevision(b[:cut]); !fault.Is(err, fault.Corruption) {
			t.Fatalf("%d of %d bytes decode: %v", cut, len(b), err)
		}
		if _, err := DecodeRevision(append(b, 0)); !fault.Is(err, fault.Corruption) {
			t.Fatalf("a byte more decodes: %v", err)
		}
	})
}

func record(t *rapid.T) Record {
	tree, _ := build(edits(t))
	w, _ := tree.Winner()
	r := Record{
		ID: rapid.String().Draw(t, "id"), Seq: rapid.Uint64().Draw(t, "seq"), Winner: w.Rev, Deleted: w.Deleted, Tree: tree,
		External: rapid.Int64().Draw(t, "external"), Active: rapid.Int64().Draw(t, "active"),
	}
	if rapid.Bool().Draw(t, "inline") {
		r.Inline = append([]byte{}, revision(t).AppendBinary(nil)...)
	}
	return r
}

// TestRecordRoundTrip checks that a record and its head come back, that the
// head needs nothing behind itself, and that no prefix decodes.
func TestRecordRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := record(t)
		b := r.AppendBinary([]byte("x"))[1:]
		got, err := DecodeRecord(r.ID, b)
		if err != nil || !reflect.DeepEqual(got, r) {
			t.Fatalf("%+v, %v; want %+v", got, err, r)
		}
		head := Head{Inline: []byte("old"), Deleted: !r.Deleted}
		want := Head{Seq: r.Seq, Winner: r.Winner, Deleted: r.Deleted, External: r.External, Active: r.Active, Inline: r.Inline}
		tree := len(r.Tree.appendBinary(nil))
		if err := DecodeHead(b[:len(b)-tree], &head); err != nil || !reflect.DeepEqual(head, want) {
			t.Fatalf("%+v, %v; want %+v", head, err, want)
		}
		if got, want := Branched(b), len(r.Tree.Leaves()) > 1; got != want {
			t.Fatalf("branched: %t; leaves %v", got, r.Tree.Leaves())
		}
		cut := rapid.IntRange(0, len(b)-1).Draw(t, "cut")
		Branched(b[:cut]) // of damaged bytes anything, but it ends
		if _, err := DecodeRecord(r.ID, b[:cut]); !fault.Is(err, fault.Corruption) {
			t.Fatalf("%d of %d bytes decode: %v", cut, len(b), err)
		}
		if _, err := DecodeRecord(r.ID, append(b, 0)); !fault.Is(err, fault.Corruption) {
			t.Fatalf("a byte more decodes: %v", err)
		}
	})
}

// TestVersions refuses bytes of another version.
func TestVersions(t *testing.T) {
	t.Parallel()
	r := Record{Winner: Rev{1, "x"}, Tree: lineTree(1)}
	b := r.AppendBinary(nil)
	b[0] += 0x10
	var h Head
	if err := DecodeHead(b, &h); !fault.Is(err, fault.Corruption) {
		t.Errorf("head: %v", err)
	}
	if _, err := DecodeRecord("x", b); !fault.Is(err, fault.Corruption) {
		t.Errorf("record: %v", err)
	}
	b = Revision{}.AppendBinary(nil)
	b[0] += 0x10
	if _, err := DecodeRevision(b); !fault.Is(err, fault.Corruption) {
		t.Errorf("revision: %v", err)
	}
}

// TestRecordAliases checks what may and what may not share memory with the
// decoded bytes.
func TestRecordAliases(t *testing.T) {
	t.Parallel()
	r := Record{ID: "x", Winner: Rev{3, "foreign"}, Tree: lineTree(3), Inline: Revision{Body: []byte(`{"a":1}`), Atts: []Attachment{{Name: "n", ContentType: "t"}}}.AppendBinary(nil)}
	b := r.AppendBinary(nil)
	got, err := DecodeRecord("x", b)
	if err != nil {
		t.Fatal(err)
	}
	rev, err := DecodeRevision(got.Inline)
	if err != nil {
		t.Fatal(err)
	}
	for i := range b {
		b[i] ^= 0xff
	}
	if !reflect.DeepEqual(got.Tree, r.Tree) || got.Winner != r.Winner || rev.Atts[0].Name != "n" || rev.Atts[0].ContentType != "t" {
		t.Errorf("changed with the bytes: %+v %+v", got, rev)
	}
	if bytes.Equal(got.Inline, r.Inline) {
		t.Error("Inline was copied")
	}
}

// TestDecodeDamaged flips single bytes: nothing may panic, and what still
// decodes keeps the invariants.
func TestDecodeDamaged(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := (&Record{Winner: Rev{1, "x"}, Tree: record(t).Tree}).AppendBinary(nil)
		b[rapid.IntRange(0, len(b)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if r, err := DecodeRecord("x", b); err == nil {
			if d := r.Tree.verify(); d != "" {
				t.Fatal(d)
			}
		}
	})
}

// TestNewRevID checks that the id depends on each input and on nothing else.
func TestNewRevID(t *testing.T) {
	t.Parallel()
	att := Attachment{Name: "a", ContentType: "t/t", Digest: [16]byte{1}}
	base := func() (bool, Rev, []byte, []Attachment) {
		return false, Rev{1, "x"}, []byte(`{"a":1}`), []Attachment{att}
	}
	id := NewRevID(base())
	if len(id) != 16 || id != NewRevID(base()) {
		t.Fatalf("%x", id)
	}
	_, parent, body, atts := base()
	moved := att
	moved.RevPos, moved.Key, moved.Length, moved.StoredLength, moved.Gzip = 7, [16]byte{9}, 1, 2, true
	if got := NewRevID(false, parent, body, []Attachment{moved}); got != id {
		t.Error("depends on where the content lies")
	}
	named, typed, other := att, att, att
	named.Name, typed.ContentType, other.Digest[15] = "at", "/t", 1
	seen := map[string]string{id: "base"}
	for what, got := range map[string]string{
		"deleted":      NewRevID(true, parent, body, atts),
		"parent id":    NewRevID(false, Rev{1, "y"}, body, atts),
		"parent pos":   NewRevID(false, Rev{2, "x"}, body, atts),
		"no parent":    NewRevID(false, Rev{}, body, atts),
		"body":         NewRevID(false, parent, []byte(`{"a":2}`), atts),
		"no body":      NewRevID(false, parent, nil, atts),
		"large body":   NewRevID(false, parent, []byte(`{"a":"`+strings.Repeat("x", 10_000)+`"}`), atts),
		"larger body":  NewRevID(false, parent, []byte(`{"a":"`+strings.Repeat("x", 10_001)+`"}`), atts),
		"no atts":      NewRevID(false, parent, body, nil),
		"two atts":     NewRevID(false, parent, body, []Attachment{att, att}),
		"att's name":   NewRevID(false, parent, body, []Attachment{named}),
		"att's type":   NewRevID(false, parent, body, []Attachment{typed}),
		"att's digest": NewRevID(false, parent, body, []Attachment{other}),
	} {
		if was, ok := seen[got]; ok {
			t.Errorf("%s gives the same id as %s", what, was)
		}
		seen[got] = what
	}
}

// TestRev covers the forms of a revision's name (semantics.md 2.1, golden
// docs/03).
func TestRev(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]Rev{
		"1-0123456789abcdef0123456789ABCDEF": {1, "\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef"},
		"5-abc":                              {5, "abc"}, "0-7": {0, "7"}, "12-a-b": {12, "a-b"}, "3-": {3, ""}, "007-x": {7, "x"}, "+5-abc": {5, "abc"},
		"9223372036854775799-x": {9223372036854775799, "x"},
	} {
		got, err := ParseRev(in)
		if err != nil || got != want {
			t.Errorf("%s: %q, %v", in, got, err)
		}
		again, err := ParseRev(got.String())
		if err != nil || again != got || got.String() != want.String() {
			t.Errorf("%s: prints as %s", in, got)
		}
	}
	if got, _ := ParseRev("1-0123456789ABCDEF0123456789abcdef"); got.String() != "1-0123456789abcdef0123456789abcdef" || got.IDText() != "0123456789abcdef0123456789abcdef" {
		t.Errorf("prints as %s", got)
	}
	for _, in := range []string{"", "5", "-", "-abc", "x-abc", "+-abc", "++5-abc", "-5-abc", " 5-abc", "5 -abc", "nonsense", "*", "99999999999999999999-x", "18446744073709551616-x", "5-zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz", "1-0123456789abcdef0123456789abcdeg"} {
		if got, err := ParseRev(in); !fault.Is(err, fault.BadRequest) || fault.Reason(err) != "Invalid rev format" {
			t.Errorf("%q: %v, %v", in, got, err)
		}
	}
	order := []Rev{{}, {0, "7"}, {1, "\x22"}, {1, "\x99"}, {1, "ab"}, {1, "abc"}, {2, ""}, {9, "\xff"}, {10, "\x00"}}
	order[3], order[4], order[5] = Rev{1, "ab"}, Rev{1, "abc"}, Rev{1, "\x99"}
	for i, a := range order {
		for k, b := range order {
			if got := a.Compare(b); got > 0 != (i > k) || got < 0 != (i < k) {
				t.Errorf("%q compared to %q: %d", a, b, got)
			}
		}
	}
	if got := string(Path{Start: 3, IDs: []string{"0123456789abcdef", `a"b`}}.AppendJSON(nil)); got != `{"start":3,"ids":["30313233343536373839616263646566","a\"b"]}` {
		t.Error(got)
	}
}
