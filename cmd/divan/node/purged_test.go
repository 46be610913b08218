package node

import (
	"slices"
	"strings"
	"testing"
	"time"

	"divan/shard"
)

// TestWrittenAgainAfterForgottenPurge: one copy remembers a purge that all have
// done and that the others have dropped from their logs. What was purged is
// written again, and stays.
func TestWrittenAgainAfterForgottenPurge(t *testing.T) {
	inTown(t, func(w *town) {
		a, b, c := w.seeded()
		a.want("PUT", "/pond?q=1", "", "201")
		a.want("PUT", "/pond/_purged_infos_limit", "1", "200")
		m, _ := a.node.meta.Database("pond")
		last := map[string]*home{a.name: a, b.name: b, c.name: c}[m.Shards[0].Nodes()[2]] // it decides nothing
		var others []*home
		for _, h := range []*home{a, b, c} {
			if h != last {
				others = append(others, h)
			}
		}
		log := func(h *home) int {
			p, err := h.node.local.Purges(w.t.Context(), m.CopiesOn(h.name)[0], 0)
			if err != nil {
				t.Fatal(err)
			}
			return len(p)
		}
		for _, id := range []string{"eel", "frog", "newt"} {
			_, rev, _ := strings.Cut(a.ask("PUT", "/pond/"+id, `{}`), `"rev":"`)
			a.want("POST", "/pond/_purge", `{"`+id+`":["`+strings.TrimSuffix(rev, `"}`)+`"]}`, "201")
		}
		forget := func(h *home) func() bool {
			return func() bool {
				h.ask("POST", "/pond/_compact", "")
				return log(h) < 3
			}
		}
		w.eventually("all have passed the purges", func() bool {
			return log(a)+log(b)+log(c) == 9 && others[0].passed("pond", last) && others[0].passed("pond", others[1]) &&
				others[1].passed("pond", last) && others[1].passed("pond", others[0]) && last.passed("pond", others[0]) && last.passed("pond", others[1])
		})
		last.kill()
		for _, h := range others {
			w.eventually("the log is short", forget(h))
		}
		last.start()
		last.soon("GET", "/_up", "", `200 {"status":"ok"`)
		<-time.After(time.Minute) // writers forget what they know of purges
		if n := log(last); n != 3 {
			t.Fatalf("%d purges are remembered", n)
		}
		for _, id := range []string{"eel", "frog"} {
			others[0].want("PUT", "/pond/"+id, `{}`, "201")
		}
		for _, h := range []*home{a, b, c} {
			w.eventually("the copies have it", func() bool { _, n := h.docs("pond"); return n == 2 })
			h.want("GET", "/pond/frog", "", "200")
		}
	})
}

// passed reports whether the copy of another node is known to have done all
// three purges of this one's.
func (h *home) passed(db string, other *home) bool {
	m, _ := h.node.meta.Database(db)
	copies, err := h.node.local.LocalDocs.List(h.town.t.Context(), shard.LocalDocsRequest{
		Copy: m.CopiesOn(h.name)[0], Lo: shard.PurgePrefix, Hi: shard.PurgePrefix + "~", HasHi: true, System: true,
	})
	if err != nil {
		return false
	}
	defer copies.Close()
	var b shard.LocalBatch
	if _, err := copies.Next(&b); err != nil {
		return false
	}
	return slices.ContainsFunc(b.Rows, func(l shard.LocalDoc) bool {
		text := string(l.Body)
		return strings.Contains(text, `"purge_seq":3,`) && strings.Contains(text, `"node":"`+other.name+`"`) && !strings.Contains(text, `"target_uuid":""`)
	})
}
