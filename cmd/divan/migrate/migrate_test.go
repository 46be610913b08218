package migrate

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"testing"

	"go.uber.org/goleak"

	"divan/cmd/divan/httpclient"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
			s := newSide(httpclient.Server{URL: server.URL}, false, "test")
			got, err := s.databases(t.Context())
			if err != nil || len(got) != n || n > 0 && !reflect.DeepEqual(got, all) || asked > 1+n/(pageSize-1) {
				t.Errorf("paged %v, %d databases: got %d with %d requests, %v", paged, n, len(got), asked, err)
			}
			s.CloseIdleConnections()
			server.Close()
		}
	}
}
