package doc

import (
	"fmt"
	"strings"
	"testing"
)

// sampleDoc returns a document of about 1 KB; sep follows each comma and
// colon.
func sampleDoc(sep string) []byte {
	var b strings.Builder
	b.WriteString(`{"_id":` + sep + `"order-000123456789",` + sep + `"_rev":` + sep + `"3-0123456789abcdef0123456789abcdef"`)
	for i := range 6 {
		fmt.Fprintf(&b, `,%[1]s"name%[2]d":%[1]s"A customer of the shop, number %[2]d, in Zürich",%[1]s"amount%[2]d":%[1]s1%[2]d4.25,%[1]s"count%[2]d":%[1]s1%[2]d17`, sep, i)
	}
	b.WriteString(`,` + sep + `"tags":` + sep + `["red",` + sep + `"green",` + sep + `"blue"],` + sep + `"active":` + sep + `true,` + sep +
		`"nested":` + sep + `{"street":` + sep + `"12 Long Road",` + sep + `"zip":` + sep + `"8004",` + sep + `"geo":` + sep + `[47.3769,` + sep + `8.5417]},` + sep)
	b.WriteString(`"note":` + sep + `"` + strings.Repeat("the quick brown fox jumps over it ", 11) + `"}`)
	return []byte(b.String())
}

func BenchmarkParseEnvelope(b *testing.B) {
	for name, text := range map[string][]byte{"canonical": sampleDoc(""), "spaced": sampleDoc(" ")} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ParseEnvelope(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCanonical(b *testing.B) {
	text, dst := sampleDoc(" "), make([]byte, 0, 4096)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Canonical(dst, text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendHead(b *testing.B) {
	env, err := ParseEnvelope(sampleDoc(""))
	if err != nil {
		b.Fatal(err)
	}
	s := Splice{ID: env.ID, Rev: env.Rev, Body: env.Body}
	dst := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		AppendHead(dst, s)
	}
}

func BenchmarkNewRevID(b *testing.B) {
	env, err := ParseEnvelope(sampleDoc(""))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(env.Body)))
	b.ReportAllocs()
	for b.Loop() {
		NewRevID(false, env.Rev, env.Body, nil)
	}
}

// lineTree returns a tree that is one path of n revisions, all stored.
func lineTree(n int) Tree {
	var t Tree
	var up Rev
	for i := 1; i <= n; i++ {
		r := Rev{Pos: uint64(i), ID: NewRevID(false, up, nil, nil)}
		t.Merge(Path{Start: r.Pos, IDs: []string{r.ID, up.ID}[:min(i, 2)]}, Node{Rev: r, Stored: true, External: 1000, Active: 700})
		up = r
	}
	return t
}

func sampleRecord(b *testing.B, revs int) Record {
	b.Helper()
	env, err := ParseEnvelope(sampleDoc(""))
	if err != nil {
		b.Fatal(err)
	}
	t := lineTree(revs)
	w, _ := t.Winner()
	return Record{
		ID: env.ID, Seq: 123456, Winner: w.Rev, Tree: t, External: 1000, Active: 700,
		Inline: Revision{Body: env.Body}.AppendBinary(nil),
	}
}

func BenchmarkRecordEncode(b *testing.B) {
	for _, revs := range []int{1, 10, 1000} {
		b.Run(fmt.Sprint(revs), func(b *testing.B) {
			r, dst := sampleRecord(b, revs), make([]byte, 0, 1<<16)
			b.ReportAllocs()
			for b.Loop() {
				r.AppendBinary(dst)
			}
		})
	}
}

func BenchmarkRecordDecode(b *testing.B) {
	for _, revs := range []int{1, 10, 1000} {
		b.Run(fmt.Sprint(revs), func(b *testing.B) {
			r := sampleRecord(b, revs)
			enc := r.AppendBinary(nil)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := DecodeRecord(r.ID, enc); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkHeadDecode(b *testing.B) {
	r := sampleRecord(b, 10)
	enc := r.AppendBinary(nil)
	b.ReportAllocs()
	for b.Loop() {
		var h Head
		if err := DecodeHead(enc, &h); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRevisionDecode(b *testing.B) {
	r := sampleRecord(b, 1)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeRevision(r.Inline); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMerge extends a path of that many revisions by one, as an update
// does, and cuts it to 1000.
func BenchmarkMerge(b *testing.B) {
	for _, revs := range []int{1, 10, 1000} {
		b.Run(fmt.Sprint(revs), func(b *testing.B) {
			base := lineTree(revs)
			w, _ := base.Winner()
			next := Rev{Pos: w.Rev.Pos + 1, ID: NewRevID(false, w.Rev, nil, nil)}
			p := Path{Start: next.Pos, IDs: []string{next.ID, w.Rev.ID}}
			b.ReportAllocs()
			for b.Loop() {
				t := base.Clone()
				t.Merge(p, Node{Rev: next, Stored: true})
				t.Stem(1000)
			}
		})
	}
}

// BenchmarkMergePath merges the whole path of a replicated edit.
func BenchmarkMergePath(b *testing.B) {
	base := lineTree(1000)
	w, _ := base.Winner()
	next := Rev{Pos: w.Rev.Pos + 1, ID: NewRevID(false, w.Rev, nil, nil)}
	p := base.Path(w.Rev, 0)
	p.Start, p.IDs = p.Start+1, append([]string{next.ID}, p.IDs...)
	b.ReportAllocs()
	for b.Loop() {
		t := base.Clone()
		t.Merge(p, Node{Rev: next, Stored: true})
	}
}
