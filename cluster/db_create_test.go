package cluster

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"divan/shard"
	"divan/shard/ring"
	"divan/storage/doc"
	"divan/storage/fault"
)

// checkedDisk asks before it makes a copy.
type checkedDisk struct {
	ownCopies
	check func(name string) error
}

func (c *checkedDisk) Create(ctx context.Context, r ring.Replica, partitioned bool) error {
	if err := c.check(r.Name); err != nil {
		return err
	}
	return c.ownCopies.Create(ctx, r, partitioned)
}

// interpose puts copies in the place of those on the disk of a node.
func interpose(c *Coordinator, at ownCopies) { c.local, c.keeper.local = at, at }

// TestCreationOvertaken: while a client creates a database, another one deletes
// it, creates it again, and writes to it.
func TestCreationOvertaken(t *testing.T) {
	w := start(t, setup{still: true})
	begun, goOn := make(chan struct{}), make(chan struct{})
	var first atomic.Bool
	interpose(w.Coordinator, &checkedDisk{w.local, func(string) error {
		if first.CompareAndSwap(false, true) {
			close(begun)
			<-goOn
		}
		return nil
	}})
	created := make(chan error, 1)
	go func() { created <- w.CreateDB(t.Context(), "pond", CreateOptions{Q: 1}) }()
	<-begun
	if err := w.DeleteDB(t.Context(), "pond"); err != nil {
		t.Fatal(err)
	}
	d := w.create("pond", CreateOptions{Q: 1})
	put(t, d, "frog", doc.Rev{}, `{}`)
	close(goOn)
	if err := <-created; err != nil { // it was, before it was deleted
		t.Error(err)
	}
	if _, err := w.open("pond").Open(t.Context(), OpenOptions{ID: "frog"}); err != nil {
		t.Errorf("an acknowledged document: %v", err)
	}
	if names, err := w.locals[node1].Copies.Names(); err != nil || len(names) != 1 {
		t.Errorf("copies %q, %v", names, err)
	}
}

// makeElsewhere has the nodes that can be reached make their copies, as they do when they
// hear of a database.
func (w *world) makeElsewhere(name string) {
	w.tb.Helper()
	m, _ := w.meta.Database(name)
	for _, t := range newDB(w.Coordinator, m).routing.All() {
		if t.Node == node1 || w.copies(t.Node) == nil {
			continue
		}
		if err := w.makeOn(t.Node, t.Name); err != nil && !fault.Is(err, fault.NoCopy) {
			w.tb.Fatal(err)
		}
	}
}

// makeOn makes a copy of another node, once: one that is not there then is lost.
func (w *world) makeOn(node, name string) error {
	w.making.Lock()
	defer w.making.Unlock()
	m, one, here := w.meta.CopyIn(name, node)
	if !here || w.made[one.ID] {
		return errDropped()
	}
	if w.made == nil {
		w.made = map[uint64]bool{}
	}
	w.made[one.ID] = true
	return w.locals[node].Copies.Create(context.Background(), name, shard.CreateOptions{ID: one.ID, Partitioned: m.Partitioned})
}

func errFull() error { return fault.New(fault.InsufficientStorage, "enospc") }

// TestCreateOnFullDisk: a creation is taken back only if no client can have written to the
// database.
func TestCreateOnFullDisk(t *testing.T) {
	for name, c := range map[string]struct {
		nodes  int
		o      CreateOptions
		drain  bool   // the other nodes get no copies
		full   string // copies of which ranges cannot be made here; "/": none can
		down   bool   // the other nodes
		fails  bool
		stays  bool
		copies int // on the disk of this node afterwards
	}{
		"alone":                   {nodes: 1, o: CreateOptions{Q: 2}, full: "/", fails: true},
		"alone, some":             {nodes: 1, o: CreateOptions{Q: 2}, full: "/80000000", fails: true},
		"only here":               {nodes: 3, o: CreateOptions{N: 1, Q: 2}, drain: true, full: "/", fails: true},
		"only here, some":         {nodes: 3, o: CreateOptions{N: 1, Q: 2}, drain: true, full: "/80000000", fails: true, stays: true, copies: 1},
		"elsewhere too":           {nodes: 3, o: CreateOptions{N: 3, Q: 2}, full: "/", stays: true},
		"elsewhere too, but down": {nodes: 3, o: CreateOptions{N: 3, Q: 2}, full: "/", down: true, fails: true, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t, setup{nodes: c.nodes, still: true})
			for node := range w.locals {
				if c.drain && node != node1 {
					if err := w.meta.SetDraining(t.Context(), node, true); err != nil {
						t.Fatal(err)
					}
				}
				if c.down && node != node1 {
					w.trouble(away, node)
				}
			}
			var full atomic.Bool
			full.Store(true)
			interpose(w.Coordinator, &checkedDisk{w.local, func(name string) error {
				if full.Load() && strings.Contains(name, c.full) {
					return errFull()
				}
				return nil
			}})
			err := w.CreateDB(t.Context(), "pond", c.o)
			if c.fails != fault.Is(err, fault.InsufficientStorage) || (err != nil && !c.fails) {
				t.Errorf("creation: %v", err)
			}
			if _, stays := w.meta.Database("pond"); stays != c.stays {
				t.Errorf("in the map: %t", stays)
			}
			if names, err := w.locals[node1].Copies.Names(); err != nil || len(names) != c.copies {
				t.Errorf("copies %q, %v", names, err)
			}
			if !c.fails { // other copies can be used meanwhile
				toad := put(t, w.open("pond"), "toad", doc.Rev{}, `{}`)
				put(t, w.open("pond"), "toad", toad, `{"n":1}`)
				if ids, _, _ := list(t, w.open("pond"), DocsQuery{Limit: 5}); ids != "toad" {
					t.Errorf("listed %q", ids)
				}
			}
			full.Store(false)
			for node := range w.locals {
				if node != node1 {
					w.fleet.set(node, fine)
				}
			}
			if !c.stays {
				w.create("pond", c.o)
			}
			if c.down { // they make their copies when they see the map
				w.makeElsewhere("pond")
			}
			put(t, w.open("pond"), "frog", doc.Rev{}, `{}`)
			w.settleWrites()
		})
	}
}

// fullDisk is copies on a disk that is known to be full.
type fullDisk struct{ ownCopies }

func (fullDisk) DiskFull() error { return errFull() }

// TestCreateKnowsThatTheDiskIsFull: a node alone does not propose a database that it has no space
// for; one of several does, as others may have some.
func TestCreateKnowsThatTheDiskIsFull(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		w := start(t, setup{nodes: nodes, still: true})
		interpose(w.Coordinator, fullDisk{w.local})
		before := w.meta.Applied()
		err := w.CreateDB(t.Context(), "pond", CreateOptions{Q: 1})
		if full := fault.Is(err, fault.InsufficientStorage); full != (nodes == 1) || (w.meta.Applied() == before) != full {
			t.Errorf("%d nodes: %v; %d commands before, %d now", nodes, err, before, w.meta.Applied())
		}
	}
}

// TestCreatorHangsUp: the client is gone while the copies are made. The database is there,
// and nothing is said of copies that it lacks.
func TestCreatorHangsUp(t *testing.T) {
	w := start(t, setup{still: true})
	core, logs := observer.New(zap.WarnLevel)
	w.log = zap.New(core)
	w.keeper.log = w.log
	ctx, hangUp := context.WithCancel(t.Context())
	interpose(w.Coordinator, &checkedDisk{w.local, func(string) error {
		hangUp()
		return nil
	}})
	if err := w.CreateDB(ctx, "pond", CreateOptions{Q: 2}); err != nil {
		t.Error(err)
	}
	put(t, w.open("pond"), "frog", doc.Rev{}, `{}`)
	if logs.Len() != 0 {
		t.Errorf("%v", logs.All())
	}
}
