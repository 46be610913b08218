package node

import (
	"path"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/storage"
)

// loseSmall kills a node and damages the files that its small shards share: all of them are removed, or
// a record of the manifest is overwritten.
func (h *home) loseSmall(damaged bool) {
	t := h.town.t
	t.Helper()
	h.kill()
	dir := path.Join("data", storage.SmallDir)
	if !damaged {
		if err := h.cfg.FS.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		return
	}
	files, err := h.cfg.FS.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if !strings.HasPrefix(name, "MANIFEST") {
			continue
		}
		f, err := h.cfg.FS.OpenReadWrite(path.Join(dir, name), vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte("what no manifest has"), 10); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// One of three nodes loses the files of its small shards: its copies join again and are filled, with a line in
// the log for each.
func TestSmallShardsLost(t *testing.T) {
	for name, damaged := range map[string]bool{"removed": false, "damaged": true} {
		t.Run(name, func(t *testing.T) {
			inTown(t, func(w *town) {
				a, b, c := w.seeded()
				a.fill("pond")
				uuid := a.node.meta.UUID()
				c.loseSmall(damaged)
				c.start()
				w.wantWhole(uuid, "pond", a, b, c)
				w.eventually("no copy joins any more", func() bool {
					return strings.HasPrefix(c.ask("GET", "/_node/_local/_lost_shards", ""), `200 {"lost":[],"joining":[]}`)
				})
				if c.logs.FilterMessage("copy is missing, it joins").Len() == 0 {
					w.t.Error("the log does not say that copies join")
				}
			})
		})
	}
}

// A lone node loses the files of its small shards: these are refused with 503 and listed as lost, all else works, and
// they are empty when the loss is accepted.
func TestLoneSmallShardsLost(t *testing.T) {
	for name, damaged := range map[string]bool{"removed": false, "damaged": true} {
		t.Run(name, func(t *testing.T) {
			inTown(t, func(w *town) {
				h := w.lone("DIVAN_CLUSTER__Q=1")
				h.fill("pond")
				h.loseSmall(damaged)
				h.start()
				h.soon("GET", "/pond/frog3", "", `503 {"error":"service unavailable"`)
				h.soon("PUT", "/lake", "", "201")
				h.want("PUT", "/lake/trout", "{}", "201")
				m, _ := h.node.meta.Database("pond")
				lost := m.CopiesOn(h.name)
				w.eventually("the shard is listed as lost", func() bool {
					answer := h.ask("GET", "/_node/_local/_lost_shards", "")
					return strings.Contains(answer, `"`+lost[0]+`"`)
				})
				for _, name := range lost {
					h.want("POST", "/_node/_local/_lost_shards", `{"accept":["`+name+`"]}`, "200")
				}
				h.soon("GET", "/pond", "", "200")
				h.want("GET", "/pond/frog3", "", "404")
				h.want("PUT", "/pond/frog3", "{}", "201")
			})
		})
	}
}
