package node

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"pgregory.net/rapid"

	"divan/shard/ring"
	"divan/storage/storagetest"
)

// TestQueriesAgainstModel asks a node for views and for what selectors match, after
// random edits, conflicts, deletions, purges and power cuts in the middle of a build;
// every answer must be that of a model, which holds the documents in memory and maps,
// sorts, reduces and filters all of them anew.
func TestQueriesAgainstModel(t *testing.T) {
	modelTest(t, 20, func(w *town) []*home {
		a := w.build(1)
		a.onDisk()
		w.start(a)
		a.soon("GET", "/_all_dbs", "", `200 ["_global_changes","_replicator","_users"]`)
		return []*home{a}
	})
}

// TestQueriesOfClusterAgainstModel is the same with three nodes, each of which is
// asked and loses power.
func TestQueriesOfClusterAgainstModel(t *testing.T) {
	if testing.Short() {
		t.Skip("three nodes for each of many cases")
	}
	modelTest(t, 12, func(w *town) []*home {
		a, b, c := w.build(1, seedList, secret0, openToAll), w.build(2, seedList, secret0, openToAll), w.build(3, seedList, secret0, openToAll)
		homes := []*home{a, b, c}
		for _, h := range homes {
			h.onDisk()
		}
		w.start(homes...)
		w.eventually("all vote", func() bool {
			return a.node != nil && len(a.node.meta.Voters()) == 3
		})
		for _, h := range homes {
			h.soon("GET", "/_all_dbs", "", `200 ["_global_changes","_replicator","_users"]`)
		}
		return homes
	})
}

func modelTest(t *testing.T, steps int, begin func(w *town) []*home) {
	t.Helper()
	rapid.Check(t, func(rt *rapid.T) {
		var failure any // what stops a check has to leave the bubble first
		inTown(t, func(w *town) {
			defer func() { failure = recover() }()
			m := &queryModel{T: rt, town: w, homes: begin(w)}
			m.create()
			actions := m.actions()
			names := slices.Sorted(maps.Keys(actions))
			for range rapid.IntRange(1, steps).Draw(rt, "steps") {
				actions[rapid.SampledFrom(names).Draw(rt, "action")]()
			}
		})
		switch {
		case failure == nil:
		case fmt.Sprintf("%T", failure) == "rapid.invalidData": // rapid tells failures from each other by where they come from
			panic(failure)
		default:
			panic(failure)
		}
	})
}

// queryModel is a database on the nodes of a town, and what it should hold.
type queryModel struct {
	*rapid.T
	town  *town
	homes []*home

	ring        []ring.Range
	partitioned bool
	ids         []string
	docs        map[string]*modelDocument
	views       []*modelDesign
	indexes     [][]string // columns of those of Mango
	revs        int        // made for conflicts
}

// modelDocument is a document as the model has it: its leaves.
type modelDocument struct {
	id     string
	leaves []modelLeaf
}

type modelLeaf struct {
	pos     int
	hash    string
	deleted bool
	body    string // an object without _id and _rev
}

func (l *modelLeaf) rev() string { return fmt.Sprintf("%d-%s", l.pos, l.hash) }

// winner returns the leaf that is shown; nil when there is none.
func (d *modelDocument) winner() *modelLeaf {
	var best *modelLeaf
	for i := range d.leaves {
		l := &d.leaves[i]
		if best == nil || !l.deleted && best.deleted ||
			l.deleted == best.deleted && cmp.Or(cmp.Compare(l.pos, best.pos), strings.Compare(l.hash, best.hash)) > 0 {
			best = l
		}
	}
	return best
}

// conflicts are the live leaves that lost, best first.
func (d *modelDocument) conflicts() (out []string) {
	rest := modelDocument{leaves: slices.Clone(d.leaves)}
	for {
		w := rest.winner()
		if w == nil || w.deleted {
			return out
		}
		if rev := w.rev(); rev != d.winner().rev() {
			out = append(out, rev)
		}
		rest.leaves = slices.DeleteFunc(rest.leaves, func(l modelLeaf) bool { return l == *w })
	}
}

// lost is the member _conflicts, where it is wanted and there is something to tell.
func (d *modelDocument) lost(wanted bool) string {
	if lost := d.conflicts(); wanted && len(lost) > 0 {
		return `,"_conflicts":` + list(lost)
	}
	return ""
}

// text is the winner as clients get it, with what is given besides.
func (d *modelDocument) text(more string) string {
	l := d.winner()
	members := strings.TrimPrefix(l.body, "{")
	if members != "}" {
		members = "," + members
	}
	return fmt.Sprintf(`{"_id":%q,"_rev":%q%s`, d.id, l.rev(), more+members)
}

// live lists the documents that are shown, by id.
func (m *queryModel) live() (out []*modelDocument) {
	for _, id := range slices.Sorted(maps.Keys(m.docs)) {
		if w := m.docs[id].winner(); w != nil && !w.deleted {
			out = append(out, m.docs[id])
		}
	}
	return out
}

// must asks any node and fails unless the answer has one of the statuses; it returns
// that and the body.
func (m *queryModel) must(method, path, body string, statuses ...string) (status, text string) {
	m.Helper()
	h := m.homes[0]
	if len(m.homes) > 1 {
		h = pick(m.T, m.homes, "node")
	}
	status, text, _ = strings.Cut(h.ask(method, path, body), " ")
	if !slices.Contains(statuses, status) {
		m.Fatalf("%s: %s %s %s: %s %s", h.name, method, path, body, status, text)
	}
	return status, text
}

// pick draws one of a list; the log of a failure tells its number.
func pick[T any](t *rapid.T, list []T, label string) T {
	return list[rapid.IntRange(0, len(list)-1).Draw(t, label)]
}

func (m *queryModel) create() {
	q, n := rapid.IntRange(1, 8).Draw(m.T, "q"), rapid.IntRange(1, len(m.homes)).Draw(m.T, "n")
	m.partitioned = rapid.IntRange(0, 3).Draw(m.T, "partitioned") == 0
	m.must("PUT", fmt.Sprintf("/db?q=%d&n=%d&partitioned=%t", q, n, m.partitioned), "", "201", "202")
	m.ring, m.docs = ring.Split(q), map[string]*modelDocument{}
	for i := range rapid.SampledFrom([]int{8, 30, 30, 700}).Draw(m.T, "documents") {
		id := fmt.Sprintf("d%03d", i)
		if m.partitioned {
			id = string(rune('a'+i%3)) + ":" + id
		}
		m.ids = append(m.ids, id)
	}
	for range rapid.IntRange(0, 2).Draw(m.T, "views at first") {
		m.addViews()
	}
}

func (m *queryModel) actions() map[string]func() {
	return map[string]func(){
		"write": m.write, "write 2": m.write, "write 3": m.write, "conflict": m.conflict, "delete": m.remove, "purge": m.purge,
		"views": m.addViews, "view": m.askView, "view 2": m.askView, "view 3": m.askView, "view 4": m.askView, "several views": m.askViews,
		"index": m.addIndex, "index 2": m.addIndex, "find": m.find, "find 2": m.find, "find 3": m.find, "power cut": m.cutPower,
	}
}

// id draws the id of a document that may be there.
func (m *queryModel) id() string { return rapid.SampledFrom(m.ids).Draw(m.T, "id") }

// write saves some documents on top of their winners.
func (m *queryModel) write() {
	most := 12
	if len(m.ids) > 100 {
		most = len(m.ids)
	}
	ids := rapid.SliceOfNDistinct(rapid.SampledFrom(m.ids), 1, most, rapid.ID).Draw(m.T, "ids")
	if most > 12 && rapid.Bool().Draw(m.T, "all") {
		ids = m.ids
	}
	body := func() string { return drawBody(m.T, m.ids) }
	if len(ids) > 20 { // as many draws as it takes would be slow
		seed := rapid.Int().Draw(m.T, "bodies")
		some := rapid.Custom(func(t *rapid.T) string { return drawBody(t, m.ids) })
		body = func() string { seed++; return some.Example(seed) }
	}
	docs, bodies := make([]string, len(ids)), make([]string, len(ids))
	for i, id := range ids {
		bodies[i] = body()
		docs[i] = m.edit(id, "", bodies[i])
	}
	for i, rev := range m.bulk(`{"docs":[`+strings.Join(docs, ",")+`]}`, len(docs)) {
		m.saved(ids[i], rev, bodies[i])
	}
}

// edit is the text of an edit of a document on top of its winner.
func (m *queryModel) edit(id, more, body string) string {
	rev := ""
	if d := m.docs[id]; d != nil && !d.winner().deleted {
		rev = fmt.Sprintf(`,"_rev":%q`, d.winner().rev())
	}
	return fmt.Sprintf(`{"_id":%q%s%s,%s`, id, rev, more, body[1:])
}

// bulk writes documents, all of which must be taken, and returns their revisions.
func (m *queryModel) bulk(body string, n int) []string {
	m.Helper()
	_, text := m.must("POST", "/db/_bulk_docs", body, "201", "202")
	var results []struct {
		OK  bool
		Rev string
	}
	if err := json.Unmarshal([]byte(text), &results); err != nil || len(results) != n {
		m.Fatalf("%s: %s, %v", body, text, err)
	}
	revs := make([]string, n)
	for i, r := range results {
		if revs[i] = r.Rev; !r.OK {
			m.Fatalf("%s: %s", body, text)
		}
	}
	return revs
}

// saved notes a new winner on top of the last one.
func (m *queryModel) saved(id, rev, body string) {
	d := m.docs[id]
	if d == nil {
		d = &modelDocument{id: id}
		m.docs[id] = d
	}
	l := modelLeaf{body: body}
	if _, err := fmt.Sscanf(rev, "%d-%s", &l.pos, &l.hash); err != nil {
		m.Fatalf("revision %s: %v", rev, err)
	}
	if w := d.winner(); w != nil {
		*w = l
	} else {
		d.leaves = append(d.leaves, l)
	}
}

// conflict adds a branch to a document, dead or alive, as replication does.
func (m *queryModel) conflict() {
	m.revs++
	id, l := m.id(), modelLeaf{pos: rapid.IntRange(1, 4).Draw(m.T, "generation"), hash: fmt.Sprintf("%032x", rapid.Uint64().Draw(m.T, "hash"))}
	l.hash = fmt.Sprintf("%s%04x", l.hash[4:], m.revs)
	l.body, l.deleted = drawBody(m.T, m.ids), rapid.IntRange(0, 3).Draw(m.T, "dead") == 0
	path := []string{fmt.Sprintf("%q", l.hash)}
	for i := 1; i < l.pos; i++ {
		path = append(path, fmt.Sprintf("%q", fmt.Sprintf("%028x%04x", i, m.revs)))
	}
	m.must("POST", "/db/_bulk_docs", fmt.Sprintf(`{"new_edits":false,"docs":[{"_id":%q,"_rev":%q,"_deleted":%t,"_revisions":{"start":%d,"ids":[%s]},%s]}`,
		id, l.rev(), l.deleted, l.pos, strings.Join(path, ","), l.body[1:]), "201")
	if m.docs[id] == nil {
		m.docs[id] = &modelDocument{id: id}
	}
	m.docs[id].leaves = append(m.docs[id].leaves, l)
}

func (m *queryModel) remove() {
	id := m.id()
	if d := m.docs[id]; d != nil && !d.winner().deleted {
		rev := m.bulk(`{"docs":[`+m.edit(id, `,"_deleted":true`, `{"was":1}`)+`]}`, 1)[0]
		m.saved(id, rev, `{"was":1}`)
		for i := range d.leaves {
			if d.leaves[i].rev() == rev {
				d.leaves[i].deleted = true
			}
		}
	}
}

// purge forgets one leaf of a document, or all of it.
func (m *queryModel) purge() {
	id := m.id()
	d := m.docs[id]
	if d == nil {
		return
	}
	gone := slices.Clone(d.leaves)
	if rapid.Bool().Draw(m.T, "one leaf") {
		gone = []modelLeaf{rapid.SampledFrom(d.leaves).Draw(m.T, "leaf")}
	}
	var revs []string
	for i := range gone {
		revs = append(revs, fmt.Sprintf("%q", gone[i].rev()))
	}
	m.must("POST", "/db/_purge", fmt.Sprintf(`{%q:[%s]}`, id, strings.Join(revs, ",")), "201", "202")
	d.leaves = slices.DeleteFunc(d.leaves, func(l modelLeaf) bool { return slices.Contains(gone, l) })
	if len(d.leaves) == 0 {
		delete(m.docs, id)
	}
}

// cutPower cuts the power of a node while it builds an index, and starts it again.
func (m *queryModel) cutPower() {
	<-time.After(10 * time.Second) // by now all copies have what was acknowledged
	h := pick(m.T, m.homes, "whose power")
	seed := rapid.Uint64().Draw(m.T, "what is lost")
	m.addViews()
	design := m.views[len(m.views)-1]
	left := h.disk.cutAfter(rapid.Int64Range(1, 400).Draw(m.T, "calls"), rand.New(rand.NewPCG(seed, 0)))
	m.build(design)
	disk := left()
	h.kill()
	h.keepOn(disk)
	h.start()
	h.soon("GET", "/_up", "", "200")
	<-time.After(10 * time.Second) // and now the others know that it is here
	for _, v := range m.views {
		v.held = nil
	}
}

// disk is a file system that knows how a power cut would leave it.
type disk struct {
	storagetest.CrashFS
	calls atomic.Int64 // until cut is called
	cut   func()
}

// onDisk gives a node that does not run yet a disk.
func (h *home) onDisk() { h.keepOn(storagetest.NewCrashFS()) }

func (h *home) keepOn(fs storagetest.CrashFS) {
	d := &disk{CrashFS: fs}
	h.disk, h.cfg.FS = d, errorfs.Wrap(fs, errorfs.InjectorFunc(func(errorfs.Op) error {
		if d.calls.Add(-1) == 0 {
			d.cut()
		}
		return nil
	}))
}

// cutAfter has the power cut after so many calls, or when left is called, which
// returns what the disk then has.
func (d *disk) cutAfter(calls int64, rng *rand.Rand) (left func() storagetest.CrashFS) {
	var once sync.Once
	var out storagetest.CrashFS
	d.cut = func() {
		once.Do(func() { out = d.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(3) * 50, RNG: rng}) })
	}
	d.calls.Store(calls)
	return func() storagetest.CrashFS {
		d.cut()
		d.calls.Store(0)
		return out
	}
}
