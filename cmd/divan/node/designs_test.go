package node

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"divan/cluster/wire/simnet"
)

// rules is a design document whose validation function takes nothing but that type.
func rules(kind, rev string) string {
	if rev != "" {
		rev = fmt.Sprintf(`"_rev":%q,`, rev)
	}
	return fmt.Sprintf(`{%s"validate_doc_update":"function (n) { if (n.type != '%s') { throw({forbidden: '%s'}); } }"}`, rev, kind, kind)
}

// revIn returns the revision in the answer to a write.
func revIn(t *testing.T, answer string) string {
	t.Helper()
	_, rev, ok := strings.Cut(answer, `"rev":"`)
	if !ok {
		t.Fatalf("no revision in %s", answer)
	}
	return strings.TrimSuffix(rev, `"}`)
}

// A write of a design document is acknowledged by one node, and at once documents
// written through every other one are judged by it, whichever way it was written,
// and though only one node holds a copy of the range.
func TestRulesHoldAtOnce(t *testing.T) {
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprint(n, " copies"), func(t *testing.T) { holdAtOnce(t, n) })
	}
}

func holdAtOnce(t *testing.T, n int) {
	t.Helper()
	inTown(t, func(w *town) {
		a, b, c := w.seeded()
		homes := []*home{a, b, c}
		a.want("PUT", fmt.Sprintf("/pond?q=4&n=%d", n), "", "201")
		rev := ""
		write := func(h *home, i int, kind string) string {
			switch i % 4 {
			case 0:
				return h.ask("PUT", "/pond/_design/rules", rules(kind, rev))
			case 1:
				return strings.TrimSuffix(h.ask("POST", "/pond/_bulk_docs", `{"docs":[{"_id":"_design/rules",`+rules(kind, rev)[1:]+`]}`), "]")
			case 2:
				rev = revIn(t, h.ask("PUT", "/pond/_design/rules/att?rev="+rev, "x"))
				return h.ask("PUT", "/pond/_design/rules", rules(kind, rev))
			default:
				spare := revIn(t, h.ask("PUT", "/pond/_design/spare"+kind, rules(kind, "")))
				h.want("DELETE", "/pond/_design/spare"+kind+"?rev="+spare, "", "200")
				return h.ask("PUT", "/pond/_design/rules", rules(kind, rev))
			}
		}
		for i := range 24 {
			kind := fmt.Sprint("k", i)
			answer := write(homes[i%3], i, kind)
			if !strings.HasPrefix(answer, "201") {
				t.Fatalf("round %d: %s", i, answer)
			}
			rev = revIn(t, answer)
			var asking sync.WaitGroup
			for k := range 6 {
				asking.Go(func() {
					h := homes[k%3]
					h.want("PUT", fmt.Sprintf("/pond/bad%d-%d", i, k), `{"type":"other"}`, `403 {"error":"forbidden","reason":"`+kind+`"`)
					h.want("PUT", fmt.Sprintf("/pond/good%d-%d", i, k), `{"type":"`+kind+`"}`, "201")
				})
			}
			asking.Wait()
		}
		b.want("DELETE", "/pond/_design/rules?rev="+rev, "", "200")
		for _, h := range homes {
			h.want("PUT", fmt.Sprintf("/pond/free%d", h.i), `{}`, "201")
		}
	})
}

// A node that answers late does not let a write through that was judged by the rules
// of before.
func TestRulesHoldWithASlowNode(t *testing.T) {
	inTown(t, func(w *town) {
		a, b, c := w.seeded()
		a.want("PUT", "/pond?q=4&n=1", "", "201")
		rev := revIn(t, a.ask("PUT", "/pond/_design/rules", rules("old", "")))
		c.want("PUT", "/pond/one", `{"type":"old"}`, "201")
		for _, ip := range []string{"10.0.0.1", "10.0.0.2"} {
			w.net.SetLink(ip, "10.0.0.3", simnet.Link{Latency: 400 * time.Millisecond})
		}
		b.want("PUT", "/pond/_design/rules", rules("new", rev), "201")
		for i, h := range []*home{a, b, c} {
			h.want("PUT", fmt.Sprintf("/pond/old%d", i), `{"type":"old"}`, `403 {"error":"forbidden","reason":"new"`)
			h.want("PUT", fmt.Sprintf("/pond/new%d", i), `{"type":"new"}`, "201")
		}
		w.net.Heal()
	})
}

// A node that cannot be reached by the one that takes the design document, but by a third
// one and by clients, judges by it all the same; and the write does not wait long. A node
// that is cut off for long keeps no write waiting.
func TestRulesHoldAcrossAPartition(t *testing.T) {
	inTown(t, func(w *town) {
		a, b, c := w.seeded()
		a.want("PUT", "/pond?q=4", "", "201")
		rev := revIn(t, a.ask("PUT", "/pond/_design/rules", rules("old", "")))
		for _, h := range []*home{a, b, c} {
			h.want("PUT", fmt.Sprintf("/pond/one%d", h.i), `{"type":"old"}`, "201")
		}
		lost := simnet.Link{Cut: true}
		w.net.SetLink("10.0.0.1", "10.0.0.3", lost)
		w.net.SetLink("10.0.0.3", "10.0.0.1", lost)
		began := time.Now()
		rev = revIn(t, a.ask("PUT", "/pond/_design/rules", rules("new", rev)))
		w.t.Logf("while a node is being lost a write takes %v", time.Since(began))
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("a write took %v", took)
		}
		for _, h := range []*home{c, b, a} {
			h.want("PUT", fmt.Sprintf("/pond/old%d", h.i), `{"type":"old"}`, `403 {"error":"forbidden","reason":"new"`)
			h.want("PUT", fmt.Sprintf("/pond/new%d", h.i), `{"type":"new"}`, "20")
		}
		<-time.After(10 * time.Second)
		began = time.Now()
		a.want("PUT", "/pond/_design/rules", rules("newer", rev), "201")
		if took := time.Since(began); took > time.Second {
			t.Errorf("with a node that is long lost a write took %v", took)
		}
		c.want("PUT", "/pond/new", `{"type":"new"}`, `403 {"error":"forbidden","reason":"newer"`)
		w.net.Heal()
		c.soon("PUT", "/pond/newer", `{"type":"newer"}`, "201")
	})
}
