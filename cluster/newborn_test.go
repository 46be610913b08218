package cluster

import (
	"testing"
	"testing/synctest"
	"time"

	"divan/cluster/meta"
	"divan/shard"
	"divan/storage/fault"
)

// TestLostCopies: nobody makes the copies that lack. The first request waits for
// them, for a while; those after it get their error at once.
func TestLostCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{nodes: 3})
		d := w.create("pond", CreateOptions{Q: 1})
		for _, l := range w.locals {
			if err := l.Drop(t.Context(), d.all()[0].name); err != nil {
				t.Fatal(err)
			}
		}
		for try := range 3 {
			begun := time.Now()
			err := w.Do(t.Context(), "pond", func(d *DB) error {
				_, err := d.Open(t.Context(), OpenOptions{ID: "frog"})
				return err
			})
			if !fault.Is(err, fault.Unavailable) {
				t.Errorf("open: %v", err)
			}
			took := time.Since(begun)
			if waited := took >= createWait && took < createWait+2*mostAwait; waited != (try == 0) {
				t.Errorf("request %d took %s", try+1, took)
			}
		}
	})
}

// TestNoCreatorMakesCopies: the node that created a database is gone before it
// has made a copy. This one waits for it once, at the first request, and makes
// its copies then: to be filled, if other nodes hold some as well.
func TestNoCreatorMakesCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{nodes: 3, still: true})
		begun := time.Now()
		m := w.commit(meta.NewDatabaseID(), "pond")
		w.open("pond")
		if took := time.Since(begun); took < birthGrace || took > birthGrace+mostAwait {
			t.Errorf("the copies were waited for for %s", took)
		}
		w.wantCopies(m, false, node1)
		w.handles.forget("pond")
		for _, name := range m.CopiesOn(node1) {
			if err := w.locals[node1].Drop(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
		begun = time.Now()
		w.open("pond")
		if took := time.Since(begun); took > 0 {
			t.Errorf("the copies were waited for again, for %s", took)
		}
		w.wantCopies(m, false, node1)
	})
}

// TestCreatorMakesCopiesInTime: the node that creates the database makes the
// copies a moment after this one was asked for it. They are complete.
func TestCreatorMakesCopiesInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{nodes: 3, still: true})
		m := w.commit(meta.NewDatabaseID(), "pond")
		opened := make(chan error, 1)
		go func() {
			_, err := w.DB(t.Context(), "pond")
			opened <- err
		}()
		<-time.After(birthGrace / 2)
		for _, name := range m.CopiesOn(node1) {
			if err := w.locals[node1].Create(t.Context(), name, shard.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-opened; err != nil {
			t.Fatal(err)
		}
		w.wantCopies(m, true, node1)
	})
}

// TestSoughtIsBounded: what is remembered of databases whose copies lack is not
// more than of those in use.
func TestSoughtIsBounded(t *testing.T) {
	h := handles{lacking: map[[16]byte]time.Time{}}
	for range maxHandles + 10 {
		id := meta.NewDatabaseID()
		if first := h.sought(id); h.sought(id) != first {
			t.Error("the time has changed")
		}
	}
	if len(h.lacking) > maxHandles {
		t.Errorf("%d databases are remembered", len(h.lacking))
	}
}
