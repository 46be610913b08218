package indexer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/shard"
	"divan/shard/index"
	"divan/shard/script"
	"divan/shard/search"
	"divan/shard/search/postings"
	"divan/shard/search/syntax"
	"divan/storage"
	"divan/storage/doc"
)

const copyName = "shards/00000000-ffffffff/db.1763600000"

// startNode starts what a node has of a copy that has some documents.
func startNode(t *testing.T, documents map[string]string) *search.Indexes {
	t.Helper()
	e, err := storage.NewEngine(storage.Options{Dir: "data", FS: vfs.NewMem(), CacheBytes: 8 << 20, JoinIndex: postings.Join})
	if err != nil {
		t.Fatal(err)
	}
	shards := shard.New(shard.Options{Engine: e})
	manager := index.New(index.Options{Engine: e, Shards: shards})
	scripts := script.New(script.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := manager.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	running.Go(func() {
		if err := e.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
		if err := errors.Join(manager.Close(), scripts.Close(), shards.Close(), e.Close()); err != nil {
			t.Error(err)
		}
	})
	if err := shards.Copies.Create(ctx, copyName, shard.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for id, body := range documents {
		edit := shard.Edit{ID: id, Body: []byte(body), Path: doc.Path{Start: 1, IDs: []string{fmt.Sprintf("%032x", 1)}}}
		results, err := shards.Decide(ctx, shard.DecideRequest{Copy: copyName, Edits: []shard.Edit{edit}})
		if err = errors.Join(err, results[0].Err); err != nil {
			t.Fatal(err)
		}
	}
	return search.New(manager, New(scripts))
}

// TestQueries: queries find what index functions, and Mango, make of documents.
func TestQueries(t *testing.T) {
	n := startNode(t, map[string]string{
		"a": `{"v":"One two"}`, "b": `{"v":3,"list":["x"]}`, "c": `{}`, "d": `{"v":null,"name":{"first":"Ann"}}`, "e": `{"v":"drop me"}`, "f": `{"nan":true}`, "_design/x": `{"v":"one design"}`,
	})
	const function = `"index":"function (doc) { if (doc.nan) index('v', 0/0); else if (doc.v !== undefined) index('v', doc.v, {store: true}); if (doc._id == 'e') throw 1; }"`
	const typed = `"index":"function (doc) { if (typeof doc.v == 'string') index('text', 'v', doc.v); }"`
	for _, c := range []struct {
		ddoc    string
		dialect syntax.Dialect
		queries map[string][]string
	}{
		{`{"indexes":{"i":{` + function + `}}}`, syntax.Search, map[string][]string{
			"*:*": {"_design/x", "a", "b", "f"}, "v:one": {"_design/x", "a"}, "v:3": {"b"}, `v:"one two"`: {"a"}, "v:drop": nil,
		}},
		{`{"nouveau":{"i":{` + typed + `}}}`, syntax.Nouveau, map[string][]string{"*:*": {"a", "e"}, "v:two": {"a"}}},
		{`{"language":"query","indexes":{"i":{"index":{"fields":"all_fields"},"analyzer":{"name":"perfield","default":"keyword","fields":{"$default":"standard"}}}}}`, syntax.Search, map[string][]string{
			"*:*": {"a", "b", "c", "d", "e", "f"}, `v_3astring:"One two"`: {"a"}, "v_3astring:One": nil, "v_3anumber:3": {"b"}, "v_3anull:true": {"d"}, "$default:two": {"a"},
			`list._5b_5d_3astring:x`: {"b"}, `list._5b_5d_3alength:1`: {"b"}, "$fieldnames:v_3a*": {"a", "b", "d", "e"}, "$fieldnames:name.*": {"d"}, "nan_3aboolean:true": {"f"},
		}},
	} {
		def, err := search.Parse([]byte(c.ddoc), c.dialect, "i", false)
		if err != nil {
			t.Fatal(err)
		}
		for q, want := range c.queries {
			a, err := n.Query(t.Context(), search.Request{Copy: copyName, Signature: def.Signature, Definition: def.Text, Query: q, Limit: 100, Sort: []search.Sort{{By: search.ByID}}})
			if err != nil {
				t.Errorf("%s: %v", q, err)
				continue
			}
			var ids []string
			for _, h := range a.Hits {
				ids = append(ids, h.ID)
			}
			slices.Sort(ids)
			if !slices.Equal(ids, want) {
				t.Errorf("%s of %s: %v", q, c.ddoc, ids)
			}
		}
	}
}
