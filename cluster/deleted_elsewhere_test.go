package cluster

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"divan/cluster/attachment"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// TestDeletedElsewhere: all copies of a database are gone, and a node that the
// leader could not reach at that moment has not heard so. It asks before it
// answers: there is no such database, and no trouble either.
func TestDeletedElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCouncil(t)
		leader, holder, late := c.roles()
		if err := leader.meta.SetDraining(t.Context(), leader.name, false); err != nil {
			t.Fatal(err)
		}
		for name, ask := range questions() {
			if err := leader.CreateDB(t.Context(), name, CreateOptions{N: 2, Q: 2}); err != nil {
				t.Fatal(name, err)
			}
			d, err := late.DB(t.Context(), name)
			if err != nil {
				t.Fatal(name, err)
			}
			for _, s := range d.routing.Routes {
				for _, at := range s.Copies {
					if at.Node == late.name {
						t.Fatalf("%s has a copy on the node that is to hear late", name)
					}
				}
			}
			c.deleteBehind(late, leader, holder, d)
			var asking sync.WaitGroup
			asking.Go(func() {
				if err := ask(t.Context(), d); !fault.Is(err, fault.NotFound) || fault.Reason(err) != fault.Reason(errNoDatabase()) {
					t.Errorf("%s: %v", name, err)
				}
			})
			<-time.After(200 * time.Millisecond)
			c.part()
			asking.Wait()
		}
	})
}

// deleteBehind deletes a database while a node cannot hear of it, and waits
// until its copies are gone.
func (c *council) deleteBehind(late, leader, holder *councillor, d *DB) {
	c.t.Helper()
	c.part(leader.name, late.name)
	if err := leader.DeleteDB(c.t.Context(), d.meta.Name); err != nil {
		c.t.Fatal(err)
	}
	for _, s := range d.routing.Routes {
		c.settle(func() bool { return !holder.holds(c.t, s.Copies[0].Name) && !leader.holds(c.t, s.Copies[0].Name) })
	}
	if late.keeper.gone(d.meta) {
		c.t.Fatalf("%s: the node knows that it is gone", d.meta.Name)
	}
}

// questions are requests of all kinds, by a name for the database of each.
func questions() map[string]func(context.Context, *DB) error {
	var edits []shard.Edit // on both shards
	for _, id := range []string{"frog", "newt", "toad", "eft"} {
		edits = append(edits, shard.Edit{ID: id, Body: []byte("{}")})
	}
	return map[string]func(context.Context, *DB) error{
		"open": func(ctx context.Context, d *DB) error {
			_, err := d.Open(ctx, OpenOptions{ID: "frog"})
			return err
		},
		"open_revs": func(ctx context.Context, d *DB) error {
			_, err := d.OpenRevs(ctx, OpenRevsOptions{ID: "frog", All: true})
			return err
		},
		"update": func(ctx context.Context, d *DB) error {
			_, err := d.Update(ctx, UpdateOptions{NewEdits: true}, edits[:1])
			return err
		},
		"update_many": func(ctx context.Context, d *DB) error {
			_, err := d.Update(ctx, UpdateOptions{NewEdits: true}, edits)
			return err
		},
		"purge": func(ctx context.Context, d *DB) error {
			out, err := d.Purge(ctx, 0, []shard.PurgeItem{{ID: "frog", Revs: []doc.Rev{{Pos: 1, ID: "a"}}}})
			if err == nil {
				err = out[0].Err
			}
			return err
		},
		"all_docs": func(ctx context.Context, d *DB) error {
			rows, err := d.AllDocs(ctx, DocsQuery{Limit: -1})
			if err == nil {
				rows.Close()
			}
			return err
		},
		"changes": func(ctx context.Context, d *DB) error {
			feed, err := d.Changes(ctx, ChangesQuery{Limit: -1})
			if err == nil {
				feed.Close()
			}
			return err
		},
		"local": func(ctx context.Context, d *DB) error {
			_, err := d.LocalGet(ctx, "frog")
			return err
		},
		"upload": func(ctx context.Context, d *DB) error {
			_, err := d.Upload(ctx, "frog", attachment.Options{Name: "pond.png", ContentType: "image/png", Length: -1}, bytes.NewReader(make([]byte, 1<<20)))
			return err
		},
	}
}
