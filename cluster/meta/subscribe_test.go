package meta

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"divan/cluster/meta/dbsetting"
	"divan/shard/ring"
	"divan/storage/fault"
)

func TestSubscription(t *testing.T) {
	m, stop := start(t, Options{})
	create(t, m, "before")
	sub, dbs := m.Subscribe()
	if dbs.Len() != 1 {
		t.Errorf("starts from %d databases", dbs.Len())
	}
	create(t, m, "films")
	if err := m.Set(t.Context(), whichever("films"), dbsetting.RevsLimit, 5); err != nil {
		t.Fatal(err)
	}
	if _, err := m.DeleteDatabase(t.Context(), "films"); err != nil {
		t.Fatal(err)
	}
	var got []EventKind
	for len(got) < 3 {
		events, err := sub.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			got = append(got, e.Kind)
		}
	}
	if !slices.Equal(got, []EventKind{Created, Changed, Deleted}) {
		t.Errorf("events %v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sub.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("next: %v", err)
	}
	other, _ := m.Subscribe()
	other.Close()
	wantKind(t, second(other.Next(t.Context())), fault.Closed)
	stop()
	wantKind(t, second(sub.Next(t.Context())), fault.Closed)
	late, _ := m.Subscribe()
	wantKind(t, second(late.Next(t.Context())), fault.Closed)
}

func TestNextWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTestMachine(t)
		sub, _ := m.subscribe()
		got := make(chan int)
		go func() {
			events, err := sub.Next(t.Context())
			if err != nil {
				t.Error(err)
			}
			got <- len(events)
		}()
		synctest.Wait()
		m.subs.publish(make([]Event, 3))
		if n := <-got; n != 3 {
			t.Errorf("%d events", n)
		}
	})
}

// A subscriber that does not read loses events and is told so.
func TestSlowSubscriber(t *testing.T) {
	m := newTestMachine(t)
	sub, _ := m.subscribe()
	m.subs.publish(make([]Event, maxPending))
	m.subs.publish(make([]Event, 1))
	if _, err := sub.Next(t.Context()); !errors.Is(err, ErrLagged) {
		t.Fatalf("next: %v", err)
	}
	m.subs.publish(make([]Event, 2))
	if events, err := sub.Next(t.Context()); err != nil || len(events) != 2 {
		t.Errorf("after that %d events, %v", len(events), err)
	}
}

func TestReconcile(t *testing.T) {
	shards := func(nodes ...string) []ring.Shard {
		var out []ring.Shard
		for _, r := range ring.Split(2) {
			out = append(out, ring.Shard{Range: r, Copies: ring.CopiesOn(nodes...)})
		}
		return out
	}
	var dbs Databases
	for i, nodes := range [][]string{{"a", "b"}, {"b"}, {"a"}} {
		dbs = dbs.with(&Database{Name: fmt.Sprintf("db%d", i), Suffix: "1763600000", Shards: shards(nodes...)})
	}
	lo, hi := "shards/00000000-7fffffff/", "shards/80000000-ffffffff/"
	got := Reconcile(dbs, "a", []string{hi + "db2.1763600000", lo + "db1.1763600000", lo + "db0.1763599999", lo + "db0.1763600000"})
	want := Plan{
		Create: []string{lo + "db2.1763600000", hi + "db0.1763600000"},
		Drop:   []string{lo + "db0.1763599999", lo + "db1.1763600000"},
	}
	if !slices.Equal(got.Create, want.Create) || !slices.Equal(got.Drop, want.Drop) {
		t.Errorf("plan %+v, want %+v", got, want)
	}
	if p := Reconcile(dbs, "c", nil); p.Create != nil || p.Drop != nil {
		t.Errorf("a node without copies: %+v", p)
	}
}
