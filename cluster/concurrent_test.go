package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"

	"divan/shard"
	"divan/storage/fault"
)

// TestConcurrentLife creates, deletes, writes, lists and watches a few databases from many
// goroutines: in any order, nothing but the refusals that belong to it is seen, and what is left at
// the end works.
func TestConcurrentLife(t *testing.T) {
	w := start(t, setup{})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 1))
			for i := range 60 {
				name := fmt.Sprintf("db%d", rng.IntN(3))
				if err := w.oneOf(t.Context(), rng, name, fmt.Sprintf("doc%d-%d", g, i)); err != nil {
					switch fault.KindOf(err) {
					case fault.NotFound, fault.Deleted, fault.NoDatabase, fault.Exists:
					default:
						t.Errorf("%s: %v", name, err)
					}
				}
			}
		})
	}
	wg.Wait()
	for i := range 3 {
		name := fmt.Sprintf("db%d", i)
		if err := w.CreateDB(t.Context(), name, CreateOptions{}); err != nil && !fault.Is(err, fault.Exists) {
			t.Fatal(err)
		}
		d := w.open(name)
		bulk(t, d, "last1", "last2")
		ids, total, _ := list(t, d, DocsQuery{Limit: NoLimit, StartKey: ptr("last")})
		if ids != "last1 last2" || total < 2 {
			t.Fatalf("%s: %s of %d", name, ids, total)
		}
	}
	names, err := w.locals[node1].Copies.Names()
	if err != nil || len(names) != 6 {
		t.Fatalf("copies on disk: %q, %v", names, err)
	}
}

// oneOf does one operation, drawn at random.
func (w *world) oneOf(ctx context.Context, rng *rand.Rand, name, id string) error {
	switch rng.IntN(10) {
	case 0, 1:
		return w.CreateDB(ctx, name, CreateOptions{})
	case 2:
		return w.DeleteDB(ctx, name)
	}
	d, err := w.DB(ctx, name)
	if err != nil {
		return err
	}
	switch rng.IntN(4) {
	case 0:
		rows, err := d.AllDocs(ctx, DocsQuery{Limit: NoLimit})
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
		}
		return rows.Err()
	case 1:
		f, err := d.Changes(ctx, ChangesQuery{Limit: 5})
		if err != nil {
			return err
		}
		defer f.Close()
		for f.Next() {
		}
		if f.Err() != nil || f.left > 0 {
			return f.Err()
		}
		if err := f.Wait(ctx); !errors.Is(err, io.EOF) {
			return fmt.Errorf("at the limit: %w", err)
		}
		return nil
	case 2:
		_, err := d.Info(ctx)
		return err
	default:
		results, err := d.Update(ctx, UpdateOptions{NewEdits: true}, []shard.Edit{{ID: id, Body: []byte("{}")}})
		if err != nil {
			return err
		}
		return results[0].Err
	}
}
