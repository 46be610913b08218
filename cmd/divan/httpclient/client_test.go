package httpclient

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParseServer(t *testing.T) {
	for text, want := range map[string]Server{
		"old":                              {URL: "http://old"},
		"old:5984":                         {URL: "http://old:5984"},
		"https://a:p%40ss@old/couch/?x=1#": {URL: "https://old/couch", User: "a", Password: "p@ss"},
		"http://a@[::1]:5984/":             {URL: "http://[::1]:5984", User: "a"},
	} {
		got, err := ParseServer(text)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "http://", "ftp://x", "http://a:secret@:5984", "http://a:secret@old:x"} {
		if got, err := ParseServer(text); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}

// TestCallAgain asks a server that has too much to do, when it may.
func TestCallAgain(t *testing.T) {
	for _, tc := range []struct {
		retry  bool
		status int
		asked  int
	}{{true, 503, 2}, {true, 429, 2}, {false, 503, 1}, {true, 500, 1}} {
		asked := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if asked++; asked == 1 {
				w.WriteHeader(tc.status)
			}
		}))
		c := New(Server{URL: server.URL}, Options{UserAgent: "test"})
		c.Retry = tc.retry
		if _, err := c.Call(t.Context(), http.MethodGet, "/", nil); asked != tc.asked || (err == nil) != (tc.asked == 2) {
			t.Errorf("%+v: asked %d times, %v", tc, asked, err)
		}
		c.CloseIdleConnections()
		server.Close()
	}
}
