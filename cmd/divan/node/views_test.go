package node

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"divan/shard/view"
)

const byNumber = `{"views":{"n":{"map":"function (doc) { emit(doc.n, doc.pad); emit(doc.n, null); }"},
	"count":{"map":"function (doc) { emit(doc.n % 7, 1); }","reduce":"_sum"}}}`

// viewRows is the answer of a view.
type viewRows struct {
	Total  int `json:"total_rows"`
	Offset int `json:"offset"`
	Rows   []struct {
		ID    string          `json:"id"`
		Key   int             `json:"key"`
		Value json.RawMessage `json:"value"`
	} `json:"rows"`
}

// rows asks for a view.
func (h *home) rows(path string) (out viewRows) {
	h.town.t.Helper()
	status, text, _ := strings.Cut(h.ask("GET", path, ""), " ")
	if status != "200" {
		h.town.t.Fatalf("%s: %s: %s %s", h.name, path, status, text)
	}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		h.town.t.Fatalf("%s: %s: %v", h.name, path, err)
	}
	return out
}

// numbered writes documents n to n+count-1 through a node, with some padding each.
func (h *home) numbered(db string, n, count, pad int) {
	h.town.t.Helper()
	for from := n; from < n+count; from += 500 {
		var b strings.Builder
		for i := from; i < min(from+500, n+count); i++ {
			fmt.Fprintf(&b, `,{"_id":"d%05d","n":%d,"pad":"%0*d"}`, i, i, pad, i)
		}
		h.want("POST", "/"+db+"/_bulk_docs", `{"docs":[`+b.String()[1:]+`]}`, "201")
	}
}

// On every node a view shows what was acknowledged through any other.
func TestViewShowsAcknowledged(t *testing.T) {
	inTown(t, func(w *town) {
		a, b, c := w.seeded()
		a.want("PUT", "/pond?q=4", "", "201")
		a.want("PUT", "/pond/_design/d", byNumber, "201")
		homes := []*home{a, b, c}
		for i := range 30 {
			homes[i%3].numbered("pond", i, 1, 1)
			through := homes[(i+1)%3]
			if got := through.rows("/pond/_design/d/_view/n?limit=2&descending=true"); got.Total != 2*(i+1) || len(got.Rows) != 2 || got.Rows[0].Key != i {
				w.t.Fatalf("%s after %d documents: %+v", through.name, i+1, got)
			}
		}
		// Another map function is seen at once as well, and so is that the document is gone.
		rev := strings.Split(a.ask("GET", "/pond/_design/d", ""), `"`)[7]
		b.want("PUT", "/pond/_design/d?rev="+rev, `{"views":{"m":{"map":"function (doc) { emit(-doc.n, null); }"}}}`, "201")
		c.want("GET", "/pond/_design/d/_view/n", "", `404 {"error":"not_found","reason":"missing_named_view"}`)
		c.want("GET", "/pond/_design/d/_view/m?limit=1", "", `200 {"total_rows":30,"offset":0,"rows":[`+"\r\n"+`{"id":"d00029","key":-29`)
		rev = strings.Split(a.ask("GET", "/pond/_design/d", ""), `"`)[7]
		a.want("DELETE", "/pond/_design/d?rev="+rev, "", "200")
		b.want("GET", "/pond/_design/d/_view/m", "", `404 {"error":"not_found","reason":"deleted"}`)
	})
}

// A node dies in the middle of an answer: rows go on from other copies, each once
// and in order.
func TestViewGoesOnWithoutNode(t *testing.T) {
	inTown(t, func(w *town) {
		a, b, c := w.seeded()
		const documents = 3000
		a.want("PUT", "/pond?q=4", "", "201")
		a.want("PUT", "/pond/_design/d", byNumber, "201")
		a.numbered("pond", 0, documents, 1000)
		for _, h := range w.homes {
			w.eventually("every copy has every document", func() bool {
				_, docs := h.docs("pond")
				return docs == documents+1
			})
		}
		for i, way := range []string{"", "?descending=true"} {
			victim := []*home{b, c}[i]
			r, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, "http://10.0.0.1:5984/pond/_design/d/_view/n"+way, http.NoBody)
			if err != nil {
				w.t.Fatal(err)
			}
			r.SetBasicAuth("adm", "pass")
			res, err := w.client.Do(r)
			if err != nil {
				w.t.Fatal(err)
			}
			body := bufio.NewReaderSize(res.Body, 4096)
			begin := make([]byte, 4096)
			if _, err := io.ReadFull(body, begin); err != nil {
				w.t.Fatal(err)
			}
			victim.kill()
			rest, err := io.ReadAll(body)
			_ = res.Body.Close() // read to its end
			if err != nil {
				w.t.Fatal(err)
			}
			var got viewRows
			if err := json.Unmarshal(append(begin, rest...), &got); err != nil {
				w.t.Fatalf("%v: …%s", err, rest[max(0, len(rest)-200):])
			}
			if got.Total != 2*documents || len(got.Rows) != 2*documents {
				w.t.Fatalf("%d rows of %d", len(got.Rows), got.Total)
			}
			for k, row := range got.Rows {
				want := k / 2
				if i == 1 {
					want = documents - 1 - want
				}
				if row.Key != want {
					w.t.Fatalf("row %d has key %d, want %d", k, row.Key, want)
				}
			}
			if sum := a.ask("GET", "/pond/_design/d/_view/count", ""); !strings.Contains(sum, fmt.Sprintf(`{"key":null,"value":%d}`, documents)) {
				w.t.Errorf("without %s: %s", victim.name, sum)
			}
			victim.start()
			victim.soon("GET", "/_up", "", "200")
		}
	})
}

// A node in maintenance mode, and one that is cut off from all others, are done without; a
// database none of whose copies can be reached is reported as such.
func TestViewDoesWithoutNodes(t *testing.T) {
	inTown(t, func(w *town) {
		a, b, c := w.seeded()
		a.want("PUT", "/pond?q=4", "", "201")
		a.want("PUT", "/sole?q=6&n=1", "", "201")
		for _, db := range []string{"/pond", "/sole"} {
			a.want("PUT", db+"/_design/d", byNumber, "201")
		}
		a.numbered("pond", 0, 70, 1)
		a.numbered("sole", 0, 70, 1)
		c.want("PUT", "/_node/_local/_config/couchdb/maintenance_mode", `"true"`, "200")
		b.numbered("pond", 70, 7, 1)
		for _, h := range []*home{a, b, c} {
			h.want("GET", "/pond/_design/d/_view/count?group=true&limit=2", "", `200 {"rows":[`+"\r\n"+`{"key":0,"value":11},`+"\r\n"+`{"key":1,"value":11}`)
		}
		c.want("PUT", "/_node/_local/_config/couchdb/maintenance_mode", `"false"`, "200")
		b.kill()
		a.numbered("pond", 77, 7, 1)
		start := time.Now()
		a.want("GET", "/pond/_design/d/_view/count?key=3", "", `200 {"rows":[`+"\r\n"+`{"key":null,"value":12}`)
		if took := time.Since(start); took > 10*time.Second {
			w.t.Errorf("an answer without a node takes %v", took)
		}
		a.want("GET", "/sole/_all_docs", "", `503 {"error":"service unavailable"`)
		a.want("GET", "/sole/_design/d/_view/n", "", `503 {"error":"service unavailable"`)
		b.start()
		b.soon("GET", "/_up", "", "200")
		b.soon("GET", "/sole/_design/d/_view/count", "", `200 {"rows":[`+"\r\n"+`{"key":null,"value":70}`)
	})
}

// Indexes are brought up to date after writes without being asked, unless their
// design document says that it does not want it; those that no design document has
// any more are dropped.
func TestIndexesFollow(t *testing.T) {
	inTown(t, func(w *town) {
		a, b, c := w.seeded()
		a.want("PUT", "/pond?q=2", "", "201")
		a.want("PUT", "/pond/_design/d", byNumber, "201")
		a.want("PUT", "/pond/_design/lazy", `{"autoupdate":false,"views":{"x":{"map":"function (doc) { emit(doc.n, 1); }"}}}`, "201")
		b.numbered("pond", 0, 50, 1)
		type info struct {
			Index struct {
				Signature string `json:"signature"`
				Seq       int    `json:"update_seq"`
				Pending   struct {
					Total int `json:"total"`
				} `json:"updates_pending"`
			} `json:"view_index"`
		}
		ask := func(h *home, ddoc string) (out info) {
			_, text, _ := strings.Cut(h.ask("GET", "/pond/_design/"+ddoc+"/_info", ""), " ")
			if err := json.Unmarshal([]byte(text), &out); err != nil {
				w.t.Fatal(text, err)
			}
			return out
		}
		took := w.eventually("all copies have the index", func() bool { return ask(c, "d").Index.Pending.Total == 0 })
		w.t.Logf("indexes are warm after %v", took)
		if d, lazy := ask(a, "d"), ask(a, "lazy"); d.Index.Seq != 52 || lazy.Index.Seq != 0 || lazy.Index.Pending.Total == 0 {
			w.t.Errorf("%+v, %+v", d, lazy)
		}
		a.want("GET", "/pond/_design/lazy/_view/x?limit=1", "", `200 {"total_rows":50,`)
		old := ask(a, "d").Index.Signature
		rev := strings.Split(a.ask("GET", "/pond/_design/d", ""), `"`)[7]
		c.want("PUT", "/pond/_design/d?rev="+rev, `{"views":{"m":{"map":"function (doc) { emit(-doc.n, null); }"}}}`, "201")
		b.want("GET", "/pond/_design/d/_view/m?limit=0", "", `200 {"total_rows":50,`)
		if ask(a, "d").Index.Signature == old {
			w.t.Error("another map function has the same index")
		}
		b.want("POST", "/pond/_view_cleanup", "{}", `202 {"ok":true}`)
		a.want("POST", "/pond/_compact/d", "{}", `202 {"ok":true}`)
		def, err := view.Parse([]byte(byNumber), false)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, h := range w.homes {
			pond, _ := h.node.meta.Database("pond")
			for _, name := range pond.CopiesOn(h.name) {
				if left, err := h.node.views.Info(w.t.Context(), name, def.Text); err != nil || left.Seq != 0 || left.External != 0 {
					w.t.Errorf("%s has the index of %s that nobody wants: %+v, %v", h.name, name, left, err)
				}
			}
		}
		b.want("GET", "/pond/_design/d/_view/m?limit=1", "", `200 {"total_rows":50,"offset":0,"rows":[`+"\r\n"+`{"id":"d00049"`)
	})
}
