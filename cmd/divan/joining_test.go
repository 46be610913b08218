package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"divan/storage"
)

// The tests of this file take disks away from nodes of real clusters, and have nodes die,
// lag and be replaced. What was acknowledged must be found all the time, through any node.

// member is a node of a cluster of processes.
type member struct {
	*process
	*client
	name    string
	dir     string
	environ []string
	listen  string
}

// newMember starts a node that belongs to no cluster yet.
func newMember(t *testing.T, i int) *member {
	t.Helper()
	name, peers := fmt.Sprintf("node%d@127.0.0.1", i), freePort(t)
	m := &member{
		name: name, dir: filepath.Join(t.TempDir(), "data"), listen: fmt.Sprintf("127.0.0.1:%d", freePort(t)),
		environ: append(adminEnviron(), "NODENAME="+name, "DIVAN_COUCHDB__SINGLE_NODE=false", "DIVAN_LOG__LEVEL=warn",
			"DIVAN_CLUSTER__BIND_ADDRESS=127.0.0.1", fmt.Sprintf("DIVAN_CLUSTER__PORT=%d", peers),
			fmt.Sprintf("DIVAN_CLUSTER__ADVERTISE=127.0.0.1:%d", peers)),
	}
	m.begin(t)
	return m
}

// threeNodes makes a cluster.
func threeNodes(t *testing.T) (a, b, c *member) {
	t.Helper()
	a, b, c = newMember(t, 1), newMember(t, 2), newMember(t, 3)
	if status, out := run(t, nil, "setup", "--admin", "adm:pass", "http://"+a.address, "http://"+b.address, "http://"+c.address); status != 0 {
		t.Fatalf("setup: exit status %d, %s", status, out)
	}
	return a, b, c
}

// begin starts the process, for the first time or again.
func (m *member) begin(t *testing.T) {
	t.Helper()
	p := launch(t, m.environ, "serve", "--data", m.dir, "--listen", m.listen)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s has said:\n%s", m.name, p.output())
		}
	})
	p.awaitReady()
	m.process, m.client = p, newClient(t, p.address)
}

// die ends the process as a loss of power would.
func (m *member) die() {
	m.kill()
	<-m.ended
}

// signal pauses the process (SIGSTOP) or has it go on (SIGCONT).
func (m *member) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := m.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// stores returns the directories of copies below one of the data.
func (m *member) stores(t *testing.T, below string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(m.dir, below, "*", "*.[0-9]*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// copies is what a node says about its copies.
type copies struct{ Lost, Joining []string }

func (m *member) copies() (c copies, err error) {
	status, err := m.call("GET", "/_node/_local/_lost_shards", nil, &c)
	if err == nil && status != 200 {
		err = fmt.Errorf("%s: _lost_shards: %d", m.name, status)
	}
	return c, err
}

// awaitJoining waits until copies of a node are being filled.
func (m *member) awaitJoining(t *testing.T) {
	t.Helper()
	eventually(t, m.name+" has copies that join", func() bool {
		c, err := m.copies()
		return err == nil && len(c.Joining) > 0
	})
}

// filled reports whether a node has so many copies and all of them are full, and those of the others too.
func (m *member) filled(t *testing.T, count int, others ...*member) bool {
	t.Helper()
	if len(m.stores(t, "shards")) != count { // before that, it may not have said yet that one joins
		return false
	}
	for _, n := range append(others, m) {
		if c, err := n.copies(); err != nil || len(c.Joining)+len(c.Lost) > 0 {
			return false
		}
	}
	return true
}

func (m *member) awaitFilled(t *testing.T, count int, others ...*member) {
	t.Helper()
	eventually(t, m.name+" is full", func() bool { return m.filled(t, count, others...) })
}

// drained does something while a node gets no copies of new databases.
func drained(t *testing.T, m *member, do func()) {
	t.Helper()
	for _, decom := range []bool{true, false} {
		var now struct {
			Rev string `json:"_rev"`
		}
		path := "/_node/_local/_nodes/" + m.name
		if status, err := m.call("GET", path, nil, &now); err != nil || status != 200 {
			t.Fatal(status, err)
		}
		m.want(t, "PUT", path, fmt.Sprintf(`{"_rev":%q,"decom":%v}`, now.Rev, decom), 201)
		if decom {
			do()
		}
	}
}

// TestJoiningEmptyDisk: a node comes back with an empty disk. While it is filled, and
// documents are written through all nodes, it shows everything.
func TestJoiningEmptyDisk(t *testing.T) {
	t.Parallel()
	a, b, c := threeNodes(t)
	pond, lake := newLedger(t, a, "pond", 2, 3), newLedger(t, b, "lake", 2, 3)
	pond.fill(t, a, "early", 100)
	lake.fill(t, c, "early", 100)
	had := len(b.stores(t, "shards"))
	b.die()
	if err := os.RemoveAll(filepath.Join(b.dir, "shards")); err != nil {
		t.Fatal(err)
	}
	pond.fill(t, a, "missed", 100)
	lake.fill(t, c, "missed", 100)
	b.begin(t)
	ends := []func(){
		meanwhile(t, func(i int) { pond.fill(t, a, fmt.Sprint("during", i, "-"), 1) }),
		meanwhile(t, func(i int) { lake.fill(t, b, fmt.Sprint("during", i, "-"), 1) }),
		pond.watch(t, b), lake.watch(t, b),
	}
	b.awaitJoining(t)
	b.awaitFilled(t, had, a, c)
	for _, end := range ends {
		end()
	}
	pond.awaitAll(t, a, b, c)
	lake.awaitAll(t, a, b, c)
	bury(t, []*member{a, b, c}, pond, lake)
}

// TestLostOnlyCopy: while the only copy of a range is gone no node takes that for an empty
// one, and it can be put back, or given up.
func TestLostOnlyCopy(t *testing.T) {
	t.Parallel()
	a, b, c := threeNodes(t)
	all := []*member{a, b, c}
	pond, single := newLedger(t, a, "pond", 2, 3), newLedger(t, a, "single", 1, 1)
	pond.fill(t, a, "early", 20)
	single.fill(t, b, "early", 20)
	var holder *member
	for _, m := range all {
		if strings.Contains(a.want(t, "GET", "/single/_shards", "", 200), m.name) {
			holder = m
		}
	}
	dirs, err := filepath.Glob(filepath.Join(holder.dir, "shards", "*", "single.*"))
	if err != nil || len(dirs) != 1 {
		t.Fatalf("%q, %v", dirs, err)
	}
	name, err := filepath.Rel(holder.dir, dirs[0])
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := filepath.Join(t.TempDir(), "single")
	lost := func() { // looks at a cluster whose copy is gone
		for _, m := range all {
			for _, refused := range [][2]string{{"GET", "/single/early1"}, {"PUT", "/single/new"}, {"GET", "/single/_all_docs"}} {
				m.want(t, refused[0], refused[1], "{}", 503)
			}
			pond.fill(t, m, fmt.Sprint("later", len(pond.acked), "-"), 5)
			if err := pond.reads(m, pond.acked, ""); err != nil {
				t.Error(err)
			}
		}
		if got, err := holder.copies(); err != nil || len(got.Lost) != 1 || got.Lost[0] != name || len(got.Joining) > 0 {
			t.Errorf("%s: %+v, %v; want %s", holder.name, got, err, name)
		}
	}
	restart := func(move func() error) {
		holder.stop()
		if err := move(); err != nil {
			t.Fatal(err)
		}
		holder.begin(t)
	}

	restart(func() error { return os.Rename(dirs[0], elsewhere) })
	lost()
	restart(func() error { return os.Rename(elsewhere, dirs[0]) })
	single.awaitAll(t, all...) // the others have to find the node again
	if got, err := holder.copies(); err != nil || len(got.Lost)+len(got.Joining) > 0 {
		t.Errorf("%+v, %v", got, err)
	}
	single.fill(t, a, "later", 5)

	restart(func() error { return os.RemoveAll(dirs[0]) })
	lost()
	holder.want(t, "POST", "/_node/_local/_lost_shards", `{"accept":["`+name+`"]}`, 200)
	if got, err := holder.copies(); err != nil || len(got.Lost)+len(got.Joining) > 0 {
		t.Errorf("%+v, %v", got, err)
	}
	clear(single.acked)
	for _, m := range all {
		eventually(t, m.name+" finds the node again", func() bool {
			status, _, err := m.do("GET", "/single/early1", "", nil)
			return err == nil && status == 404
		})
		single.fill(t, m, "after"+m.name, 5)
	}
	for _, m := range all {
		if list := m.want(t, "GET", "/single/_all_docs", "", 200); strings.Count(list, `"id":`) != len(single.acked) {
			t.Errorf("%s: %s", m.name, list)
		}
	}
	single.awaitAll(t, all...)
	pond.awaitAll(t, all...)
	bury(t, all, pond)
	single.compare(t, holder)
}

// TestJoiningReplacement: one node after the other is replaced, while a client writes. The
// copies of one database without writes are not taken for those of another one.
func TestJoiningReplacement(t *testing.T) {
	t.Parallel()
	a, b, c := threeNodes(t)
	pond := newLedger(t, a, "pond", 2, 3)
	ledgers := []*ledger{pond}
	drained(t, a, func() { // so that the copies of these are all on the nodes that are replaced
		ledgers = append(ledgers, newLedger(t, a, "lake", 1, 2), newLedger(t, a, "pool", 1, 2))
	})
	for _, l := range ledgers {
		l.fill(t, b, "early", 100)
		l.awaitAll(t, a, b, c)
	}
	had, all := len(c.stores(t, "shards")), len(b.stores(t, "shards"))
	pace := time.NewTicker(20 * time.Millisecond) // all of them are read in the end
	t.Cleanup(pace.Stop)
	end := meanwhile(t, func(i int) {
		<-pace.C
		_ = pond.write(a, fmt.Sprint("during", i), false) // it counts what was refused
	})
	c.die()
	d, e := newMember(t, 4), newMember(t, 5)
	for _, m := range []*member{d, e} {
		_, port, _ := strings.Cut(m.listen, ":")
		a.want(t, "POST", "/_cluster_setup", `{"action":"add_node","host":"127.0.0.1","port":`+port+`,"username":"adm","password":"pass"}`, 201)
		eventually(t, m.name+" answers", func() bool {
			status, _, err := m.do("GET", "/_up", "", nil)
			return err == nil && status == 200
		})
	}
	replace := func(by, old *member, status int) {
		t.Helper()
		a.want(t, "PUT", "/_node/_local/_nodes/"+by.name, `{"replaces":"`+old.name+`"}`, status)
	}
	fill := func(m *member, count int, others ...*member) {
		t.Helper()
		var ends []func()
		for _, l := range ledgers {
			ends = append(ends, l.watch(t, m))
		}
		m.awaitFilled(t, count, others...)
		for _, end := range ends {
			end()
		}
		for _, l := range ledgers[1:] { // the new copies are read
			if err := errors.Join(l.lists(m, l.acked), l.reads(m, l.acked, "?r=1")); err != nil {
				t.Error(err)
			}
		}
	}
	state := func() string {
		return a.want(t, "GET", "/_node/_local/_nodes/_all_docs", "", 200) + a.want(t, "GET", "/_node/_local/_dbs/_all_docs?include_docs=true", "", 200)
	}
	replace(d, c, 201)
	d.signal(t, syscall.SIGSTOP) // so that it is not full too soon
	before := state()
	replace(e, b, 409)
	if after := state(); after != before {
		t.Errorf("what was refused has changed\n%s to\n%s", before, after)
	}
	d.signal(t, syscall.SIGCONT)
	fill(d, had, a, b)
	eventually(t, "a new node votes in the place of the first, so that the next may be lost", func() bool {
		var now struct{ Metadata struct{ Voters []string } }
		status, err := a.call("GET", "/_node/_local/_system", nil, &now)
		return err == nil && status == 200 && len(now.Metadata.Voters) >= 3 && !slices.Contains(now.Metadata.Voters, c.name)
	})
	b.die()
	replace(e, b, 201)
	fill(e, all, a, d)
	end()
	t.Logf("%d documents, %d requests were answered otherwise", len(pond.acked), pond.other)
	for _, l := range ledgers {
		l.awaitAll(t, a, d, e)
	}
	bury(t, []*member{a, d, e}, pond)
	for _, l := range ledgers[1:] {
		l.compare(t, d, e)
	}
}

// TestJoiningLaggingNode: databases are made while a node, each in its turn, hears of nothing. It is
// asked for them before it goes on, and as soon as it does.
func TestJoiningLaggingNode(t *testing.T) {
	t.Parallel()
	a, b, c := threeNodes(t)
	var ledgers []*ledger
	for i, all := range [][]*member{{a, b, c}, {b, c, a}, {c, a, b}} {
		lags := all[0]
		lags.signal(t, syscall.SIGSTOP)
		pond := &ledger{db: fmt.Sprint("pond", i), q: 2, acked: make(map[string]told), elections: true}
		ledgers = append(ledgers, pond)
		eventually(t, "the others make a database", func() bool { // without the leader, when it is that node
			status, _, err := all[1].do("PUT", "/"+pond.db, "", nil)
			return err == nil && (status == 201 || status == 202 || status == 412)
		})
		for k := range 20 {
			pond.fill(t, all[1+k%2], fmt.Sprint("early", k, "-"), 1)
		}
		var asking sync.WaitGroup
		early := pond.sofar()
		for k := range 10 {
			asking.Go(func() {
				if err := pond.reads(lags, early, ""); err != nil {
					t.Error(err)
				}
			})
			asking.Go(func() { pond.fill(t, lags, fmt.Sprint("later", k, "-"), 5) })
		}
		lags.signal(t, syscall.SIGCONT)
		asking.Wait()
		pond.awaitAll(t, all...)
	}
	bury(t, []*member{a, b, c}, ledgers...)
}

// TestJoiningPausedCoordinator: a node is paused in the middle of writes, and goes on
// when copies of another one have been lost and filled. A document whose write was not
// acknowledged is on each node or on none.
func TestJoiningPausedCoordinator(t *testing.T) {
	t.Parallel()
	a, b, c := threeNodes(t)
	all := []*member{a, b, c}
	pond := newLedger(t, a, "pond", 1, 3)
	// Copies are filled by more than half of the full ones. The paused node has none of pool.
	var pool *ledger
	drained(t, a, func() { pool = newLedger(t, a, "pool", 1, 2) })
	if shards := a.want(t, "GET", "/pool/_shards", "", 200); !strings.Contains(shards, b.name) || !strings.Contains(shards, c.name) {
		t.Fatal(shards)
	}
	var ends []func()
	ledgers := []*ledger{pond, pool}
	for k, l := range []*ledger{pond, pool, pond, pool} {
		ends = append(ends, meanwhile(t, func(i int) { _ = l.write(a, fmt.Sprintf("doc%d-%d", k, i), false) }))
	}
	more := func() {
		t.Helper()
		for _, l := range ledgers {
			before := len(l.sofar())
			eventually(t, "documents are written to "+l.db, func() bool { return len(l.sofar()) > before+100 })
		}
	}
	more()
	a.signal(t, syscall.SIGSTOP)
	b.die()
	if err := os.RemoveAll(filepath.Join(b.dir, "shards")); err != nil {
		t.Fatal(err)
	}
	b.begin(t)
	isFull := func() bool {
		now, err := b.copies()
		names := strings.Join(now.Joining, " ")
		return err == nil && strings.Contains(names, "/pond.") && !strings.Contains(names, "/pool.")
	}
	eventually(t, "what needs no paused node is filled", isFull)
	eventually(t, "it is filled for the other node, too", func() bool { return pool.reads(c, pool.sofar(), "") == nil })
	a.signal(t, syscall.SIGCONT)
	more()
	b.awaitFilled(t, len(a.stores(t, "shards"))+1, a, c)
	more()
	for _, end := range ends {
		end()
	}
	for _, l := range ledgers {
		t.Logf("%s: %d documents, %d requests were answered otherwise", l.db, len(l.acked), l.other)
		l.awaitAll(t, all...)
	}
	bury(t, all, pond)
	pool.compare(t, b, c)
}

// TestJoiningOldDirectory: what a node had before its disk was emptied is put in the
// place of what it has since. It answers for nothing, and is kept.
func TestJoiningOldDirectory(t *testing.T) {
	t.Parallel()
	a, b, c := threeNodes(t)
	all := []*member{a, b, c}
	pond := newLedger(t, a, "pond", 2, 3)
	pond.fill(t, a, "early", 90)
	pond.awaitAll(t, all...)
	shards, old := filepath.Join(b.dir, "shards"), filepath.Join(t.TempDir(), "old")
	had := len(b.stores(t, "shards"))
	b.die()
	if err := os.Rename(shards, old); err != nil {
		t.Fatal(err)
	}
	b.begin(t)
	b.awaitJoining(t)
	b.awaitFilled(t, had, a, c)
	pond.fill(t, c, "later", 30)
	for i := range 60 { // a third is updated, a third deleted
		if err := pond.write(all[i%3], fmt.Sprint("early", i), i%2 == 0); err != nil {
			t.Error(err)
		}
	}
	pond.awaitAll(t, all...)
	b.die()
	if err := errors.Join(os.RemoveAll(shards), os.Rename(old, shards)); err != nil {
		t.Fatal(err)
	}
	b.begin(t)
	var ends []func()
	for _, query := range []string{"", "?r=1", "?r=3"} {
		ends = append(ends, meanwhile(t, func(int) {
			if err := errors.Join(pond.lists(b, pond.acked), pond.reads(b, pond.acked, query)); err != nil {
				t.Error(err)
			}
		}))
	}
	eventually(t, "the old directories are set aside", func() bool { return len(b.stores(t, storage.OrphanedDir)) == had })
	b.awaitFilled(t, had, a, c)
	for _, end := range ends {
		end()
	}
	pond.awaitAll(t, all...)
	bury(t, all, pond)
}
