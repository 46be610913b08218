package httpapi

import (
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"divan/cluster/config"
	"divan/httpapi/apitest"
)

// TestAccessLog looks at the line of a request: the peer is the one that a
// trusted proxy names, and the query string, which may hold secrets, is not in
// it.
func TestAccessLog(t *testing.T) {
	for header, peer := range map[string]string{"": "192.0.2.1", "X-Forwarded-For": "198.51.100.7"} {
		sink, logs := observer.New(zap.InfoLevel)
		d := apitest.FrontDeps(t, config.Values{"chttpd": {"peer_header": header}})
		d.Logger = zap.New(sink)
		a, err := New(d)
		apitest.Must(t, err)
		apitest.Ask(t, a, "GET /_up?secret=1", "", "X-Forwarded-For: 203.0.113.9, 198.51.100.7", "X-Couch-Request-ID: abc")
		if logs.Len() != 1 {
			t.Fatalf("logged %v", logs.All())
		}
		fields := logs.All()[0].ContextMap()
		for name, want := range map[string]any{
			"peer": peer, "path": "/_up", "method": "GET", "status": int64(200), "request": "abc", "user": "-",
		} {
			if fields[name] != want {
				t.Errorf("peer_header %q: %s is %v, want %v", header, name, fields[name], want)
			}
		}
	}
}
