package shard

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"divan/storage"
	"divan/storage/doc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const copyName = "shards/00000000-ffffffff/db.1763600000"

// node is an engine and a Local on a file system.
type node struct {
	t      testing.TB
	fs     vfs.FS
	engine *storage.Engine
	*Local
}

// open starts a node; the file system may hold one from before.
func open(tb testing.TB, fs vfs.FS, o Options) *node {
	tb.Helper()
	e, err := storage.NewEngine(storage.Options{Dir: "/data", FS: fs, CacheBytes: 8 << 20})
	if err != nil {
		tb.Fatal(err)
	}
	o.Engine = e
	return &node{t: tb, fs: fs, engine: e, Local: New(o)}
}

func newFS() vfs.FS { return vfs.NewMem() }

// start is open with an empty copy.
func start(tb testing.TB, o Options) *node {
	tb.Helper()
	n := open(tb, newFS(), o)
	n.create(CreateOptions{})
	tb.Cleanup(n.stop)
	return n
}

// create makes the copy. One without an id is not small, so that half of the tests are about files of its own.
func (n *node) create(o CreateOptions) {
	n.t.Helper()
	var err error
	if o.ID == 0 {
		err = n.engine.Create(copyName, storage.CreateOptions{Partitioned: o.Partitioned})
	} else {
		err = n.Copies.Create(context.Background(), copyName, o)
	}
	if err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) stop() {
	n.t.Helper()
	if n.engine == nil {
		return
	}
	if err := n.Close(); err != nil {
		n.t.Error(err)
	}
	if err := n.engine.Close(); err != nil {
		n.t.Error(err)
	}
	n.engine = nil
}

// openCopy opens the copy; close it.
func (n *node) openCopy() OpenCopy {
	n.t.Helper()
	open, err := n.Copies.Open(context.Background(), copyName)
	if err != nil {
		n.t.Fatal(err)
	}
	return open
}

// check runs the verification of the store.
func (n *node) check() {
	n.t.Helper()
	s, err := n.engine.Acquire(copyName)
	if err != nil {
		n.t.Fatal(err)
	}
	defer n.engine.Release(s)
	if err := s.Check(context.Background(), func(problem string) { n.t.Errorf("check: %s", problem) }); err != nil {
		n.t.Fatal(err)
	}
}

// compactNow compacts and waits for the end.
func (n *node) compactNow(l Limits) error {
	s, err := n.engine.Acquire(copyName)
	if err != nil {
		return err
	}
	defer n.engine.Release(s)
	return n.Compactions.run(context.Background(), copyName, s, l, func(uint64, uint64) {})
}

// edit does one interactive edit; parent "" names none.
func (n *node) edit(id, parent, body string) EditResult {
	n.t.Helper()
	return n.edits(true, Edit{ID: id, Parent: rev(n.t, parent), Body: []byte(body)})[0]
}

func (n *node) remove(id, parent string) EditResult {
	n.t.Helper()
	return n.edits(true, Edit{ID: id, Parent: rev(n.t, parent), Deleted: true, Body: []byte("{}")})[0]
}

// replicate merges a revision; way is its path, "!" at its end a deletion.
func (n *node) replicate(id, way, body string) EditResult {
	n.t.Helper()
	return n.edits(false, replicated(n.t, id, way, body))[0]
}

func replicated(tb testing.TB, id, way, body string) Edit {
	tb.Helper()
	text, deleted := way, false
	if way[len(way)-1] == '!' {
		text, deleted = way[:len(way)-1], true
	}
	return Edit{ID: id, Path: path(tb, text), Deleted: deleted, Body: []byte(body)}
}

func (n *node) edits(newEdits bool, edits ...Edit) []EditResult {
	n.t.Helper()
	res, err := n.Decide(context.Background(), DecideRequest{Copy: copyName, NewEdits: newEdits, Edits: edits, Insist: true})
	if err != nil {
		n.t.Fatal(err)
	}
	return res
}

// must returns the new revision of an edit that has to succeed.
func (n *node) must(r EditResult) string {
	n.t.Helper()
	if r.Err != nil {
		n.t.Fatalf("refused: %v", r.Err)
	}
	return r.Rev.String()
}

func (n *node) get(req OpenRequest) (*Doc, error) {
	req.Copy = copyName
	return n.Open(context.Background(), req)
}

// show is "rev body" of the winner, or the reason why there is none.
func (n *node) show(id string) string {
	d, err := n.get(OpenRequest{ID: id})
	return shown(d, err)
}

func (n *node) showRev(id, r string) string {
	d, err := n.get(OpenRequest{ID: id, Rev: rev(n.t, r)})
	return shown(d, err)
}

func shown(d *Doc, err error) string {
	if err != nil {
		return err.Error()
	}
	text := d.Rev.String() + " " + string(d.Body)
	if d.Deleted {
		text += " deleted"
	}
	return text
}

func (n *node) info() Info {
	n.t.Helper()
	i, err := n.Info(context.Background(), copyName)
	if err != nil {
		n.t.Fatal(err)
	}
	return i
}

// rows lists everything in a range, in batches, and closes the stream.
func (n *node) rows(req DocsRequest) []Row {
	n.t.Helper()
	req.Copy = copyName
	s, err := n.AllDocs(context.Background(), req)
	if err != nil {
		n.t.Fatal(err)
	}
	defer s.Close()
	var out []Row
	var b RowBatch
	for more := true; more; {
		if more, err = s.Next(&b); err != nil {
			n.t.Fatal(err)
		}
		for _, r := range b.Rows {
			if r.Doc != nil {
				d := *r.Doc
				d.Body = bytes.Clone(d.Body)
				r.Doc = &d
			}
			out = append(out, r)
		}
	}
	return out
}

// changes lists a feed and closes it.
func (n *node) changes(req ChangesRequest) []Change {
	n.t.Helper()
	req.Copy = copyName
	s, err := n.Changes(context.Background(), req)
	if err != nil {
		n.t.Fatal(err)
	}
	defer s.Close()
	var out []Change
	var b ChangeBatch
	for more := true; more; {
		if more, err = s.Next(&b); err != nil {
			n.t.Fatal(err)
		}
		for _, c := range b.Rows {
			c.Leaves = append([]doc.Rev{}, c.Leaves...)
			if c.Doc != nil {
				d := *c.Doc
				d.Body = bytes.Clone(d.Body)
				c.Doc = &d
			}
			out = append(out, c)
		}
	}
	return out
}

// feed is the changes as text: "seq id rev,rev[ deleted]".
func (n *node) feed(req ChangesRequest) []string {
	n.t.Helper()
	var out []string
	for _, c := range n.changes(req) {
		text := fmt.Sprintf("%d %s ", c.Seq, c.ID)
		for i, r := range c.Leaves {
			if i > 0 {
				text += ","
			}
			text += r.String()
		}
		if c.Deleted {
			text += " deleted"
		}
		out = append(out, text)
	}
	return out
}

// read returns the content of an attachment.
func (n *node) read(id string, key [16]byte) string {
	n.t.Helper()
	r, err := n.Attachments.Read(context.Background(), AttachmentRange{Copy: copyName, ID: id, Key: key, Length: -1})
	if err != nil {
		n.t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		n.t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		n.t.Fatal(err)
	}
	return string(b)
}
