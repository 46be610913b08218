package meta

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"divan/cluster/config"
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
	db := &Database{Name: fmt.Sprintf("db%d", i), Created: 5, Shards: []ring.Shard{{Range: ring.Full(), Nodes: []string{"a@a"}}}}
	return &raft.Log{Index: uint64(i + 1), Term: term, Type: raft.LogCommand, Data: (&command{kind: kindCreate, db: db}).encode()}
}

// A machine that reaches for an entry applies it when the log has it with that
// term, and else waits until Raft brings it.
func TestReach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(self, holder(t, config.Options{}))
		log := creations(t, 2000, 3)
		if err := m.reach(t.Context(), log, 1500, 3); err != nil || m.load().dbs.Len() != 1500 || m.load().term != 3 {
			t.Errorf("%d databases, %v", m.load().dbs.Len(), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := m.reach(ctx, log, 1600, 4); err == nil || m.load().dbs.Len() != 1500 {
			t.Errorf("applied what another leader wrote: %d, %v", m.load().dbs.Len(), err)
		}
		reached := make(chan error, 1)
		go func() { reached <- m.reach(t.Context(), log, 2001, 3) }()
		synctest.Wait()
		if err := log.StoreLog(creation(2000, 3)); err != nil { // it comes a little later
			t.Fatal(err)
		}
		if err := <-reached; err != nil || m.load().dbs.Len() != 2001 {
			t.Errorf("%d databases, %v", m.load().dbs.Len(), err)
		}
		go func() { reached <- m.reach(t.Context(), log, 2002, 0) }()
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
	m := testMachine(t)
	log := creations(t, 10, 1)
	old := snapshotOf(t, m)
	if err := m.replay(log, 99); err != nil { // more than the log has
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
	if err := m.replay(raft.NewInmemStore(), 10); err != nil { // compacted away
		t.Error(err)
	}
	if _, err := readLog(log, 10, 11); err == nil {
		t.Error("read an entry that is not there")
	}
}
