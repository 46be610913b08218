package docformat

import (
	"testing"

	"divan/shard"
	"divan/storage/doc"
)

func mustRev(t *testing.T, text string) doc.Rev {
	t.Helper()
	rev, err := doc.ParseRev(text)
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

// TestAppendDocOrder has the raw text of golden docs/05: every member at once.
func TestAppendDocOrder(t *testing.T) {
	const a, b, c = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "77777777777777777777777777777777", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	r3a, r2, r1 := mustRev(t, "3-"+a), mustRev(t, "2-99999999999999999999999999999999"), mustRev(t, "1-88888888888888888888888888888888")
	d := &shard.Doc{
		ID: "d", Rev: r3a, Body: []byte(`{"v":"main"}`),
		Revisions: doc.Path{Start: 3, IDs: []string{r3a.ID, r2.ID, r1.ID}},
		RevsInfo: []shard.RevInfo{
			{Rev: r3a, Status: shard.StatusAvailable}, {Rev: r2, Status: shard.StatusMissing}, {Rev: r1, Status: shard.StatusMissing},
		},
		Conflicts: []doc.Rev{mustRev(t, "3-"+b)}, DeletedConflicts: []doc.Rev{mustRev(t, "3-"+c)}, LocalSeq: 3,
	}
	const want = `{"_id":"d","_rev":"3-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","v":"main","_revisions":{"start":3,"ids":["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","99999999999999999999999999999999","88888888888888888888888888888888"]},"_revs_info":[{"rev":"3-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","status":"available"},{"rev":"2-99999999999999999999999999999999","status":"missing"},{"rev":"1-88888888888888888888888888888888","status":"missing"}],"_conflicts":["3-77777777777777777777777777777777"],"_deleted_conflicts":["3-bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"],"_local_seq":3}`
	if got := string(Style{Revisions: true}.Append(nil, d)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	d.Revisions.Start, d.RevsInfo, d.Conflicts, d.DeletedConflicts, d.LocalSeq, d.Deleted = 3, nil, nil, nil, 0, true
	const tombstone = `{"_id":"d","_rev":"3-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","v":"main","_deleted":true}`
	if got := string(Style{}.Append(nil, d)); got != tombstone {
		t.Errorf("got  %s\nwant %s", got, tombstone)
	}
}

func TestAppendDocAttachments(t *testing.T) {
	d, _ := goldenDoc(t)
	d.Atts[1].Gzip, d.Atts[1].StoredLength = true, 7
	d.Revisions = doc.Path{Start: 2, IDs: []string{d.Rev.ID, mustRev(t, "1-11111111111111111111111111111111").ID}}
	one := `"one.bin":{"content_type":"application/octet-stream","revpos":1,"digest":"md5-iwTV43ddKY54RV78XKQE1Q==","length":5,`
	two := `"two.png":{"content_type":"image/png","revpos":2,"digest":"md5-6d0nlwGMrXkYbgPoxa7I3A==","length":8,`
	for _, c := range []struct {
		name, want string
		style      Style
	}{
		{"stubs", one + `"stub":true},` + two + `"stub":true}`, Style{}},
		{"encoding", one + `"stub":true},` + two + `"stub":true,"encoding":"gzip","encoded_length":7}`, Style{EncodingInfo: true}},
		{"follows", one + `"follows":true},` + two + `"follows":true}`, Style{Attachments: true, Follows: true}},
		{
			"since the parent", one + `"stub":true},` + two + `"follows":true}`,
			Style{Attachments: true, Follows: true, Since: []doc.Rev{mustRev(t, "1-11111111111111111111111111111111")}},
		},
		{
			"since itself", one + `"stub":true},` + two + `"stub":true}`,
			Style{Attachments: true, Follows: true, Since: []doc.Rev{mustRev(t, "1-11111111111111111111111111111111"), d.Rev}},
		},
		{
			"since something unknown", one + `"follows":true},` + two + `"follows":true}`,
			Style{Attachments: true, Follows: true, Since: []doc.Rev{mustRev(t, "1-0123456789abcdef0123456789abcdef")}},
		},
	} {
		want := `{"_id":"d","_rev":"2-22222222222222222222222222222222","v":1,"_attachments":{` + c.want + `}}`
		if got := string(c.style.Append(nil, d)); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, want)
		}
	}
}

// What a client has may come in any order, and more than one of it be in the
// history of the document: the newest counts.
func TestKnownPos(t *testing.T) {
	path := doc.Path{Start: 5, IDs: []string{"e", "d", "c"}}
	for _, tc := range []struct {
		since []doc.Rev
		want  uint64
	}{
		{nil, 0},
		{[]doc.Rev{{Pos: 3, ID: "c"}, {Pos: 4, ID: "d"}, {Pos: 3, ID: "c"}}, 4},
		{[]doc.Rev{{Pos: 5, ID: "d"}, {Pos: 2, ID: "b"}, {Pos: 6, ID: "e"}, {Pos: 0, ID: "c"}}, 0},
		{[]doc.Rev{{Pos: 5, ID: "e"}}, 5},
	} {
		if got := (Style{Attachments: true, Since: tc.since}).knownPos(path); got != tc.want {
			t.Errorf("%v: %d, want %d", tc.since, got, tc.want)
		}
	}
}

func BenchmarkAppendDoc(b *testing.B) {
	body := make([]byte, 0, 1100)
	body = append(body, `{"text":"`...)
	for range 1000 {
		body = append(body, 'x')
	}
	body = append(body, `"}`...)
	d := &shard.Doc{ID: "0123456789abcdef", Rev: doc.Rev{Pos: 1, ID: "0123456789abcdef"}, Body: body}
	buf := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		buf = Style{}.Append(buf[:0], d)
	}
}
