package shard

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"divan/storage/doc"
	"divan/storage/fault"
)

const conf = "Document update conflict."

// Golden docs/01 and docs/11.
func TestLifeOfADocument(t *testing.T) {
	n := start(t, Options{})
	r1 := n.must(n.edit("a", "", `{"v":1}`))
	if !strings.HasPrefix(r1, "1-") || len(r1) != 34 {
		t.Fatalf("first revision %s", r1)
	}
	if r := n.edit("a", "", `{"v":2}`); !fault.Is(r.Err, fault.Conflict) || fault.Reason(r.Err) != conf {
		t.Fatalf("put without a revision: %v", r.Err)
	}
	r2 := n.must(n.edit("a", r1, `{"v":2}`))
	if r := n.edit("a", r1, `{"v":3}`); !fault.Is(r.Err, fault.Conflict) {
		t.Fatalf("put with an old revision: %v", r.Err)
	}
	if got := n.show("a"); got != r2+` {"v":2}` {
		t.Fatal(got)
	}
	if got := n.showRev("a", r1); got != r1+` {"v":1}` {
		t.Fatalf("inner revisions stay until compaction: %s", got)
	}
	r3 := n.must(n.remove("a", r2))
	if got := n.show("a"); got != "deleted" {
		t.Fatal(got)
	}
	if got := n.showRev("a", r3); got != r3+" {} deleted" {
		t.Fatal(got)
	}
	if r := n.edit("a", r3, `{"v":4}`); !fault.Is(r.Err, fault.Conflict) {
		t.Fatalf("put on the tombstone's revision: %v", r.Err)
	}
	r4 := n.must(n.edit("a", "", `{"v":4}`))
	if !strings.HasPrefix(r4, "4-") {
		t.Fatalf("re-created as %s", r4)
	}
	d, err := n.get(OpenRequest{ID: "a", Revs: true, RevsInfo: true, LocalSeq: true})
	if err != nil {
		t.Fatal(err)
	}
	var infos []string
	for _, i := range d.RevsInfo {
		infos = append(infos, i.Rev.String()+" "+i.Status)
	}
	if !equal(infos, r4+" available", r3+" deleted", r2+" available", r1+" available") {
		t.Fatalf("revs_info %v", infos)
	}
	if d.Revisions.Start != 4 || len(d.Revisions.IDs) != 4 || d.LocalSeq != 4 {
		t.Fatalf("revisions %v, local sequence %d", d.Revisions, d.LocalSeq)
	}
	if got := n.show("nothing"); got != "missing" {
		t.Fatal(got)
	}
	n.must(n.remove("never", ""))
	i := n.info()
	if i.Live != 1 || i.Deleted != 1 || i.Seq != 5 {
		t.Fatalf("info %+v", i)
	}
	n.check()
}

// Golden bulk/01: the order of the request, and one sequence per document.
func TestBulkInOrder(t *testing.T) {
	n := start(t, Options{})
	res := n.edits(true,
		Edit{ID: "z", Body: []byte(`{"v":1}`)},
		Edit{ID: "a", Body: []byte(`{"v":2}`)},
		Edit{ID: "z", Body: []byte(`{"v":3}`)},
		Edit{ID: "_local/l", Body: []byte(`{"v":4}`)},
	)
	if res[0].Err != nil || res[1].Err != nil || !fault.Is(res[2].Err, fault.Conflict) || res[3].Rev.String() != "0-1" {
		t.Fatalf("results %+v", res)
	}
	z := res[0].Rev
	if got := n.feed(ChangesRequest{}); !equal(got, "1 z "+z.String(), "2 a "+res[1].Rev.String()) {
		t.Fatalf("feed %v", got)
	}
	// The second edit continues what the first made; the third has no base.
	next := doc.Rev{Pos: 2, ID: doc.NewRevID(false, z, []byte(`{"v":5}`), nil)}
	res = n.edits(true,
		Edit{ID: "z", Parent: z, Body: []byte(`{"v":5}`)},
		Edit{ID: "z", Parent: next, Body: []byte(`{"v":6}`)},
		Edit{ID: "z", Parent: z, Body: []byte(`{"v":7}`)},
	)
	if res[0].Rev != next || res[1].Err != nil || !fault.Is(res[2].Err, fault.Conflict) {
		t.Fatalf("results %+v", res)
	}
	if res[1].Path.Start != 3 || len(res[1].Path.IDs) != 3 || res[1].Path.IDs[1] != next.ID {
		t.Fatalf("path %v", res[1].Path)
	}
	if got := n.feed(ChangesRequest{Since: 2}); !equal(got, "3 z "+res[1].Rev.String()) {
		t.Fatalf("feed %v", got)
	}
	if got := n.showRev("z", next.String()); got != next.String()+` {"v":5}` {
		t.Fatalf("a revision that came and went in one request: %s", got)
	}
	n.check()
}

// A revision that is cut off and comes again in one request with another text
// is stored once, as it came last.
func TestRevisionComesAgain(t *testing.T) {
	n := start(t, Options{})
	large := string(body(doc.InlineLimit + 1))
	res, err := n.Decide(context.Background(), DecideRequest{Copy: copyName, Insist: true, Limits: Limits{Revs: 1}, Edits: []Edit{
		replicated(t, "d", "5-a", `{"v":1}`), replicated(t, "d", "6-b a!", `{}`), replicated(t, "d", "5-a", large),
	}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range res {
		n.must(res[i])
	}
	if got := n.show("d"); got != "5-a "+large {
		t.Fatalf("%.60s", got)
	}
	n.check()
}

// Golden bulk/03 and docs/13.
func TestReplicatedEdits(t *testing.T) {
	n := start(t, Options{})
	res := n.edits(false,
		replicated(t, "e", "2-b a", `{"v":2}`),
		replicated(t, "e", "1-a", `{"v":1}`),
		replicated(t, "f", "1-a", `{"v":"first"}`),
		replicated(t, "f", "1-a", `{"v":"second"}`),
		replicated(t, "c", "2-b a!", `{}`),
	)
	for i := range res {
		if res[i].Err != nil {
			t.Fatalf("edit %d: %v", i, res[i].Err)
		}
	}
	if got := n.show("e") + n.showRev("e", "1-a") + n.show("f") + n.show("c"); got != `2-b {"v":2}1-a {"v":1}1-a {"v":"first"}deleted` {
		t.Fatal(got)
	}
	seq := n.info().Seq
	if seq != 3 {
		t.Fatalf("sequence %d", seq)
	}
	n.replicate("e", "2-b a", `{"v":"other"}`)
	if got := n.show("e"); got != `2-b {"v":2}` || n.info().Seq != seq {
		t.Fatalf("a known revision changed something: %s, sequence %d", got, n.info().Seq)
	}
	// A gap is filled in, and counts as a change.
	n.replicate("g", "5-e d c", `{"v":5}`)
	n.replicate("g", "4-d c", `{"v":4}`)
	if got := n.showRev("g", "4-d"); got != `4-d {"v":4}` || n.show("g") != `5-e {"v":5}` {
		t.Fatal(got)
	}
	if got := n.feed(ChangesRequest{AllLeaves: true, Since: seq}); !equal(got, "5 g 5-e") {
		t.Fatalf("feed %v", got)
	}
	// Two roots become one tree when the history between arrives.
	n.replicate("g", "8-h", `{"v":8}`)
	n.replicate("g", "9-i h g f e", `{"v":9}`)
	d, err := n.get(OpenRequest{ID: "g", Revs: true, Conflicts: true})
	if err != nil || len(d.Revisions.IDs) != 7 || len(d.Conflicts) != 0 {
		t.Fatalf("%+v %v", d, err)
	}
	n.check()
}

// Golden docs/05: the options of a read.
func TestReadOptions(t *testing.T) {
	n := start(t, Options{})
	n.replicate("d", "3-a 9 8", `{"v":"main"}`)
	n.replicate("d", "3-7 9 8", `{"v":"loser"}`)
	n.replicate("d", "3-b 9 8!", `{}`)
	d, err := n.get(OpenRequest{ID: "d", Conflicts: true, DeletedConflicts: true, RevsInfo: true, LocalSeq: true})
	if err != nil || d.LocalSeq != 3 || len(d.Conflicts) != 1 || d.Conflicts[0] != rev(t, "3-7") ||
		len(d.DeletedConflicts) != 1 || d.DeletedConflicts[0] != rev(t, "3-b") || d.RevsInfo[1].Status != StatusMissing {
		t.Fatalf("%+v %v", d, err)
	}
	d, err = n.get(OpenRequest{ID: "d", Rev: rev(t, "3-7"), Conflicts: true, RevsInfo: true, LocalSeq: true, Revs: true})
	if err != nil || d.Conflicts != nil || d.RevsInfo != nil || d.LocalSeq != 0 || len(d.Revisions.IDs) != 3 {
		t.Fatalf("with rev: %+v %v", d, err)
	}
	for r, want := range map[string]string{
		"3-b": "3-b {} deleted", "2-9": "missing", "3-x": "missing", "3-7": `3-7 {"v":"loser"}`,
	} {
		if got := n.showRev("d", r); got != want {
			t.Errorf("rev %s: %s", r, got)
		}
	}
	for _, r := range []string{"2-9", "3-7", "5-unknown"} {
		if d, err := n.get(OpenRequest{ID: "d", Rev: rev(t, r), Latest: true}); shown(d, err) != `3-a {"v":"main"}` {
			t.Errorf("latest of %s: %s", r, shown(d, err))
		}
	}
	n.must(n.remove("d", "3-a"))
	if got := n.show("d"); got != `3-7 {"v":"loser"}` {
		t.Fatalf("the other one wins now: %s", got)
	}
	n.must(n.remove("d", "3-7"))
	if got := n.show("d"); got != "deleted" {
		t.Fatal(got)
	}
	if d, err := n.get(OpenRequest{ID: "d", AllowDeleted: true, HeadOnly: true}); err != nil || !d.Deleted || d.Body != nil {
		t.Fatalf("%+v %v", d, err)
	}
	n.check()
}

// Golden docs/06.
func TestOpenRevs(t *testing.T) {
	n := start(t, Options{})
	n.replicate("d", "3-a 9 8", `{"v":"main"}`)
	n.replicate("d", "3-7 9 8", `{"v":"loser"}`)
	n.replicate("d", "4-1 6 9 8!", `{"why":"tidied"}`)
	for _, c := range []struct {
		req  OpenRevsRequest
		want string
	}{
		{OpenRevsRequest{ID: "d", All: true}, "3-a 3-7 4-1!"},
		{OpenRevsRequest{ID: "none", All: true}, ""},
		{OpenRevsRequest{ID: "d", Revs: []doc.Rev{rev(t, "3-x"), rev(t, "3-7"), rev(t, "2-9")}}, "?3-x 3-7 ?2-9"},
		{OpenRevsRequest{ID: "d", Latest: true, Revs: []doc.Rev{rev(t, "3-6"), rev(t, "2-9")}}, "4-1! 3-a 3-7"},
		{OpenRevsRequest{ID: "none", Revs: []doc.Rev{rev(t, "3-7")}}, "?3-7"},
		{OpenRevsRequest{ID: "d", Revs: []doc.Rev{rev(t, "3-7"), rev(t, "3-x"), rev(t, "3-7"), rev(t, "3-a"), rev(t, "3-x")}}, "3-7 ?3-x 3-a"},
		{OpenRevsRequest{ID: "d", Latest: true, Revs: []doc.Rev{rev(t, "5-5"), rev(t, "3-7"), rev(t, "5-5"), rev(t, "2-9"), rev(t, "3-7")}}, "?5-5 3-7 3-a 4-1!"},
	} {
		c.req.Copy, c.req.WithPath = copyName, true
		got, err := n.OpenRevs(context.Background(), c.req)
		if err != nil {
			t.Fatal(err)
		}
		var words []string
		for _, r := range got {
			switch {
			case r.Doc == nil:
				words = append(words, "?"+r.Rev.String())
			case r.Doc.Deleted:
				words = append(words, r.Doc.Rev.String()+"!")
			default:
				words = append(words, r.Doc.Rev.String())
			}
			if r.Doc != nil && uint64(len(r.Doc.Revisions.IDs)) != r.Rev.Pos {
				t.Errorf("path of %s: %v", r.Rev, r.Doc.Revisions)
			}
		}
		if strings.Join(words, " ") != c.want {
			t.Errorf("%+v: got %v", c.req, words)
		}
	}
}

// A request that bounds what it reads gets the first document, or the first revision of one,
// however large it is, and is told of each that is left out.
func TestRevisionsWithinBytes(t *testing.T) {
	n := start(t, Options{})
	large := string(body(3000))
	for _, way := range []string{"1-a", "1-b", "1-c"} {
		n.replicate("many", way, large)
	}
	n.replicate("x", "1-a", large)
	n.replicate("y", "1-a", large)
	all := func(id string) OpenRevsRequest { return OpenRevsRequest{Copy: copyName, ID: id, All: true} }
	for _, tc := range []struct {
		maxBytes int
		want     string // of many, x, y: what is answered
	}{{0, "3 1 1"}, {20_000, "3 1 1"}, {1, "- - 1"}, {3500, "- 1 1"}, {8000, "- 1 1"}, {13_000, "3 1 1"}} {
		reqs := []OpenRevsRequest{all("y"), all("many"), all("x")}
		got, err := n.OpenRevsMany(context.Background(), copyName, reqs, tc.maxBytes)
		if err != nil {
			t.Fatal(err)
		}
		var words []string
		for _, i := range []int{1, 2, 0} {
			switch {
			case fault.Is(got[i].Err, fault.RequestTooLarge):
				words = append(words, "-")
			case got[i].Err != nil:
				t.Fatal(got[i].Err)
			default:
				words = append(words, strconv.Itoa(len(got[i].Results)))
			}
		}
		if text := strings.Join(words, " "); text != tc.want {
			t.Errorf("%d bytes: %s, want %s", tc.maxBytes, text, tc.want)
		}
		one := all("many")
		one.MaxBytes = tc.maxBytes
		revs, err := n.OpenRevs(context.Background(), one)
		if within := tc.maxBytes == 0 || tc.maxBytes > 9000; within != (err == nil) || within != (len(revs) == 3) || !within && !fault.Is(err, fault.RequestTooLarge) {
			t.Errorf("%d bytes: %d revisions, %v", tc.maxBytes, len(revs), err)
		}
	}
	heads, revs := all("many"), all("many")
	heads.HeadOnly, heads.MaxBytes, revs.RevOnly, revs.MaxBytes = true, 3000, true, 3000
	for _, req := range []OpenRevsRequest{heads, revs} {
		if got, err := n.OpenRevs(context.Background(), req); err != nil || len(got) != 3 || got[0].Doc == nil || got[0].Doc.Body != nil {
			t.Errorf("without bodies: %+v, %v", got, err)
		}
	}
}

// Golden docs/12.
func TestStemming(t *testing.T) {
	n := start(t, Options{})
	limits := Limits{Revs: 3}
	update := func(newEdits bool, e Edit) EditResult {
		t.Helper()
		res, err := n.Decide(context.Background(), DecideRequest{Copy: copyName, NewEdits: newEdits, Edits: []Edit{e}, Limits: limits})
		if err != nil {
			t.Fatal(err)
		}
		return res[0]
	}
	var revs []string
	for i := range 4 {
		e := Edit{ID: "d", Body: body(i * 1000)}
		if i > 0 {
			e.Parent = rev(t, revs[i-1])
		}
		revs = append(revs, n.must(update(true, e)))
	}
	if got := n.showRev("d", revs[0]); got != "missing" {
		t.Fatalf("what was cut off: %s", got)
	}
	if got := n.showRev("d", revs[1]); !strings.HasPrefix(got, revs[1]) {
		t.Fatal(got)
	}
	if r := n.edit("d", revs[0], "{}"); !fault.Is(r.Err, fault.Conflict) {
		t.Fatalf("update from what was cut off: %v", r.Err)
	}
	update(false, replicated(t, "r", "6-6 5 4 3 2 1", "{}"))
	update(false, replicated(t, "r", "4-e 3 2 1", "{}"))
	d, err := n.get(OpenRequest{ID: "r", Revs: true, Conflicts: true})
	if err != nil || len(d.Revisions.IDs) != 3 || len(d.Conflicts) != 1 {
		t.Fatalf("%+v %v", d, err)
	}
	limits.Revs = 1
	r5 := n.must(update(true, Edit{ID: "d", Parent: rev(t, revs[3]), Body: []byte("{}")}))
	r6 := n.must(update(true, Edit{ID: "d", Parent: rev(t, r5), Deleted: true, Body: []byte("{}")}))
	r7 := n.must(update(true, Edit{ID: "d", Body: []byte("{}")}))
	if !strings.HasPrefix(r7, "7-") || n.showRev("d", r6) != "missing" {
		t.Fatalf("re-created as %s", r7)
	}
	n.check()
}

// Golden attachments/03.
func TestAttachmentStubs(t *testing.T) {
	n := start(t, Options{})
	content := func(name, data string) EditAttachment {
		return EditAttachment{
			Attachment: doc.Attachment{Name: name, ContentType: "x/y", Length: int64(len(data)), StoredLength: int64(len(data)), Digest: [16]byte{data[0]}},
			Data:       []byte(data),
		}
	}
	stub := func(name string) EditAttachment {
		return EditAttachment{Attachment: doc.Attachment{Name: name}, Stub: true}
	}
	put := func(parent string, atts ...EditAttachment) (EditResult, error) {
		t.Helper()
		res, err := n.Decide(context.Background(), DecideRequest{
			Copy: copyName, NewEdits: true,
			Edits: []Edit{{ID: "good", Body: []byte("{}")}, {ID: "d", Parent: rev(t, parent), Body: []byte("{}"), Atts: atts}},
		})
		if err != nil {
			return EditResult{}, err
		}
		return res[1], nil
	}
	if _, err := put("", stub("a")); !fault.Is(err, fault.MissingStub) || fault.Reason(err) != "Invalid attachment stub in d for a" {
		t.Fatalf("a stub in a new document: %v", err)
	}
	if got := n.show("good"); got != "missing" {
		t.Fatalf("a bad stub refuses the whole request, but: %s", got)
	}
	res, err := put("", content("a", "A"), content("b", "B"))
	if err != nil || res.Err != nil {
		t.Fatal(err, res.Err)
	}
	r1 := res.Rev.String()
	res, err = put(r1, stub("a"))
	if err != nil || res.Err != nil {
		t.Fatal(err, res.Err)
	}
	r2 := res.Rev.String()
	d, err := n.get(OpenRequest{ID: "d"})
	if err != nil || len(d.Atts) != 1 || d.Atts[0].RevPos != 1 || d.Atts[0].ContentType != "x/y" {
		t.Fatalf("%+v %v", d, err)
	}
	if got := n.read("d", d.Atts[0].Key); got != "A" {
		t.Fatalf("content %q", got)
	}
	if _, err := put(r2, stub("a"), stub("b")); !fault.Is(err, fault.MissingStub) {
		t.Fatalf("a stub of what is no longer there: %v", err)
	}
	if res, err := put(r1, stub("b")); err != nil || !fault.Is(res.Err, fault.Conflict) {
		t.Fatalf("the conflict comes before the stub: %v %v", res.Err, err)
	}
	// Replicated: the nearest ancestor that is stored has it.
	e := replicated(t, "d", "9-x y", "{}")
	e.Atts = []EditAttachment{stub("a")}
	if _, err := n.Decide(context.Background(), DecideRequest{Copy: copyName, Edits: []Edit{e}}); !fault.Is(err, fault.MissingStub) {
		t.Fatalf("a stub on an unknown branch: %v", err)
	}
	e.Path = doc.Path{Start: 5, IDs: []string{"q", "p", "o", d.Rev.ID}}
	res = n.edits(false, e)[0]
	if res.Err != nil {
		t.Fatal(res.Err)
	}
	d, err = n.get(OpenRequest{ID: "d"})
	if err != nil || d.Rev != rev(t, "5-q") || len(d.Atts) != 1 || n.read("d", d.Atts[0].Key) != "A" {
		t.Fatalf("%+v %v", d, err)
	}
	n.check()
}
