package auth

import (
	"testing"

	"divan/shard"
	"divan/storage/fault"
)

func TestValidateReplication(t *testing.T) {
	const ends = `"source":"http://h/a","target":{"url":"https://h/b"}`
	for body, want := range map[string]string{
		`{` + ends + `}`: "",
		`{` + ends + `,"continuous":true,"create_target":null,"filter":"a/b","query_params":{},"proxy":"http://p"}`: "",
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
