package replicator

import (
	"strings"
	"testing"
	"time"
)

func TestReaches(t *testing.T) {
	for _, c := range []struct {
		host, bound string
		want        bool
	}{
		{"127.0.0.1", "127.0.0.1", true},
		{"localhost", "127.0.0.1", true},
		{"LocalHost", "0.0.0.0", true},
		{"127.0.0.1", "::", true},
		{"::1", "::", true},
		{"10.0.0.1", "10.0.0.1", true},
		{"127.0.0.1", "10.0.0.1", false},
		{"localhost", "10.0.0.1", false},
		{"127.0.0.2", "127.0.0.1", false},
		{"10.0.0.1", "0.0.0.0", false},
		{"couch.example", "127.0.0.1", false},
	} {
		if got := reaches(c.host, c.bound); got != c.want {
			t.Errorf("%s at %s: %v", c.host, c.bound, got)
		}
	}
}

func TestStored(t *testing.T) {
	for body, want := range map[string]string{
		`{"source":"http://u:p@h/a","target":{"url":"http://h/b"}}`: `{"database":"_replicator","doc_id":"x","id":null,"source":"http://h/a/","target":"http://h/b/",` +
			`"state":"initializing","error_count":0,"info":null,"start_time":null,"last_updated":null}`,
		`{"_replication_state":"failed","_replication_state_reason":"no luck","_replication_state_time":"2026-01-02T03:04:05Z"}`: `{"database":"_replicator",` +
			`"doc_id":"x","id":null,"source":null,"target":null,"state":"failed","error_count":1,"info":{"error":"no luck"},"start_time":null,"last_updated":"2026-01-02T03:04:05Z"}`,
		`{"source":"http://h/a","target":"http://h/b","_replication_state":"completed","_replication_stats":{"docs_read":2,"start_time":"2026-01-02T03:04:05Z"}}`: `{"database":"_replicator",` +
			`"doc_id":"x","id":null,"source":"http://h/a/","target":"http://h/b/","state":"completed","error_count":0,"info":{"docs_read":2},` +
			`"start_time":"2026-01-02T03:04:05Z","last_updated":null}`,
	} {
		if got := string(Stored("_replicator", "x", []byte(body)).JSON); got != want {
			t.Errorf("%s:\n%s, want\n%s", body, got, want)
		}
	}
}

// Only what a client wrote tells documents apart.
func TestClientText(t *testing.T) {
	base := clientText([]byte(`{"source":"a","target":"b"}`))
	if clientText([]byte(`{"source":"a","_replication_state":"error","_replication_id":"x","target":"b"}`)) != base {
		t.Error("what the server writes counts")
	}
	for _, other := range []string{`{"source":"a","target":"c"}`, `{"source":"a","target":"b","continuous":true}`, `{"source":"a\",\"target","b":"b"}`} {
		if clientText([]byte(other)) == base {
			t.Errorf("%s is the same", other)
		}
	}
}

// The id that a document tells goes with the passing state that told it, unless
// documents tell those; what ends the replication does not tell it.
func TestIDsInDocuments(t *testing.T) {
	for _, tc := range []struct {
		state   docState
		body    string
		passing bool
		keeps   bool
	}{
		{docState{name: Completed}, `{"_replication_id":"x","_replication_state":"triggered"}`, true, true},
		{docState{name: Completed}, `{"_replication_id":"x","_replication_state":"triggered"}`, false, false},
		{docState{name: Failed}, `{"_replication_id":"x","_replication_state":"error"}`, false, false},
		{docState{name: Failed}, `{"_replication_id":"x"}`, false, true},
		{docState{name: "triggered", id: "y"}, `{"_replication_id":"x"}`, true, false},
	} {
		if got := tc.state.keepsID([]byte(tc.body), tc.passing); got != tc.keeps {
			t.Errorf("%+v over %s: %t", tc.state, tc.body, got)
		}
	}
	for state, told := range map[*docState]bool{{name: Completed}: false, {name: "error", id: "y"}: true} {
		if got := strings.Contains(string(state.appendMembers(nil, time.Now())), `"_replication_id"`); got != told {
			t.Errorf("%s: %t", state.name, got)
		}
	}
}
