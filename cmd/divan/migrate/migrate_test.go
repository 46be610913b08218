package migrate

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
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

func TestChoose(t *testing.T) {
	names := []string{"_dbs", "_replicator", "_users", "a", "a/_replicator", "ab", "b.c", "bxc"}
	for _, tc := range []struct {
		cfg          Config
		take         []string
		replications []string
	}{
		{Config{}, []string{"_users", "a", "ab", "b.c", "bxc"}, []string{"_replicator", "a/_replicator"}},
		{Config{Replications: true}, []string{"_users", "a", "ab", "b.c", "bxc", "_replicator", "a/_replicator"}, nil},
		{Config{Only: []string{"a*", "_users"}}, []string{"_users", "a", "ab"}, []string{"a/_replicator"}},
		{Config{Only: []string{"b.c"}}, []string{"b.c"}, nil},
		{Config{Exclude: []string{"*a*", "_u*"}}, []string{"b.c", "bxc"}, nil},
	} {
		if got := choose(names, &tc.cfg); !reflect.DeepEqual(got.take, tc.take) || !reflect.DeepEqual(got.replications, tc.replications) {
			t.Errorf("%+v: %+v", tc.cfg, got)
		}
	}
}

// TestDatabases lists those of servers with and without pages.
func TestDatabases(t *testing.T) {
	for _, paged := range []bool{true, false} {
		for _, n := range []int{0, 1, pageSize - 1, pageSize, pageSize + 1, 3*pageSize - 2, 3 * pageSize} {
			all := make([]string, n)
			for i := range all {
				all[i] = fmt.Sprintf("db%05d", i)
			}
			asked := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked++
				page := all
				if paged {
					var start string
					_ = json.Unmarshal([]byte(r.FormValue("startkey")), &start) // none at first
					for len(page) > 0 && page[0] < start {
						page = page[1:]
					}
					limit, _ := strconv.Atoi(r.FormValue("limit"))
					page = page[:min(limit, len(page))]
				}
				_ = json.NewEncoder(w).Encode(page)
			}))
			s := newSide(Server{URL: server.URL}, false, "test")
			got, err := s.databases(t.Context())
			if err != nil || len(got) != n || n > 0 && !reflect.DeepEqual(got, all) || asked > 1+n/(pageSize-1) {
				t.Errorf("paged %v, %d databases: got %d with %d requests, %v", paged, n, len(got), asked, err)
			}
			s.client.CloseIdleConnections()
			server.Close()
		}
	}
}

// TestCallAgain asks a server that has too much to do, once it has been met.
func TestCallAgain(t *testing.T) {
	for _, tc := range []struct {
		met    bool
		status int
		asked  int
	}{{true, 503, 2}, {true, 429, 2}, {false, 503, 1}, {true, 500, 1}} {
		asked := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if asked++; asked == 1 {
				w.WriteHeader(tc.status)
			}
		}))
		s := newSide(Server{URL: server.URL}, false, "test")
		s.met = tc.met
		if _, err := s.call(t.Context(), http.MethodGet, "/", nil); asked != tc.asked || (err == nil) != (tc.asked == 2) {
			t.Errorf("%+v: asked %d times, %v", tc, asked, err)
		}
		s.client.CloseIdleConnections()
		server.Close()
	}
}
