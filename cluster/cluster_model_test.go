package cluster

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"divan/cluster/sequence"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// model is what a client has been told, and a feed that it reads all the time.
type model struct {
	w       *world
	d       *DB
	ctx     context.Context // of the bubble
	step    int
	acked   map[string][]doc.Rev // every acknowledged revision, by document
	refused []string             // bodies of edits that were refused
	locals  map[string]string    // body of the last acknowledged local document with enough copies
	at      sequence.Seq         // of the feed
	view    map[string]string    // what the feed has shown last, by document
}

// TestClusterModel writes, reads and follows a database of three copies while
// links to two of them come and go in every way, then lets the copies converge,
// and checks:
//
//   - every acknowledged write is known everywhere,
//   - every refused write is nowhere,
//   - what was acknowledged by w copies is seen by a read of r copies as long as
//     w+r>n,
//   - all copies have the same leaves,
//   - a feed that was continued with its last sequences, from any copy, has
//     shown every document as it is now.
func TestClusterModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var failure any // what stops a check has to leave the bubble first
		synctest.Test(t, func(t *testing.T) {
			defer func() { failure = recover() }()
			w := start(t, setup{nodes: 3, still: true})
			d := w.create("db", CreateOptions{N: 3, Q: 1})
			order := rapid.Permutation([]string{node1, node2, node3}).Draw(rt, "order")
			m := &model{
				w: w, d: d.ordered(order...), ctx: t.Context(),
				acked: map[string][]doc.Rev{}, locals: map[string]string{}, view: map[string]string{},
			}
			m.run(rt)
		})
		if failure != nil {
			panic(failure)
		}
	})
}

func (m *model) run(rt *rapid.T) {
	for range rapid.IntRange(1, 15).Draw(rt, "steps") {
		m.step++
		switch rapid.IntRange(0, 9).Draw(rt, "op") {
		case 0, 1, 2:
			m.trouble(rt)
		case 3, 4, 5, 6:
			m.write(rt)
		case 7:
			m.local(rt)
		case 8:
			m.read(rt)
		case 9:
			m.follow(rt)
		}
	}
	m.converge(rt)
	m.check(rt)
}

func (m *model) trouble(rt *rapid.T) {
	node := rapid.SampledFrom([]string{node2, node3}).Draw(rt, "node")
	tr := rapid.SampledFrom([]trouble{fine, fine, away, failing, silent, deaf, slow, broken}).Draw(rt, "trouble")
	m.w.fleet.links[node].batches = 1
	m.w.fleet.set(node, tr)
}

func (m *model) id(rt *rapid.T) string {
	return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "id")
}

// write does one edit on top of a revision that was acknowledged, or of none.
func (m *model) write(rt *rapid.T) {
	e := shard.Edit{ID: m.id(rt), Body: fmt.Appendf(nil, `{"step":%d}`, m.step)}
	if known := m.acked[e.ID]; len(known) > 0 && rapid.IntRange(0, 4).Draw(rt, "parent") > 0 {
		e.Parent = known[len(known)-1]
		if rapid.IntRange(0, 3).Draw(rt, "older") == 0 {
			e.Parent = rapid.SampledFrom(known).Draw(rt, "which")
		}
		e.Deleted = rapid.IntRange(0, 4).Draw(rt, "delete") == 0
	}
	need := rapid.IntRange(0, 3).Draw(rt, "w")
	results, err := m.d.Update(m.ctx, UpdateOptions{NewEdits: true, W: need}, []shard.Edit{e})
	if err != nil {
		m.mayFail(rt, err)
		return
	}
	switch r := results[0]; {
	case fault.Is(r.Err, fault.Conflict):
		m.refused = append(m.refused, string(e.Body))
	case r.Err != nil:
		m.mayFail(rt, r.Err)
	default:
		m.acked[e.ID] = append(m.acked[e.ID], r.Rev)
		if !r.Accepted && need != 1 {
			m.seen(rt, e.ID, r.Rev)
		}
	}
}

// seen checks that two copies, whichever, know a revision that two others
// have.
func (m *model) seen(rt *rapid.T, id string, rev doc.Rev) {
	handle := m.d
	if rapid.Bool().Draw(rt, "reader") {
		handle = m.d.without(node1)
	}
	if !m.enough(handle) {
		return
	}
	got, err := handle.OpenRevs(m.ctx, OpenRevsOptions{ID: id, Revs: []doc.Rev{rev}, Latest: true})
	if err != nil {
		m.mayFail(rt, err)
		return
	}
	if len(got) == 0 || got[0].Doc == nil {
		rt.Fatalf("step %d: %s of %s was acknowledged by two copies and is not read: %+v", m.step, rev, id, got)
	}
}

// enough reports whether two copies of a handle answer: with fewer a read
// tells what it has.
func (m *model) enough(d *DB) bool {
	n := 0
	for _, t := range d.routing.Routes[0].Copies {
		l := m.w.fleet.links[t.Node]
		if l == nil || l.now() == fine || l.now() == slow {
			n++
		}
	}
	return n >= 2
}

// mayFail checks that an error is one of those that only say that copies did
// not answer.
func (m *model) mayFail(rt *rapid.T, err error) {
	switch fault.KindOf(err) {
	case fault.Unavailable, fault.Timeout:
	default:
		rt.Fatalf("step %d: %v", m.step, err)
	}
}

func (m *model) local(rt *rapid.T) {
	body := fmt.Sprintf(`{"step":%d}`, m.step)
	r, err := m.d.Update(m.ctx, UpdateOptions{NewEdits: true}, []shard.Edit{
		{ID: "_local/l", Parent: doc.Rev{ID: fmt.Sprint(m.step)}, Body: []byte(body)},
	})
	if err != nil || r[0].Err != nil || r[0].Accepted {
		delete(m.locals, "l") // some copies may have it
		return
	}
	m.locals["l"] = body
}

func (m *model) read(rt *rapid.T) {
	if want, ok := m.locals["l"]; ok && m.enough(m.d) {
		got, err := m.d.LocalGet(m.ctx, "_local/l")
		if err != nil && !fault.Is(err, fault.NotFound) {
			m.mayFail(rt, err)
		} else if err != nil || string(got.Body) != want {
			rt.Fatalf("local document: %+v, %v, want %s", got, err, want)
		}
	}
	_, err := m.d.Open(m.ctx, OpenOptions{ID: m.id(rt), R: rapid.IntRange(0, 3).Draw(rt, "r")})
	if err != nil && !fault.Is(err, fault.NotFound) {
		m.mayFail(rt, err)
	}
}

// follow reads the feed on, from any copy, and now and then lets it break off.
func (m *model) follow(rt *rapid.T) {
	handle := m.d
	if rapid.Bool().Draw(rt, "elsewhere") {
		handle = m.d.without(node1)
	}
	f, err := handle.Changes(m.ctx, ChangesQuery{Limit: NoLimit, Since: m.at})
	if err != nil {
		m.mayFail(rt, err)
		return
	}
	defer f.Close()
	for range 2 {
		for f.Next() {
			m.view[strings.Clone(f.Row().ID)] = f.Row().Leaves[0].String()
		}
		if f.Err() != nil {
			m.mayFail(rt, f.Err())
			break
		}
		ctx, cancel := context.WithTimeout(m.ctx, 30*time.Second)
		err := f.Wait(ctx)
		cancel()
		if err != nil {
			break
		}
		m.trouble(rt)
	}
	m.at = since(rt, f.LastSeq())
}

// converge does what repair is there for.
func (m *model) converge(rt *rapid.T) {
	m.w.trouble(fine, node2, node3)
	m.w.settleWrites()
	copies := m.d.routing.Routes[0].Copies
	for range 2 {
		for _, from := range copies {
			for _, to := range copies {
				if from == to {
					continue
				}
				if err := m.d.copyDocs(m.ctx, from, to, []string{"a", "b", "c"}); err != nil {
					rt.Fatal(err)
				}
			}
		}
	}
}

func (m *model) check(rt *rapid.T) {
	leaves := map[string]string{}
	for _, c := range m.d.routing.Routes[0].Copies {
		local := m.w.locals[c.Node]
		for _, id := range []string{"a", "b", "c"} {
			missing, err := local.Missing(m.ctx, c.Name, []shard.IDRevs{{ID: id, Revs: m.acked[id]}})
			if err != nil || len(missing[0].Missing) > 0 {
				rt.Fatalf("acknowledged, but %s does not know: %v, %v", c.Node, missing, err)
			}
			got, err := local.OpenRevs(m.ctx, shard.OpenRevsRequest{Copy: c.Name, ID: id, All: true})
			if err != nil {
				rt.Fatal(err)
			}
			text := ""
			for _, r := range got {
				text += r.Rev.String() + " "
				if slices.ContainsFunc(m.refused, func(body string) bool { return bytes.Equal([]byte(body), r.Doc.Body) }) {
					rt.Fatalf("%s has %s, which was refused", c.Node, r.Doc.Body)
				}
			}
			if first, ok := leaves[id]; ok && first != text {
				rt.Fatalf("%s has the leaves %s of %s, another copy %s", c.Node, text, id, first)
			}
			leaves[id] = text
		}
	}
	m.follow(rt)
	for id, text := range leaves {
		winner, _, _ := strings.Cut(text, " ")
		if m.view[id] != winner {
			rt.Fatalf("the feed has shown %q of %s, its winner is %q", m.view[id], id, winner)
		}
	}
}
