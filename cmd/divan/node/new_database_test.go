package node

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"divan/cluster/meta"
)

// TestNewDatabaseIsUsedAtOnce: a database is in the metadata, and no node has been told to
// make its copies. Each node that has heard of it can use it, those that are to hold
// copies as well as one that is not, and the copies are complete.
func TestNewDatabaseIsUsedAtOnce(t *testing.T) {
	asks := []struct{ method, path, body, want string }{
		{"PUT", "/%s/frog", `{}`, "201"},
		{"POST", "/%s", `{}`, "201"},
		{"PUT", "/%s/eel/skin", strings.Repeat("scale", 40000), "201"},
		{"POST", "/%s/_bulk_docs", `{"docs":[{"_id":"newt"},{"_id":"toad"},{"_id":"eft"}]}`, `201 [{"ok":true,"id":"newt"`},
		{"PUT", "/%s/_local/checkpoint", `{}`, "201"},
		{"POST", "/%s/_purge", `{"newt":["1-00000000000000000000000000000000"]}`, `201 {"purge_seq":null,"purged":{"newt":[]}`},
		{"GET", "/%s", "", "200"},
		{"GET", "/%s/_all_docs", "", `200 {"total_rows":0`},
		{"POST", "/%s/_all_docs", `{"keys":["nobody"]}`, `200 {"total_rows":0`},
		{"GET", "/%s/_changes", "", `200 {"results":[`},
		{"GET", "/%s/nobody", "", `404 {"error":"not_found","reason":"missing"}`},
		{"GET", "/%s/nobody?open_revs=all", "", `404 {"error":"not_found","reason":"missing"}`},
		{"GET", "/%s/_local/nobody", "", `404 {"error":"not_found","reason":"missing"}`},
		{"POST", "/%s/_bulk_get", `{"docs":[{"id":"nobody"}]}`, `200 {"results":[{"id":"nobody","docs":[{"error":{"id":"nobody","rev":"undefined","error":"not_found"`},
		{"POST", "/%s/_revs_diff", `{"frog":["1-a"]}`, `200 {"frog":{"missing":["1-a"]}}`},
		{"GET", "/%s/_purged_infos", "", `200 {"purged_infos":[]`},
		{"POST", "/%s/_compact", "", "202"},
		{"POST", "/%s/_ensure_full_commit", "", "201"},
		{"POST", "/_dbs_info", `{"keys":["%s"]}`, `200 [{"key":"%s","info"`},
	}
	inTown(t, func(w *town) {
		a, b, c := w.seeded()
		homes := []*home{a, b, c}
		born := func(name string, n int) *meta.Database {
			m, err := a.node.meta.CreateDatabase(w.t.Context(), meta.Create{Name: name, ID: meta.NewDatabaseID(), Q: 2, N: n})
			if err != nil {
				t.Fatal(err)
			}
			w.eventually("all have heard of "+name, func() bool {
				for _, h := range homes {
					if _, ok := h.node.meta.Database(name); !ok {
						return false
					}
				}
				return true
			})
			return m
		}
		for _, n := range []int{3, 2} {
			if n == 2 { // from here on one node holds nothing
				if err := a.node.meta.SetDraining(w.t.Context(), c.name, true); err != nil {
					t.Fatal(err)
				}
			}
			for i, ask := range asks {
				db := fmt.Sprintf("pond%d-%d", n, i)
				path, body, want := strings.ReplaceAll(ask.path, "%s", db), strings.ReplaceAll(ask.body, "%s", db), strings.ReplaceAll(ask.want, "%s", db)
				m := born(db, n)
				var asking sync.WaitGroup
				asking.Go(func() {
					if got := c.ask(ask.method, path, body); !strings.HasPrefix(got, want) {
						t.Errorf("%s %s: %s, want %s", ask.method, path, got, want)
					}
				})
				asking.Go(func() { b.want("GET", "/"+db+"/nobody", "", `404 {"error":"not_found","reason":"missing"}`) })
				asking.Wait()
				for _, h := range homes {
					for _, name := range m.CopiesOn(h.name) {
						w.eventually(name+" is there", func() bool { return h.node.local.Copies.Has(name) })
					}
				}
			}
		}
	})
}
