package cluster

import (
	"bytes"
	"crypto/md5"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"divan/cluster/attachment"
	"divan/cluster/fanout"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// TestUploadWithTrouble: one copy does not take the content, or stops taking
// it. The others have it, the edit is accepted, and nothing refers to what is
// not there.
func TestUploadWithTrouble(t *testing.T) {
	content := noise(2 << 20)
	for _, tr := range []trouble{fine, away, failing, silent, deaf, slow, broken} {
		for _, node := range []string{node2, node3} { // n2 decides
			t.Run(fmt.Sprint(tr, " ", node), func(t *testing.T) {
				bubble(t, func(t *testing.T, w *world, d *DB) {
					t.Helper()
					d = d.ordered(node2, node1, node3)
					w.fleet.links[node].batches = 3
					w.trouble(tr, node)
					begun := time.Now()
					att, err := d.Upload(t.Context(), "a", attachment.Options{Name: "att", Length: -1}, bytes.NewReader(content))
					if err != nil {
						t.Fatal(err)
					}
					if took := time.Since(begun); took > fanout.StallLimit+20*slowness {
						t.Errorf("took %s", took)
					}
					w.trouble(fine, node)
					w.fleet.misses()
					r := update(t, d, UpdateOptions{NewEdits: true}, shard.Edit{ID: "a", Body: []byte("{}"), Atts: []shard.EditAttachment{att}})[0]
					if r.Err != nil || r.Accepted {
						t.Fatalf("%+v", r)
					}
					w.settleWrites()
					lacks := tr != fine && tr != slow
					if got := strings.Join(w.fleet.misses(), " "); (got == node) != lacks {
						t.Errorf("noted for repair: %q", got)
					}
					for _, c := range d.routing.Routes[0].Copies {
						has := w.everywhere(t, d, "a")[c.Node] != "missing"
						got, err := w.locals[c.Node].Attachments.Read(t.Context(), shard.AttachmentRange{Copy: c.Name, ID: "a", Key: att.Key, Length: -1})
						if has != (c.Node != node || !lacks) || (err == nil) != has {
							t.Errorf("%s has the document: %v, the content: %v", c.Node, has, err)
						}
						if err == nil {
							_ = got.Close() // read only
						}
					}
					if _, err := d.Open(t.Context(), OpenOptions{ID: "a", R: 3}); err != nil {
						t.Fatal(err)
					}
					w.settleWrites()
					if w.everywhere(t, d, "a")[node] == "missing" {
						t.Error("not repaired")
					}
					if back := contentOf(t, d, "a", att.Attachment); !bytes.Equal(back, content) {
						t.Errorf("%d bytes", len(back))
					}
				})
			})
		}
	}
}

// TestReadAttachmentWithTrouble: the copy that is read breaks off in the
// middle, or has the same content under another key.
func TestReadAttachmentWithTrouble(t *testing.T) {
	content := noise(1 << 20)
	for _, tr := range []trouble{away, failing, silent, deaf, broken} {
		t.Run(fmt.Sprint(tr), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world, d *DB) {
				t.Helper()
				d = d.without(node1).ordered(node2, node3)
				w.fleet.links[node2].batches = 3
				att, err := d.Upload(t.Context(), "a", attachment.Options{Name: "att", Length: -1}, bytes.NewReader(content))
				if err != nil {
					t.Fatal(err)
				}
				if r := update(t, d, UpdateOptions{NewEdits: true}, shard.Edit{ID: "a", Body: []byte("{}"), Atts: []shard.EditAttachment{att}})[0]; r.Err != nil {
					t.Fatal(r.Err)
				}
				w.settleWrites()
				for _, part := range [][2]int64{{0, -1}, {1000, 500_000}} {
					w.trouble(fine, node2)
					r, err := d.ReadAttachment(t.Context(), "a", att.Attachment, part[0], part[1])
					if err != nil {
						t.Fatal(err)
					}
					head := make([]byte, 50_000)
					if _, err := io.ReadFull(r, head); err != nil {
						t.Fatal(err)
					}
					w.trouble(tr, node2)
					rest, err := io.ReadAll(r)
					if err != nil {
						t.Fatal(err)
					}
					if err := r.Close(); err != nil {
						t.Fatal(err)
					}
					want := content[part[0]:]
					if part[1] >= 0 {
						want = want[:part[1]]
					}
					if !bytes.Equal(append(head, rest...), want) {
						t.Fatalf("%d bytes", len(head)+len(rest))
					}
				}
				w.trouble(fine, node2)
				other := att.Attachment
				other.Key = [16]byte{1}
				if back := contentOf(t, d, "a", other); !bytes.Equal(back, content) {
					t.Fatalf("under another key: %d bytes", len(back))
				}
				other.Digest = [16]byte{1}
				if _, err := d.ReadAttachment(t.Context(), "a", other, 0, -1); !fault.Is(err, fault.NotFound) {
					t.Fatalf("no such content: %v", err)
				}
			})
		})
	}
}

// TestStubOfMissedRevision: a copy that lacks the revision that a stub refers
// to lets the rest of the batch through.
func TestStubOfMissedRevision(t *testing.T) {
	bubble(t, func(t *testing.T, w *world, d *DB) {
		t.Helper()
		d = d.ordered(node1, node2, node3)
		up := w.down(node2)
		att, err := d.Upload(t.Context(), "a", attachment.Options{Name: "att", Length: -1}, bytes.NewReader(noise(1000)))
		if err != nil {
			t.Fatal(err)
		}
		first := update(t, d, UpdateOptions{NewEdits: true}, shard.Edit{ID: "a", Body: []byte("{}"), Atts: []shard.EditAttachment{att}})[0]
		w.settleWrites()
		up()
		stub := shard.EditAttachment{Attachment: doc.Attachment{Name: "att"}, Stub: true}
		r := update(t, d, UpdateOptions{NewEdits: true, W: 3},
			shard.Edit{ID: "a", Parent: first.Rev, Body: []byte(`{"n":2}`), Atts: []shard.EditAttachment{stub}},
			shard.Edit{ID: "b", Body: []byte("{}")})
		if r[0].Err != nil || !r[0].Accepted || r[1].Err != nil || r[1].Accepted {
			t.Fatalf("%+v", r)
		}
		// The same when it decides.
		other := d.ordered(node2, node1, node3)
		r = update(t, other, UpdateOptions{NewEdits: true, W: 2},
			shard.Edit{ID: "a", Parent: r[0].Rev, Body: []byte(`{"n":3}`), Atts: []shard.EditAttachment{stub}})
		if r[0].Err != nil || r[0].Accepted {
			t.Fatalf("%+v", r)
		}
		path := doc.Path{Start: 5, IDs: []string{"x", "y", r[0].Rev.ID}}
		r = update(t, other, UpdateOptions{W: 2}, shard.Edit{ID: "a", Path: path, Body: []byte(`{"n":3}`), Atts: []shard.EditAttachment{stub}})
		if r[0].Err != nil {
			t.Fatalf("%+v", r)
		}
		_, err = d.Update(t.Context(), UpdateOptions{}, []shard.Edit{{ID: "z", Path: path, Body: []byte(`{}`), Atts: []shard.EditAttachment{stub}}})
		if !fault.Is(err, fault.MissingStub) {
			t.Fatalf("a stub of nothing: %v", err)
		}
	})
}

// TestMissingStubInDoubt: one copy that was asked to decide may have done the edit; another one
// does not know what its stub stands for. So the error does not say that the edit was refused.
func TestMissingStubInDoubt(t *testing.T) {
	bubble(t, func(t *testing.T, w *world, d *DB) {
		t.Helper()
		d = d.ordered(node2, node3)
		up := w.down(node3)
		att, err := d.Upload(t.Context(), "a", attachment.Options{Name: "att", Length: -1}, bytes.NewReader(noise(1000)))
		if err != nil {
			t.Fatal(err)
		}
		first := update(t, d, UpdateOptions{NewEdits: true}, shard.Edit{ID: "a", Body: []byte("{}"), Atts: []shard.EditAttachment{att}})[0]
		w.settleWrites()
		up()
		up = w.trouble(deaf, node2)
		stub := shard.EditAttachment{Attachment: doc.Attachment{Name: "att"}, Stub: true}
		path := doc.Path{Start: 2, IDs: []string{"x", first.Rev.ID}}
		_, err = d.Update(t.Context(), UpdateOptions{}, []shard.Edit{{ID: "a", Path: path, Body: []byte(`{}`), Atts: []shard.EditAttachment{stub}}})
		if !fault.Is(err, fault.Timeout) {
			t.Errorf("%v", err)
		}
		up()
		w.settleWrites()
		if got, err := d.Open(t.Context(), OpenOptions{ID: "a", R: 2}); err != nil || got.Rev.Pos != 2 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// TestMissingStubTellsMoreThanConflict: a copy that is behind takes the revision that
// the client named for an outdated one, and does the other edits of the request. The
// copy that knows the revision says that its stub stands for nothing: that is the
// answer, whichever of them decided.
func TestMissingStubTellsMoreThanConflict(t *testing.T) {
	for _, held := range []bool{false, true} { // whether the copy that knows is asked first, and too slow
		bubble(t, func(t *testing.T, w *world, d *DB) {
			t.Helper()
			d = d.ordered(node2, node3, node1)
			first := put(t, d, "a", doc.Rev{}, `{"n":1}`)
			w.settleWrites()
			second := put(t, d.without(node3), "a", first, `{"n":2}`)
			w.settleWrites()
			if held {
				defer w.trouble(slow, node2)()
			} else {
				d = d.ordered(node3, node2, node1)
			}
			stub := []shard.EditAttachment{{Attachment: doc.Attachment{Name: "none"}, Stub: true}}
			results, err := d.Update(t.Context(), UpdateOptions{NewEdits: true}, []shard.Edit{
				{ID: "good", Body: []byte("{}")},
				{ID: "a", Parent: second, Body: []byte(`{"n":3}`), Atts: stub},
			})
			if err != nil || results[0].Err != nil || !fault.Is(results[1].Err, fault.MissingStub) {
				t.Errorf("held %t: %+v, %v", held, results, err)
			}
			w.settleWrites()
		})
	}
}

// TestStubOfAnotherAncestor: what a stub keeps is decided once. A copy that has
// an older ancestor only, with other content of that name, does not take that
// for it.
func TestStubOfAnotherAncestor(t *testing.T) {
	for _, interactive := range []bool{true, false} {
		for _, known := range []bool{false, true} { // whether the deciding copy has the revision already
			bubble(t, func(t *testing.T, w *world, d *DB) {
				t.Helper()
				d = d.ordered(node2, node1, node3)
				small := func(text string) []shard.EditAttachment {
					return []shard.EditAttachment{{
						Attachment: doc.Attachment{Name: "att", Length: int64(len(text)), StoredLength: int64(len(text)), Digest: md5.Sum([]byte(text))},
						Data:       []byte(text),
					}}
				}
				first := update(t, d, UpdateOptions{NewEdits: true}, shard.Edit{ID: "a", Body: []byte("{}"), Atts: small("old")})[0].Rev
				w.settleWrites()
				up := w.down(node3)
				second := update(t, d, UpdateOptions{NewEdits: true}, shard.Edit{ID: "a", Parent: first, Body: []byte("{}"), Atts: small("new")})[0].Rev
				w.settleWrites()
				stub := []shard.EditAttachment{{Attachment: doc.Attachment{Name: "att"}, Stub: true}}
				e := shard.Edit{ID: "a", Parent: second, Body: []byte(`{"n":3}`), Atts: stub}
				if !interactive {
					e.Path = doc.Path{Start: 3, IDs: []string{"x", second.ID, first.ID}}
				}
				if known {
					e.Path = doc.Path{Start: 3, IDs: []string{"x", second.ID, first.ID}}
					update(t, d, UpdateOptions{}, e)
					w.settleWrites()
				}
				up()
				third := update(t, d, UpdateOptions{NewEdits: interactive && !known}, e)[0].Rev
				w.settleWrites()
				for node, l := range w.locals {
					got, err := l.Open(t.Context(), shard.OpenRequest{Copy: d.routing.Owner("a").Copies[0].Name, ID: "a", Rev: third, HeadOnly: true})
					switch {
					case err != nil && node != node3: // which may leave it to repair
						t.Errorf("%s: %v", node, err)
					case err == nil && got.Atts[0].Digest != md5.Sum([]byte("new")):
						t.Errorf("%s keeps other content (interactive %t, known %t)", node, interactive, known)
					}
				}
			})
		}
	}
}
