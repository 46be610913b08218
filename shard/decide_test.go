package shard

import (
	"fmt"
	"strings"
	"testing"

	"divan/storage/doc"
	"divan/storage/fault"
)

// rev reads "2-b"; the empty text is the zero revision.
func rev(tb testing.TB, s string) doc.Rev {
	tb.Helper()
	if s == "" {
		return doc.Rev{}
	}
	r, err := doc.ParseRev(s)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// path reads "3-c b a".
func path(tb testing.TB, s string) doc.Path {
	tb.Helper()
	words := strings.Fields(s)
	r := rev(tb, words[0])
	return doc.Path{Start: r.Pos, IDs: append([]string{r.ID}, words[1:]...)}
}

// tree is made of paths; a leaf whose path ends in "!" is deleted.
func tree(tb testing.TB, paths ...string) *doc.Tree {
	tb.Helper()
	var out doc.Tree
	for _, p := range paths {
		text, deleted := strings.CutSuffix(p, "!")
		way := path(tb, text)
		out.Merge(way, doc.Node{Rev: way.Rev(), Stored: true, Deleted: deleted})
	}
	return &out
}

// The table of semantics.md section 2.5.
func TestDecideInteractive(t *testing.T) {
	live := []string{"1-a", "2-b a", "2-c a!"} // leaves 2-b (wins) and 2-c (deleted)
	gone := []string{"1-a", "2-b a", "3-d b a!", "2-c a!"}
	for _, c := range []struct {
		name    string
		tree    []string
		parent  string
		deleted bool
		want    string // parent of the new revision, "new" for a first one, "conflict"
		base    string
	}{
		{name: "no document, no rev", want: "new"},
		{name: "no document, no rev, deleted", deleted: true, want: "new"},
		{name: "no document, any rev", parent: "1-a", want: "conflict"},
		{name: "live, none", tree: live, want: "conflict"},
		{name: "live, none, deleted", tree: live, deleted: true, want: "conflict"},
		{name: "live, winner", tree: live, parent: "2-b", want: "2-b", base: "2-b"},
		{name: "live, deleted leaf", tree: live, parent: "2-c", want: "2-c", base: "2-c"},
		{name: "live, losing leaf", tree: []string{"2-b a", "2-c a"}, parent: "2-b", want: "2-b", base: "2-b"},
		{name: "live, inner", tree: live, parent: "1-a", want: "conflict"},
		{name: "live, unknown", tree: live, parent: "2-x", want: "conflict"},
		{name: "live, of a generation to come", tree: live, parent: "9-b", want: "conflict"},
		{name: "deleted, none, live body", tree: gone, want: "3-d"},
		{name: "deleted, none, deleted body", tree: gone, deleted: true, want: "conflict"},
		{name: "deleted, the tombstone", tree: gone, parent: "3-d", want: "conflict"},
		{name: "deleted, another tombstone", tree: gone, parent: "2-c", want: "conflict"},
		{name: "deleted, before the tombstone", tree: gone, parent: "2-b", want: "conflict"},
		{name: "deleted, the tombstone, deleted body", tree: gone, parent: "3-d", deleted: true, want: "conflict"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := decideInteractive(tree(t, c.tree...), rev(t, c.parent), c.deleted)
			if c.want == "conflict" {
				if v.refused != fault.Conflict || v.refusal().Kind != fault.Conflict || v.refusal().Reason != conf {
					t.Fatalf("not a conflict: %+v", v)
				}
				return
			}
			want := ""
			if c.want != "new" {
				want = c.want
			}
			if v.refused != 0 || !v.leaf || v.parent != rev(t, want) || v.base != rev(t, c.base) {
				t.Fatalf("got %+v", v)
			}
		})
	}
}

func TestDecideReplicated(t *testing.T) {
	// 4-d has only been named, never sent; 3-c has been dropped by compaction.
	known := tree(t, "1-a", "2-b a", "3-c b a", "5-e d c b a")
	known.SetStored(rev(t, "3-c"), false)
	for _, c := range []struct {
		name, path           string
		leaf, stored, refuse bool
		base                 string
	}{
		{name: "known leaf", path: "5-e d c b a", stored: true},
		{name: "known inside", path: "2-b a", stored: true},
		{name: "named only", path: "4-d c b a", base: "2-b"},
		{name: "extends the leaf", path: "6-f e d", leaf: true, base: "5-e"},
		{name: "branch", path: "3-x b", leaf: true, base: "2-b"},
		{name: "branch from a revision without content", path: "5-y d", leaf: true, base: "2-b"},
		{name: "ancestors unknown", path: "9-z y", leaf: true},
		{name: "no history", path: "7-q", leaf: true},
		{name: "longer than its position", path: "2-b a z", refuse: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := decideReplicated(known, path(t, c.path), true)
			if (v.refused != 0) != c.refuse {
				t.Fatalf("refused %v", v.refused)
			}
			if !c.refuse && (v.leaf != c.leaf || v.stored != c.stored || v.base != rev(t, c.base)) {
				t.Fatalf("got %+v", v)
			}
		})
	}
	if v := decideReplicated(known, doc.Path{}, true); v.refused != fault.BadRequest || v.refusal().Reason != reasonBadRev {
		t.Fatalf("an empty path passes: %+v", v)
	}
}

// Golden attachments/03 and api.md section 10.5.
func TestResolveAttachments(t *testing.T) {
	base := []doc.Attachment{
		{Name: "a.bin", ContentType: "x/y", RevPos: 1, Length: 1, StoredLength: 1, Key: [16]byte{1}},
	}
	key := func() [16]byte { return [16]byte{9} }
	stub := func(name string, revpos uint64, has bool) EditAttachment {
		return EditAttachment{Attachment: doc.Attachment{Name: name, RevPos: revpos, ContentType: "image/gif"}, Stub: true, HasRevPos: has}
	}
	for _, c := range []struct {
		name    string
		att     EditAttachment
		revpos  uint64
		missing bool
		content bool
		exactly bool
	}{
		{
			name: "stub with another digest", revpos: 1,
			att: EditAttachment{Attachment: doc.Attachment{Name: "a.bin", RevPos: 1, Digest: [16]byte{7}}, Stub: true, HasRevPos: true},
		},
		{
			name: "stub with another digest, between copies", exactly: true, missing: true,
			att: EditAttachment{Attachment: doc.Attachment{Name: "a.bin", RevPos: 1, Digest: [16]byte{7}}, Stub: true, HasRevPos: true},
		},
		{name: "stub alone", att: stub("a.bin", 0, false), revpos: 1},
		{name: "stub with its revpos", att: stub("a.bin", 1, true), revpos: 1},
		{name: "stub with another revpos", att: stub("a.bin", 2, true), missing: true},
		{name: "stub of nothing", att: stub("b.bin", 0, false), missing: true},
		{
			name: "content keeps the position it is sent with", revpos: 2, content: true,
			att: EditAttachment{Attachment: doc.Attachment{Name: "n", RevPos: 2, StoredLength: 1}, HasRevPos: true, Data: []byte("x")},
		},
		{
			name: "content without a position gets the new one", revpos: 7, content: true,
			att: EditAttachment{Attachment: doc.Attachment{Name: "n", StoredLength: 1}, Data: []byte("x")},
		},
		{
			name: "ingested content", revpos: 7,
			att: EditAttachment{Attachment: doc.Attachment{Name: "n", StoredLength: 1 << 20, Key: [16]byte{5}}},
		},
		{
			name: "empty content", revpos: 7, content: true,
			att: EditAttachment{Attachment: doc.Attachment{Name: "n"}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := &Edit{ID: "d", Atts: []EditAttachment{c.att}}
			atts, contents, err := resolveAttachments(e, 7, base, c.exactly, key)
			if c.missing {
				want := "Invalid attachment stub in d for " + c.att.Name
				if !fault.Is(err, fault.MissingStub) || fault.Reason(err) != want {
					t.Fatalf("got %v", err)
				}
				return
			}
			if err != nil || len(atts) != 1 || atts[0].RevPos != c.revpos || (len(contents) == 1) != c.content {
				t.Fatalf("got %+v %+v %v", atts, contents, err)
			}
			if c.att.Stub && atts[0] != base[0] {
				t.Fatalf("the stub took %+v", atts[0])
			}
			if c.content && (contents[0].key != [16]byte{9} || atts[0].Key != [16]byte{9}) {
				t.Fatalf("key %v and %v", contents[0].key, atts[0].Key)
			}
		})
	}
}

// Among many attachments a stub finds its own as among few.
func TestManyStubs(t *testing.T) {
	key := func() [16]byte { return [16]byte{9} }
	for _, n := range []int{1, fewAttachments, fewAttachments + 1, 1000} {
		base := make([]doc.Attachment, n)
		e := &Edit{ID: "d"}
		for i := range base {
			base[i] = doc.Attachment{Name: fmt.Sprint(i), RevPos: uint64(i + 1), Length: int64(i)}
			stub := EditAttachment{Attachment: doc.Attachment{Name: fmt.Sprint(n - 1 - i), RevPos: uint64(n - i)}, Stub: true, HasRevPos: i%2 == 0}
			e.Atts = append(e.Atts, stub)
		}
		atts, _, err := resolveAttachments(e, 2000, base, false, key)
		if err != nil {
			t.Fatal(err)
		}
		for i := range atts {
			if atts[i] != base[n-1-i] {
				t.Fatalf("%d of %d: %+v", i, n, atts[i])
			}
		}
		e.Atts = append(e.Atts, EditAttachment{Attachment: doc.Attachment{Name: "none"}, Stub: true})
		if _, _, err := resolveAttachments(e, 2000, base, false, key); !fault.Is(err, fault.MissingStub) {
			t.Errorf("%d: %v", n, err)
		}
	}
}

func TestPartitionOf(t *testing.T) {
	for id, want := range map[string]string{"a:b": "a", "a:b:c": "a", "_design/x:y": "", "none": ""} {
		if got, ok := partitionOf(id); ok != (want != "") || ok && got != want {
			t.Errorf("partition of %q is %q", id, got)
		}
	}
	if lo, hi := partitionBounds("a"); lo > "a:" || hi <= "a:\xff" || lo <= "a9" && "a9" < hi {
		t.Errorf("bounds %q %q", lo, hi)
	}
}
