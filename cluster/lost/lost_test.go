package lost

import (
	"errors"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"divan/shard"
	"divan/storage"
	"divan/storage/fault"
)

const copyName = "shards/00000000-ffffffff/pond.1763600000"

// register returns a register of a disk with one copy, as an earlier version has left
// it, and what it logs.
func register(t *testing.T) (r *Register, disk vfs.FS, lines *observer.ObservedLogs) {
	t.Helper()
	disk = vfs.NewMem()
	engine, err := storage.NewEngine(storage.Options{Dir: "data", FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(engine.Create(copyName, storage.CreateOptions{}), engine.Close(), disk.Remove("data/made")); err != nil {
		t.Fatal(err)
	}
	if engine, err = storage.NewEngine(storage.Options{Dir: "data", FS: disk}); err != nil {
		t.Fatal(err)
	}
	shards := shard.New(shard.Options{Engine: engine})
	t.Cleanup(func() {
		if err := errors.Join(shards.Close(), engine.Close()); err != nil {
			t.Error(err)
		}
	})
	core, lines := observer.New(zap.WarnLevel)
	return NewRegister(shards.Copies, zap.New(core)), disk, lines
}

// TestSetAside: the log names a copy that was moved out of the way.
func TestSetAside(t *testing.T) {
	r, disk, lines := register(t)
	r.Orphan(t.Context(), copyName)
	r.Orphan(t.Context(), copyName) // is not there any more: that is nothing to tell
	told := lines.TakeAll()
	if len(told) != 1 || told[0].Message != "directory of a shard was set aside" || told[0].ContextMap()["copy"] != copyName {
		t.Errorf("%v", told)
	}
	if kept, err := disk.List("data/" + storage.OrphanedDir + "/00000000-ffffffff"); err != nil || !slices.Equal(kept, []string{"pond.1763600000"}) {
		t.Errorf("%q, %v", kept, err)
	}
}

// TestLoss: what was listed once is missed when it goes. A loss is told once, and that
// it was accepted.
func TestLoss(t *testing.T) {
	r, disk, lines := register(t)
	r.Listed([]string{copyName}, nil)
	if err := r.Accept(t.Context(), copyName, shard.CreateOptions{}); !fault.Is(err, fault.BadRequest) {
		t.Errorf("the loss of what is there was accepted: %v", err)
	}
	if err := disk.RemoveAll("data/" + copyName); err != nil {
		t.Fatal(err)
	}
	if !r.Has(copyName) {
		t.Error("not missed")
	}
	r.Note(copyName)
	r.Note(copyName)
	r.Listed(nil, []string{copyName})
	if got := r.Names(); !slices.Equal(got, []string{copyName}) {
		t.Errorf("lost are %q", got)
	}
	if err := r.Accept(t.Context(), copyName, shard.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := r.Names(); len(got) != 0 || r.Has(copyName) {
		t.Errorf("lost are %q", got)
	}
	told := lines.TakeAll()
	if len(told) != 2 || told[0].Level != zap.ErrorLevel || told[1].Message != "the loss of a shard was accepted: it is empty now" {
		t.Errorf("%v", told)
	}
	r.Note(copyName)
	r.Listed([]string{copyName}, nil) // an operator has put it back
	if got := r.Names(); len(got) != 0 {
		t.Errorf("lost are %q", got)
	}
}

// TestDeletedIsNotLost: a copy whose database was deleted is not missed any more.
func TestDeletedIsNotLost(t *testing.T) {
	r, _, _ := register(t)
	r.Note(copyName)
	r.Forget(copyName)
	if got := r.Names(); len(got) != 0 {
		t.Errorf("lost are %q", got)
	}
}
