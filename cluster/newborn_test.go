package cluster

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"divan/cluster/birth"
	"divan/cluster/events"
	"divan/cluster/fanout"
	"divan/cluster/meta"
	"divan/cluster/replica"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// TestLostCopies: nobody makes the copies that lack. The first request for a
// database that is young waits for them, for a while; those after it get their
// error at once, and so does every request for an older one.
func TestLostCopies(t *testing.T) {
	for _, age := range []time.Duration{0, birth.DoubtTime} {
		synctest.Test(t, func(t *testing.T) {
			w := start(t, setup{nodes: 3, still: true})
			d := w.create("pond", CreateOptions{Q: 1})
			<-time.After(age)
			for _, l := range w.locals {
				if err := l.Drop(t.Context(), d.all()[0].Name); err != nil {
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
				waited := took >= createWait && took < createWait+2*mostAwait
				if waited != (try == 0 && age == 0) || (!waited && took > 0) {
					t.Errorf("request %d took %s", try+1, took)
				}
			}
		})
	}
}

// TestLostDisk: a node that has lost its copies of databases that are not new
// keeps nobody waiting while it makes them.
func TestLostDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{nodes: 3, still: true})
		m := w.create("pond", CreateOptions{Q: 2}).meta
		<-time.After(birth.DoubtTime)
		for _, name := range m.CopiesOn(node1) {
			if err := w.locals[node1].Drop(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
		w.handles.forget("pond")
		begun := time.Now()
		if _, err := w.open("pond").Info(t.Context()); err != nil || time.Since(begun) > 0 {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
		w.wantCopies(m, false, node1)
	})
}

// TestNoCopiesForWhoeverGivesUp: a client hangs up while the copies of a new
// database are waited for. That makes none that have to be filled.
func TestNoCopiesForWhoeverGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{nodes: 3, still: true})
		m := w.commit(meta.NewDatabaseID(), "pond")
		ctx, cancel := context.WithTimeout(t.Context(), birthGrace/2)
		defer cancel()
		if _, err := w.DB(ctx, "pond"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		for _, name := range m.CopiesOn(node1) {
			if w.locals[node1].Has(name) {
				t.Errorf("%s is there", name)
			}
		}
	})
}

// TestEventsOfANewborn: what happens to databases is written down in one that is
// new itself. That makes no copies of it either.
func TestEventsOfANewborn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{nodes: 3})
		synctest.Wait()
		m := w.commit(meta.NewDatabaseID(), events.GlobalChanges)
		w.commit(meta.NewDatabaseID(), "pond")
		<-time.After(birthGrace / 2)
		for _, name := range m.CopiesOn(node1) {
			if w.locals[node1].Has(name) {
				t.Errorf("%s is there", name)
			}
		}
	})
}

// once does a purge, loses the answer, and says so the first time.
type once struct {
	to    replica.Copies
	asked int
}

func (o *once) Do(ctx context.Context, call replica.Call) error {
	err := call.On(ctx, o.to)
	if _, ok := call.(*replica.Asked[replica.PurgeRequest, []shard.PurgeResult]); ok {
		if o.asked++; o.asked == 1 {
			return fanout.NodeDown(node2)
		}
	}
	return err
}

// TestDoubtfulPurgeIsNotBegunAgain: two copies of a young database are not there,
// and of the third it is not known whether it has done a purge. A second try
// would find nothing left to do and say so.
func TestDoubtfulPurgeIsNotBegunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{nodes: 3, still: true})
		d := w.create("pond", CreateOptions{Q: 1})
		rev := put(t, d, "frog", doc.Rev{}, `{}`)
		w.settleWrites()
		for node, l := range w.locals {
			if node == node2 {
				continue
			}
			if err := l.Drop(t.Context(), d.all()[0].Name); err != nil {
				t.Fatal(err)
			}
		}
		late := &once{to: w.fleet.links[node2].to}
		w.fleet.links[node2].to = late
		out, err := d.Purge(t.Context(), 0, []shard.PurgeItem{{ID: "frog", Revs: []doc.Rev{rev}}})
		if err != nil || !fault.Is(out[0].Err, fault.Unavailable) || errors.Is(out[0].Err, ErrUnborn) || late.asked != 1 {
			t.Errorf("asked %d times: %+v, %v", late.asked, out, err)
		}
	})
}

// damaged is a copy that cannot be read.
type damaged struct{ to replica.Copies }

func (d damaged) Do(ctx context.Context, call replica.Call) error {
	if _, ok := call.(*replica.Asked[shard.OpenRequest, *shard.Doc]); ok {
		return fault.New(fault.Corruption, "the file is damaged")
	}
	return call.On(ctx, d.to)
}

// TestDamageIsNotHidden: one copy of a young database is not there, the others
// are damaged. That is what is told, at once.
func TestDamageIsNotHidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{nodes: 3, still: true})
		d := w.create("pond", CreateOptions{Q: 1})
		w.settleWrites()
		if err := w.locals[node1].Drop(t.Context(), d.all()[0].Name); err != nil {
			t.Fatal(err)
		}
		for _, link := range w.fleet.links {
			link.to = damaged{link.to}
		}
		begun := time.Now()
		err := w.Do(t.Context(), "pond", func(d *DB) error {
			_, err := d.Open(t.Context(), OpenOptions{ID: "frog"})
			return err
		})
		if !fault.Is(err, fault.Corruption) || time.Since(begun) > 0 {
			t.Errorf("after %s: %v", time.Since(begun), err)
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
			if err := w.locals[node1].Create(t.Context(), name, shard.CreateOptions{ID: w.idOf(name, node1)}); err != nil {
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
	r := birth.NewRegister()
	for range birth.MaxSought + 10 {
		id := meta.NewDatabaseID()
		if first := r.Sought(id); r.Sought(id) != first {
			t.Error("the time has changed")
		}
	}
	if n := r.LenSought(); n > birth.MaxSought {
		t.Errorf("%d databases are remembered", n)
	}
}
