package repair

import (
	"bytes"
	"context"
	"crypto/md5"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"divan/cluster/bandwidth"
	"divan/cluster/replica"
	"divan/shard"
	"divan/shard/ring"
	"divan/storage"
	"divan/storage/doc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const copyName = "shards/00000000-ffffffff/db.1763600000"

// tester is what testing.T and rapid.T have in common.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// node is the copies of a node on a file system in memory.
type node struct {
	*shard.Local
	t      tester
	name   string
	fs     vfs.FS
	engine *storage.Engine
	copy   string
	id     uint64            // of the copy in the map; 0: there is none
	update func(copy string) // called for every update; nil: not called
}

// newNode starts a node with an empty copy.
func newNode(t tester, name string) *node {
	t.Helper()
	n := &node{t: t, name: name, fs: newFS(), copy: copyName}
	n.open()
	n.create(shard.CreateOptions{})
	return n
}

func newFS() vfs.FS { return vfs.NewMem() }

func (n *node) open() {
	n.t.Helper()
	e, err := storage.NewEngine(storage.Options{Dir: "data", FS: n.fs, CacheBytes: 8 << 20})
	if err != nil {
		n.t.Fatal(err)
	}
	n.engine = e
	n.Local = shard.New(shard.Options{Engine: e, OnUpdate: func(copy string) {
		if n.update != nil {
			n.update(copy)
		}
	}})
}

func (n *node) create(o shard.CreateOptions) {
	n.t.Helper()
	o.ID = n.id
	if err := n.Copies.Create(context.Background(), n.copy, o); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) stop() {
	n.t.Helper()
	if err := n.Close(); err != nil {
		n.t.Errorf("close: %v", err)
	}
	if err := n.engine.Close(); err != nil {
		n.t.Errorf("close: %v", err)
	}
}

// lose replaces the copy by an empty one.
func (n *node) lose(o shard.CreateOptions) {
	n.t.Helper()
	if err := n.Copies.Drop(context.Background(), n.copy); err != nil {
		n.t.Fatal(err)
	}
	n.create(o)
}

// put does one interactive edit and returns the new revision.
func (n *node) put(id string, parent doc.Rev, body string, atts ...shard.EditAttachment) doc.Rev {
	n.t.Helper()
	return n.write(shard.Edit{ID: id, Parent: parent, Body: []byte(body), Atts: atts})
}

func (n *node) remove(id string, parent doc.Rev) doc.Rev {
	n.t.Helper()
	return n.write(shard.Edit{ID: id, Parent: parent, Deleted: true, Body: []byte("{}")})
}

func (n *node) write(e shard.Edit) doc.Rev {
	n.t.Helper()
	res, err := n.Decide(context.Background(), shard.DecideRequest{Copy: n.copy, NewEdits: true, Insist: true, Edits: []shard.Edit{e}})
	if err == nil {
		err = res[0].Err
	}
	if err != nil {
		n.t.Fatalf("%s: write %s: %v", n.name, e.ID, err)
	}
	return res[0].Rev
}

// branch merges a revision of its own on top of a parent: a conflict where
// that has a child.
func (n *node) branch(id string, parent doc.Rev, rev, body string) doc.Rev {
	n.t.Helper()
	path := doc.Path{Start: parent.Pos + 1, IDs: []string{rev}}
	if !parent.IsZero() {
		path.IDs = append(path.IDs, parent.ID)
	}
	res, err := n.Decide(context.Background(), shard.DecideRequest{
		Copy: n.copy, Insist: true, Edits: []shard.Edit{{ID: id, Path: path, Body: []byte(body)}},
	})
	if err == nil {
		err = res[0].Err
	}
	if err != nil {
		n.t.Fatal(err)
	}
	return path.Rev()
}

func (n *node) purge(uuid byte, id string, revs ...doc.Rev) {
	n.t.Helper()
	_, err := n.Purge(context.Background(), n.copy, []shard.PurgeItem{{UUID: [16]byte{uuid}, ID: id, Revs: revs}})
	if err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) info() shard.Info {
	n.t.Helper()
	i, err := n.Info(context.Background(), n.copy)
	if err != nil {
		n.t.Fatal(err)
	}
	return i
}

// attach stores content under a key and returns what an edit needs.
func (n *node) attach(id, name string, key byte, content []byte) shard.EditAttachment {
	n.t.Helper()
	a := shard.EditAttachment{Attachment: doc.Attachment{
		Name: name, ContentType: "text/plain", Length: int64(len(content)), StoredLength: int64(len(content)), Digest: md5.Sum(content),
	}}
	if len(content) <= inlineAttachment {
		a.Data = content
		return a
	}
	a.Key = [16]byte{key}
	s, err := n.Attachments.Put(context.Background(), n.copy, id, a.Key)
	if err != nil {
		n.t.Fatal(err)
	}
	if _, err := s.Write(content); err != nil {
		n.t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		n.t.Fatal(err)
	}
	return a
}

// show is everything a copy holds of the documents: ids, leaves with their
// histories, bodies, and attachments.
func (n *node) show() string {
	n.t.Helper()
	ctx := context.Background()
	s, err := n.Changes(ctx, shard.ChangesRequest{Copy: n.copy, AllLeaves: true})
	if err != nil {
		n.t.Fatal(err)
	}
	defer s.Close()
	var out []string
	var b shard.ChangeBatch
	for more := true; more; {
		if more, err = s.Next(&b); err != nil {
			n.t.Fatal(err)
		}
		for _, c := range b.Rows {
			out = append(out, n.showDoc(strings.Clone(c.ID)))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

func (n *node) showDoc(id string) string {
	n.t.Helper()
	leaves, err := n.OpenRevs(context.Background(), shard.OpenRevsRequest{Copy: n.copy, ID: id, All: true, WithPath: true})
	if err != nil {
		n.t.Fatal(err)
	}
	text := id
	for _, l := range leaves {
		text += fmt.Sprintf(" %s deleted=%v path=%s %s", l.Rev, l.Doc.Deleted, l.Doc.Revisions.AppendJSON(nil), l.Doc.Body)
		for _, a := range l.Doc.Atts {
			content := n.content(id, a)
			text += fmt.Sprintf(" [%s %s %d %x]", a.Name, a.ContentType, a.RevPos, md5.Sum(content))
			if md5.Sum(content) != a.Digest || int64(len(content)) != a.StoredLength {
				n.t.Errorf("%s: content of %s/%s is not what was stored", n.name, id, a.Name)
			}
		}
	}
	return text
}

func (n *node) content(id string, a doc.Attachment) []byte {
	n.t.Helper()
	r, err := n.Attachments.Read(context.Background(), shard.AttachmentRange{Copy: n.copy, ID: id, Key: a.Key, Length: -1})
	if err != nil {
		n.t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		n.t.Fatal(err)
	}
	_ = r.Close()
	return b
}

// check runs the verification of the store.
func (n *node) check() {
	n.t.Helper()
	s, err := n.engine.Acquire(n.copy)
	if err != nil {
		n.t.Fatal(err)
	}
	defer n.engine.Release(s)
	if err := s.Check(context.Background(), func(problem string) { n.t.Errorf("%s: %s", n.name, problem) }); err != nil {
		n.t.Fatal(err)
	}
}

// end returns the copy, asked through some copies.
func (n *node) end(at replica.Copies) End {
	return End{Replica: ring.Replica{Copy: ring.Copy{Node: n.name}, Name: n.copy}, Copy: replica.Copy{At: at}}
}

// pushTo makes the push of a copy of this node to another one's.
func (n *node) pushTo(to *node, copies Copies) *push {
	source, target := n.end(n.copies()), to.end(through(copies))
	p := &push{
		Copier: NewCopier(source, target, shard.Limits{}, zap.NewNop()), local: n.Local, turn: 5,
		digest: func(ctx context.Context, since uint64, limit int, s seed) ([]byte, error) {
			return digest(ctx, to.Local, &message{Copy: to.copy, Since: since, Limit: limit, Seed: &s})
		},
	}
	p.batch, p.bandwidth = 500, bandwidth.New(func() int64 { return math.MaxInt64 })
	return p
}

func (n *node) copies() Copies { return methods{replica.NewLocal(replica.Held{Shards: n.Local})} }

// sync pushes until there is no more.
func (n *node) sync(to *node) outcome {
	n.t.Helper()
	for {
		o, err := n.pushTo(to, to.copies()).run(context.Background())
		if err != nil {
			n.t.Fatalf("push %s to %s: %v", n.name, to.name, err)
		}
		if !o.more {
			return o
		}
	}
}

// agree fails unless all nodes hold the same.
func agree(t tester, nodes ...*node) {
	t.Helper()
	want := nodes[0].show()
	for _, n := range nodes[1:] {
		if got := n.show(); got != want {
			t.Fatalf("%s holds\n%s\nand %s\n%s", nodes[0].name, want, n.name, got)
		}
	}
}

func content(n int, seed byte) []byte {
	return bytes.Repeat([]byte{seed, seed + 1, 'x'}, n/3+1)[:n]
}
