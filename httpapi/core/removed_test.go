package core_test

import (
	"testing"

	"divan/httpapi/core"
)

// What a node that was taken out of its cluster still answers is about its own
// process only.
func TestAboutProcess(t *testing.T) {
	a := coreAPI(t, nil)
	for line, want := range map[string]bool{
		"GET /": true, "HEAD /_up": true, "GET /_up": true, "GET /favicon.ico": true, "GET /_node/_local": true,
		"GET /_node/_local/_system": true, "GET /_node/divan@127.0.0.1/_stats/couchdb": true, "GET /_node/_local/_prometheus": true,
		"GET /_node/other@127.0.0.1/_system": false, "GET /_node/_local/_config": false, "GET /_node/_local/_nodes/x": false,
		"POST /_node/_local/_restart": false, "GET /_node": false, "GET /_uuids": false, "GET /db": false, "GET /_session": false,
		"GET /_membership": false, "GET /_all_dbs": false, "POST /_up": false, "GET /db/_up": false,
	} {
		if c, _ := testCall(t, a, line, ""); core.IsAboutProcess(c) != want {
			t.Errorf("%s: %v", line, !want)
		}
	}
}
