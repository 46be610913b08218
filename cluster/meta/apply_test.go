package meta

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"divan/shard/ring"
)

// creations is a log of commands that each make a database, written in a term.
func creations(t *testing.T, n int, term uint64) *raft.InmemStore {
	t.Helper()
	s := raft.NewInmemStore()
	for i := range n {
		if err := s.StoreLog(creation(i, term)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func creation(i int, term uint64) *raft.Log {
	db := &Database{Name: fmt.Sprintf("db%d", i), Created: 5, Shards: []ring.Shard{{Range: ring.Full(), Copies: ring.CopiesOn(self)}}}
	return &raft.Log{Index: uint64(i + 1), Term: term, Type: raft.LogCommand, Data: encode(createCommand(db))}
}

// A machine that reaches for an entry applies it when the log has it with that
// term, and else waits until Raft brings it.
func TestWaitApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTestMachine(t)
		log := creations(t, 2000, 3)
		if err := m.waitApplied(t.Context(), log, 1500, 3); err != nil || m.load().dbs.Len() != 1500 || m.load().term != 3 {
			t.Errorf("%d databases, %v", m.load().dbs.Len(), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := m.waitApplied(ctx, log, 1600, 4); err == nil || m.load().dbs.Len() != 1500 {
			t.Errorf("applied what another leader wrote: %d, %v", m.load().dbs.Len(), err)
		}
		reached := make(chan error, 1)
		go func() { reached <- m.waitApplied(t.Context(), log, 2001, 3) }()
		synctest.Wait()
		if err := log.StoreLog(creation(2000, 3)); err != nil { // it comes a little later
			t.Fatal(err)
		}
		if err := <-reached; err != nil || m.load().dbs.Len() != 2001 {
			t.Errorf("%d databases, %v", m.load().dbs.Len(), err)
		}
		go func() { reached <- m.waitApplied(t.Context(), log, 2002, 0) }()
		synctest.Wait()
		m.ApplyBatch([]*raft.Log{creation(2001, 9)})
		if err := <-reached; err != nil {
			t.Error(err)
		}
		if len(m.waiters.list) != 0 {
			t.Error("somebody still waits")
		}
	})
}

// Entries that were applied are passed over when Raft brings them, and a
// snapshot of an earlier state changes nothing.
func TestNothingTwice(t *testing.T) {
	m := newTestMachine(t)
	log := creations(t, 10, 1)
	old := snapshotOf(t, m)
	if err := m.replay(log, 0, 99); err != nil { // more than the log has
		t.Fatal(err)
	}
	before := dump(m)
	sub, _ := m.subscribe()
	entries, err := readLog(log, 1, 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, res := range m.ApplyBatch(entries) {
		if res != nil {
			t.Errorf("applied again: %v", res)
		}
	}
	if err := m.Restore(io.NopCloser(bytes.NewReader(old))); err != nil {
		t.Fatal(err)
	}
	if events, err := sub.take(); dump(m) != before || len(events) != 0 || err != nil {
		t.Errorf("%d events, %v, state\n%s", len(events), err, dump(m))
	}
	if err := m.replay(raft.NewInmemStore(), 0, 10); err != nil { // compacted away
		t.Error(err)
	}
	if _, err := readLog(log, 10, 11); err == nil {
		t.Error("read an entry that is not there")
	}
}

// installed returns stores of a node that got a snapshot from a leader: its own
// old log ends at the entry old, which was never committed, the snapshot was
// taken at entry 20 but its last command is entry 5, and entries 21 to 30 came
// after it. The entries up to 30 were known to be committed.
func installed(t *testing.T, old int) *Stores {
	t.Helper()
	m := newTestMachine(t)
	for i := range 5 {
		m.Apply(creation(i, 2))
	}
	s, err := m.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	stores := memoryStores()
	_, trans := raft.NewInmemTransport(self)
	defer func() { _ = trans.Close() }()
	servers := raft.Configuration{Servers: []raft.Server{{Suffrage: raft.Voter, ID: self, Address: self}}}
	sink, err := stores.Snapshots.Create(raft.SnapshotVersionMax, 20, 2, servers, 1, trans)
	if err == nil {
		err = s.Persist(sink)
	}
	for i := range old {
		err = errors.Join(err, stores.Log.StoreLog(creation(i, 1)))
	}
	for i := 20; i < 30; i++ {
		err = errors.Join(err, stores.Log.StoreLog(creation(i, 3)))
	}
	err = errors.Join(err, storeGroupID(*stores, m.load().groupID()), stores.Stable.SetUint64([]byte("CurrentTerm"), 3), stores.Stable.SetUint64(committedKey(), 30))
	if err != nil {
		t.Fatal(err)
	}
	return stores
}

// A node starts on a log that does not join on to its snapshot, and takes
// nothing of what is before the snapshot for committed.
func TestStartBehindASnapshot(t *testing.T) {
	for _, old := range []int{0, 12, 20} {
		t.Run(fmt.Sprintf("old=%d", old), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, _ := start(t, Options{Stores: installed(t, old)})
				if n := m.Databases().Len(); n != 15 {
					t.Errorf("%d databases, want 5 of the snapshot and 10 of the log", n)
				}
				if _, ok := m.Database("db7"); ok {
					t.Error("a database that was never committed is there")
				}
			})
		})
	}
}

// A machine that has just got a snapshot does not reach for entries before
// Raft has shown it where the log goes on.
func TestWaitAppliedBehindASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, stores := newTestMachine(t), installed(t, 20)
		snaps, err := stores.Snapshots.List()
		if err != nil {
			t.Fatal(err)
		}
		_, r, err := stores.Snapshots.Open(snaps[0].ID)
		if err == nil {
			err = m.Restore(r)
		}
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := m.waitApplied(ctx, stores.Log, 30, 3); err == nil || m.load().dbs.Len() != 5 {
			t.Errorf("%d databases, %v", m.load().dbs.Len(), err)
		}
		m.ApplyBatch([]*raft.Log{creation(20, 3)})
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := m.waitApplied(ctx, stores.Log, 30, 3); err != nil || m.load().dbs.Len() != 15 {
			t.Errorf("%d databases, %v", m.load().dbs.Len(), err)
		}
	})
}

// A log that does not have what was applied stops the machine, wherever that
// shows; one that has it does not.
func TestRewrittenHistory(t *testing.T) {
	configuration := func(l *raft.Log) *raft.Log {
		l.Type, l.Data = raft.LogConfiguration, nil
		return l
	}
	for _, c := range []struct {
		name    string
		entry   *raft.Log
		stopped bool
	}{
		{"the last command", creation(9, 5), false},
		{"before it", creation(6, 4), false},
		{"the same term before it", creation(6, 5), false},
		{"no term", creation(9, 0), false},
		{"behind it", creation(10, 6), false},
		{"another term", creation(9, 6), true},
		{"an older term", creation(9, 4), true},
		{"not even a command", configuration(creation(9, 6)), true},
		{"a newer term before it", creation(6, 6), true},
	} {
		m := newTestMachine(t)
		if err := m.replay(creations(t, 10, 5), 0, 10); err != nil {
			t.Fatal(err)
		}
		m.ApplyBatch([]*raft.Log{c.entry, creation(10, 6)})
		wantStopped(t, c.name, m, c.stopped)
		if went := m.load().dbs.Len() == 11; went == c.stopped {
			t.Errorf("%s: %d databases", c.name, m.load().dbs.Len())
		}
	}
	for _, term := range []uint64{5, 6} {
		m, other := newTestMachine(t), newTestMachine(t)
		err := errors.Join(m.replay(creations(t, 10, 5), 0, 10), other.replay(creations(t, 7, term), 0, 7))
		if err != nil {
			t.Fatal(err)
		}
		err = m.Restore(io.NopCloser(bytes.NewReader(snapshotOf(t, other))))
		wantStopped(t, "a snapshot", m, term == 6)
		if errors.Is(err, errRewritten) != (term == 6) {
			t.Errorf("restore a snapshot of term %d: %v", term, err)
		}
	}
}

func wantStopped(t *testing.T, name string, m *stateMachine, stopped bool) {
	t.Helper()
	select {
	case err := <-m.fatal:
		if !stopped || !errors.Is(err, errRewritten) {
			t.Errorf("%s: stopped with %v", name, err)
		}
	default:
		if stopped {
			t.Errorf("%s: not stopped", name)
		}
	}
}
