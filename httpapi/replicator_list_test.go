package httpapi

import (
	"strings"
	"testing"

	"divan/cluster/config"
)

// The list of replications in a database behind a prefix is for every account that may
// read it: without credentials, but for those of the account's own documents. Requests
// that look into documents are for administrators.
func TestListOfReplications(t *testing.T) {
	s := newSite(t, config.Values{"couchdb": {"default_security": "everyone"}})
	const (
		ada  = "Authorization: Basic YWRhOnB3" // ada:pw
		bob  = "Authorization: Basic Ym9iOnB3"
		db   = "/team%2F_replicator"
		list = db + "/_all_docs?include_docs=true"
	)
	for _, name := range []string{"ada", "bob"} {
		s.text(201, "PUT", "/_users/org.couchdb.user:"+name, `{"name":"`+name+`","type":"user","roles":[],"password":"pw"}`)
	}
	s.text(201, "PUT", db, nil)
	s.text(200, "PUT", db+"/_security", `{"members":{"names":["ada","bob"]}}`)
	job := `{"source":"http://u:hidden@h/a","target":"http://u:hidden@h/b","source_proxy":"http://u:hidden@h"}`
	s.text(201, "PUT", db+"/job", job, ada, jsonBody)

	for who, hidden := range map[string]bool{ada: false, bob: true, "Authorization: Basic YWRtOnBhc3M=": false} {
		for _, got := range []string{
			s.text(200, "GET", list, nil, who, jsonBody),
			s.text(200, "POST", list, `{"keys":["job"]}`, who, jsonBody),
			s.text(200, "POST", db+"/_all_docs/queries", `{"queries":[{"include_docs":true}]}`, who, jsonBody),
		} {
			if !strings.Contains(got, `"doc":{"_id":"job"`) || strings.Contains(got, "hidden") == hidden {
				t.Errorf("for %s: %s", who, got)
			}
		}
	}
	s.text(401, "POST", db+"/_find", `{"selector":{"source":{"$regex":"hidden"}}}`, bob, jsonBody)
	s.text(401, "GET", db+"/_changes?include_docs=true", nil, bob, jsonBody)
	s.text(201, "PUT", db+"/_local/checkpoint", `{"of":"job"}`, "Authorization: Basic YWRtOnBhc3M=", jsonBody)
	if got := s.text(401, "POST", list, `{"keys":["_local/checkpoint"]}`, bob, jsonBody); strings.Contains(got, `"of"`) {
		t.Errorf("a local document: %s", got)
	}
	s.text(401, "GET", list, nil, "Authorization: Basic ZXZlOnB3")
	s.text(401, "GET", "/_replicator/_all_docs", nil, bob, jsonBody)
	s.text(401, "GET", "/_users/_all_docs", nil, bob, jsonBody)
}
