package httpapi

import (
	"testing"

	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
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
	if got := string(docStyle{revisions: true}.appendDoc(nil, d)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	d.Revisions.Start, d.RevsInfo, d.Conflicts, d.DeletedConflicts, d.LocalSeq, d.Deleted = 3, nil, nil, nil, 0, true
	const tombstone = `{"_id":"d","_rev":"3-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","v":"main","_deleted":true}`
	if got := string(docStyle{}.appendDoc(nil, d)); got != tombstone {
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
		style      docStyle
	}{
		{"stubs", one + `"stub":true},` + two + `"stub":true}`, docStyle{}},
		{"encoding", one + `"stub":true},` + two + `"stub":true,"encoding":"gzip","encoded_length":7}`, docStyle{encoding: true}},
		{"follows", one + `"follows":true},` + two + `"follows":true}`, docStyle{attachments: true, follows: true}},
		{
			"since the parent", one + `"stub":true},` + two + `"follows":true}`,
			docStyle{attachments: true, follows: true, since: []doc.Rev{mustRev(t, "1-11111111111111111111111111111111")}},
		},
		{
			"since itself", one + `"stub":true},` + two + `"stub":true}`,
			docStyle{attachments: true, follows: true, since: []doc.Rev{mustRev(t, "1-11111111111111111111111111111111"), d.Rev}},
		},
		{
			"since something unknown", one + `"follows":true},` + two + `"follows":true}`,
			docStyle{attachments: true, follows: true, since: []doc.Rev{mustRev(t, "1-0123456789abcdef0123456789abcdef")}},
		},
	} {
		want := `{"_id":"d","_rev":"2-22222222222222222222222222222222","v":1,"_attachments":{` + c.want + `}}`
		if got := string(c.style.appendDoc(nil, d)); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, want)
		}
	}
}

func TestFeedFields(t *testing.T) {
	object := `{"_id":"c","n":3,"a":{"b":{"x":null},"c":1},"t":[5,6]}`
	for fields, want := range map[string]string{
		"":                    object,
		`[]`:                  object,
		`[ "n" , "_id" ]`:     `{"n":3,"_id":"c"}`,
		`["a.b","t.1","q.a"]`: `{"a":{"b":{"x":null}},"t":{"1":6}}`,
	} {
		var text []byte
		if fields != "" {
			text = []byte(fields)
		}
		f, err := feedFields(text)
		if got := string(f.Append(nil, []byte(object))); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", fields, got, err, want)
		}
	}
	const notAList = "Selector error: fields must be JSON array"
	for text, want := range map[string]string{
		`{}`: notAList, `"a"`: notAList, `null`: notAList, `[1]`: "Invalid JSON for field spec: 1", `["a..b"]`: "Invalid field name: a..b",
	} {
		if _, err := feedFields([]byte(text)); !fault.Is(err, fault.BadRequest) || fault.Reason(err) != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestCheckDesignDoc(t *testing.T) {
	for body, want := range map[string]string{
		`{}`:                                   "",
		`{"views":{}}`:                         "",
		`{"views":{"v":{"map":"f","fold":5}}}`: "",
		`{"views":{"lib":{"a":1}}}`:            "",
		`{"language":"cobol","views":{"v":{"map":"x","reduce":"_x"}}}`:    "",
		`{"language":"query","views":{"v":{"map":{},"reduce":"_count"}}}`: "",
		`{"views":{"v":{"map":"f","reduce":"_summary"}}}`:                 "",
		`{"views":5}`:                                      "`views` field must have object type",
		`{"views":{"v":{"reduce":"_count"}}}`:              "View `v` must contain map function",
		`{"views":{"v":"f"}}`:                              "`views.v` field must have object type",
		`{"views":{"v":{"map":5}}}`:                        "`views.v.map` field must have string type",
		`{"views":{"v":{"map":"f","reduce":null}}}`:        "`views.v.reduce` field must have string type",
		`{"views":{"lib":"x","v":{"map":"f"}}}`:            "`views.lib` field must have object type",
		`{"language":1,"views":{}}`:                        "`language` field must have string type",
		`{"options":{"local_seq":1}}`:                      "`options.local_seq` field must have boolean type",
		`{"options":{"partitioned":true}}`:                 "partitioned option cannot be true in a non-partitioned database.",
		`{"filters":{"f":1}}`:                              "`filters.f` field must have string or object type",
		`{"rewrites":7}`:                                   "`rewrites` field must have array or string type",
		`{"views":{"v":{"map":"f","reduce":"_top_0"}}}`:    "rank value must be between 1 and 100",
		`{"views":{"v":{"map":"f","reduce":"_bottom_x"}}}`: "invalid rank reducer",
		`{"views":{"v":{"map":"f","reduce":"_average"}}}`:  "`_average` is not a supported reduce function.",
	} {
		got := ""
		if err := checkDesignDoc([]byte(body), false); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}
