package auth

import (
	"testing"

	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

func TestValidateReplication(t *testing.T) {
	const ends = `"source":"http://h/a","target":{"url":"https://h/b"}`
	for body, want := range map[string]string{
		`{` + ends + `}`: "",
		`{` + ends + `,"continuous":true,"create_target":null,"filter":"a/b","query_params":{},"proxy":"http://p"}`: "",
		`{` + ends + `,"proxy":null,"source_proxy":"http://p","target_proxy":null,"filter":"a/b","selector":null}`:  "",
		`{"_replication_state":"failed"}`:                             "",
		`{"_replication_state":"completed"}`:                          "Missing replicator database",
		`{"target":"http://h/b"}`:                                     "Missing replicator database",
		`{"source":"http://h/a"}`:                                     "Missing replicator database",
		`{"source":"a","target":"http://h/b"}`:                        "local_endpoints_not_supported",
		`{"source":"http://h/a","target":"b"}`:                        "local_endpoints_not_supported",
		`{"source":"http://","target":"http://h/b"}`:                  "endpoint has an invalid url",
		`{"source":{"a":"b"},"target":"http://h/b"}`:                  "endpoint has an invalid url",
		`{"source":{"url":"ftp://h/a"},"target":"b"}`:                 "endpoint has an invalid url",
		`{"source":1,"target":"http://h/b"}`:                          "endpoint must be a string or an object",
		`{` + ends + `,"continuous":"yes"}`:                           "`continuous` must be a boolean",
		`{` + ends + `,"create_target":1}`:                            "`create_target` must be a boolean",
		`{` + ends + `,"create_target_params":[]}`:                    "`create_target_params` must be an object",
		`{` + ends + `,"winning_revs_only":"x"}`:                      "`winning_revs_only` must be a boolean",
		`{` + ends + `,"doc_ids":{"a":1}}`:                            "`doc_ids` must be an array",
		`{` + ends + `,"selector":"x"}`:                               "`selector` must be an object",
		`{` + ends + `,"filter":"a/b","selector":{}}`:                 "`doc_ids`, `filter` and `selector` are mutually exclusive",
		`{` + ends + `,"filter":"a/b","query_params":""}`:             "`query_params` must be an object",
		`{` + ends + `,"proxy":"http://p","target_proxy":"http://p"}`: "`proxy` is mutually exclusive with `source_proxy` and `target_proxy`",
	} {
		err := ValidateReplication(shard.ValidateRequest{New: &shard.Doc{ID: "x", Body: []byte(body)}})
		if fault.Reason(err) != want || want != "" && !fault.Is(err, fault.Forbidden) {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
	if err := ValidateReplication(shard.ValidateRequest{New: &shard.Doc{ID: "x", Deleted: true, Body: []byte("{}")}}); err != nil {
		t.Errorf("a deletion: %v", err)
	}
}

func TestScreenReplication(t *testing.T) {
	const body = `{"source":"http://u:12/s3cr@h/a","target":{"url":"https://u:p@h/b","headers":{"Authorization":"x"},"auth":{"basic":{}}},"proxy":"http://u:p@h","owner":"bob","continuous":true}`
	screened := func(u shard.User, admin bool) *shard.Doc {
		d := &shard.Doc{ID: "x", Rev: doc.Rev{Pos: 2, ID: "abc"}, Body: []byte(body)}
		if err := ScreenReplication(d, u, admin); err != nil {
			t.Fatal(err)
		}
		return d
	}
	for _, d := range []*shard.Doc{screened(shard.User{Name: "bob"}, false), screened(shard.User{Name: "eve"}, true)} {
		if string(d.Body) != body || d.Rev.ID != "abc" {
			t.Errorf("%s", d.Body)
		}
	}
	d := screened(shard.User{Name: "eve"}, false)
	const want = `{"source":"http://h/a","target":{"url":"https://h/b"},"proxy":"http://h","owner":"bob","continuous":true}`
	if string(d.Body) != want || d.Rev.Pos != 2 || d.Rev.ID == "abc" {
		t.Errorf("%s of %s", d.Body, d.Rev)
	}
}

func TestReplicationWrite(t *testing.T) {
	const ends = `"source":"http://h/a","target":"http://h/b"`
	for _, c := range []struct {
		body  string
		user  shard.User
		admin bool
		want  string
	}{
		{`{` + ends + `}`, shard.User{Name: "bob"}, false, `{` + ends + `,"owner":"bob"}`},
		{`{` + ends + `,"owner":null}`, shard.User{Name: "bob"}, false, `{` + ends + `,"owner":"bob"}`},
		{`{` + ends + `,"owner":"bob"}`, shard.User{Name: "bob"}, false, `{` + ends + `,"owner":"bob"}`},
		{`{` + ends + `,"owner":"eve"}`, shard.User{Name: "bob"}, true, `{` + ends + `,"owner":"eve"}`},
		{`{` + ends + `,"owner":"eve"}`, shard.User{Name: "bob"}, false, textOthers},
		{`{` + ends + `}`, shard.User{Anonymous: true}, false, `{` + ends + `}`},
		{`{"source":"a"}`, shard.User{Name: "bob"}, true, "Missing replicator database"},
	} {
		body, err := ReplicationWrite{Body: []byte(c.body), User: c.user, Admin: c.admin}.Prepare()
		if got := string(body) + fault.Reason(err); got != c.want {
			t.Errorf("%s by %+v: %s, want %s", c.body, c.user, got, c.want)
		}
	}
}

// What looks like no URL may hold a password all the same.
func TestWithoutAccount(t *testing.T) {
	for text, want := range map[string]string{
		"http://bob:secret@h:1/db": "http://h:1/db", "http://h/db": "http://h/db", "bob:secret@proxy:3128": "proxy:3128",
		"http://bob:se cret@h/%zz": "h/%zz", "a@b@c": "c", "plain": "plain",
	} {
		if got := withoutAccount(text); got != want {
			t.Errorf("%s is shown as %s", text, got)
		}
	}
}
