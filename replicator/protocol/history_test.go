package protocol

import (
	"fmt"
	"testing"

	"divan/replicator/endpoint"
)

func checkpointOf(t *testing.T, text string) *history {
	t.Helper()
	h, err := parseHistory([]byte(text), "0-1")
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return &h
}

func TestCommon(t *testing.T) {
	const both = `{"session_id":"s3","source_last_seq":"30-x","history":[
		{"session_id":"s3","recorded_seq":"30-x"},{"session_id":"s2","recorded_seq":"20-x"},{"session_id":"s1","recorded_seq":"10-x"}]}`
	for _, c := range []struct {
		name, source, target string
		start                endpoint.Seq
		sessions             int
	}{
		{"the same", both, both, `"30-x"`, 3},
		{"none", `{}`, `{}`, "", 0},
		{"one side", both, `{}`, "", 0},
		{"others' documents", `{"history":7}`, `{"history":[1,null,{}],"session_id":true}`, "", 0},
		{"the target is older", both, `{"session_id":"s2","source_last_seq":"20-x","history":[{"session_id":"s2","recorded_seq":"20-x"}]}`, `"20-x"`, 2},
		{"the source is older", `{"session_id":"s1","history":[{"session_id":"s1","recorded_seq":"10-x"}]}`, both, `"10-x"`, 1},
		{"cut between both", both, `{"session_id":"s3","source_last_seq":"25-x","history":[]}`, `"25-x"`, 3},
		{
			"the newest in common is not the newest of either",
			`{"session_id":"a","history":[{"session_id":"a","recorded_seq":9},{"session_id":"s","recorded_seq":[5,"g1AA"]}]}`,
			`{"session_id":"b","history":[{"session_id":"b","recorded_seq":8},{"session_id":"s","recorded_seq":[4,"g1AA"]}]}`,
			`[4,"g1AA"]`, 1,
		},
		{"the beginning", `{"session_id":"s","source_last_seq":0}`, `{"session_id":"s","source_last_seq":0}`, "", 0},
	} {
		start, sessions := common(checkpointOf(t, c.source), checkpointOf(t, c.target))
		if start != c.start || len(sessions) != c.sessions {
			t.Errorf("%s: %s and %d sessions", c.name, start, len(sessions))
		}
	}
	if _, err := parseHistory([]byte(`{"history":`), ""); err == nil {
		t.Error("half a document is read")
	}
}

func TestResume(t *testing.T) {
	var s Stats
	r := record{text: []byte(`{"missing_checked":1,"missing_found":2,"docs_read":3,"docs_written":4,"doc_write_failures":5,"bulk_get_docs":6,"bulk_get_attempts":"x"}`)}
	r.resume(&s)
	if got := fmt.Sprint(s); got != "{1 2 3 4 5 6 0 0   }" {
		t.Error(got)
	}
}
