package node

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"divan/cluster/wire/simnet"
)

// TestReborn: databases are deleted and made again, and a node hears of it last.
// What is asked of it meanwhile is done with the new ones: nothing says that
// there is no such database, and no acknowledged document goes to the old one.
func TestReborn(t *testing.T) {
	inTown(t, func(w *town) {
		a, b, c := w.seeded()
		var leader *home
		var others []*home
		for _, h := range []*home{a, b, c} {
			if h.name == a.node.meta.Leader() {
				leader = h
			} else {
				others = append(others, h)
			}
		}
		late, third := others[0], others[1]
		third.want("PUT", "/pond?q=2", "", "201") // with copies on all
		if err := leader.node.meta.SetDraining(w.t.Context(), late.name, true); err != nil {
			t.Fatal(err)
		}
		third.want("PUT", "/lake?q=2&n=2", "", "201")
		asks := []struct{ method, path, body, want string }{
			{"PUT", "/%s/frog", `{}`, "201"},
			{"PUT", "/%s/eel/skin", strings.Repeat("scale", 40000), "201"},
			{"POST", "/%s/_bulk_docs", `{"docs":[{"_id":"newt"},{"_id":"toad"},{"_id":"eft"}]}`, `201 [{"ok":true`},
			{"GET", "/%s", "", "200"},
			{"GET", "/%s/_all_docs", "", "200"},
			{"POST", "/%s/_changes?filter=_doc_ids", `{"doc_ids":["frog"]}`, "200"},
			{"POST", "/%s/_bulk_get", `{"docs":[{"id":"nobody"}]}`, `200 {"results":[{"id":"nobody"`},
			{"GET", "/%s/nobody", "", `404 {"error":"not_found","reason":"missing"}`},
			{"GET", "/%s/gone", "", `404 {"error":"not_found","reason":"missing"}`},
			{"GET", "/%s/fly", "", "200"},
			{"GET", "/%s/fly?rev=%r", "", "200"},
			{"GET", "/%s/fly?open_revs=all", "", "200 --"},
			{"POST", "/%s/_bulk_get", `{"docs":[{"id":"fly"},{"id":"nobody"}]}`, `200 {"results":[{"id":"fly","docs":[{"ok"`},
			{"PUT", "/%s/fly/wing?rev=%r", "thin", "201"},
			{"PUT", "/%s/_local/checkpoint", `{}`, "201"},
			{"POST", "/%s/_purge", `{"newt":["1-00000000000000000000000000000000"]}`, "201"},
			{"POST", "/_dbs_info", `{"keys":["%s"]}`, `200 [{"key":"%s","info"`},
		}
		for _, db := range []string{"pond", "lake"} {
			for _, id := range []string{"frog", "newt", "gone"} {
				late.want("PUT", "/"+db+"/"+id, `{"of":"the first one"}`, "201") // it knows that one well
			}
			w.net.SetLink(fmt.Sprint("10.0.0.", leader.i), fmt.Sprint("10.0.0.", late.i), simnet.Link{Latency: 300 * time.Millisecond})
			old, _ := late.node.meta.Database(db)
			// As if the node that deleted it had gone before it removed the copies of others.
			if _, err := leader.node.meta.DeleteDatabase(w.t.Context(), db); err != nil {
				t.Fatal(err)
			}
			leader.want("PUT", "/"+db+"?q=2", "", "201")
			if now, _ := late.node.meta.Database(db); now != old {
				t.Fatal("the node has heard already")
			}
			fly := leader.ask("PUT", "/"+db+"/fly", `{}`)
			_, rev, _ := strings.Cut(fly, `"rev":"`)
			rev = strings.TrimSuffix(rev, `"}`)
			var asking sync.WaitGroup
			for _, ask := range asks {
				path, body, want := ask.path, ask.body, ask.want
				for _, s := range []*string{&path, &body, &want} {
					*s = strings.NewReplacer("%s", db, "%r", rev).Replace(*s)
				}
				asking.Go(func() {
					got := late.ask(ask.method, path, body)
					if strings.HasPrefix(got, "503") && strings.HasSuffix(path, "/skin") {
						got = late.ask(ask.method, path, body) // a stream cannot be had again
					}
					if !strings.HasPrefix(got, want) {
						t.Errorf("%s %s: %s, want %s", ask.method, path, got, want)
					}
				})
			}
			asking.Wait()
			w.net.Heal()
			for _, id := range []string{"frog", "eel", "newt", "toad", "eft"} {
				third.want("GET", "/"+db+"/"+id, "", "200")
			}
		}
	})
}
