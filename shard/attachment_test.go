package shard

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"divan/storage/doc"
	"divan/storage/fault"
)

// putBig stores content for a document and returns what an edit says about it.
func (n *node) putBig(id string, key byte, data []byte) EditAttachment {
	n.t.Helper()
	s, err := n.Attachments.Put(context.Background(), copyName, id, [16]byte{key})
	if err == nil {
		_, err = s.Write(data)
	}
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		n.t.Fatal(err)
	}
	size := int64(len(data))
	return EditAttachment{Attachment: doc.Attachment{Name: "big", Key: [16]byte{key}, Length: size, StoredLength: size}}
}

// TestDropSparesWhatIsInUse: the coordinator drops the content of an edit that
// another copy, or another shard of the request, has refused. This copy has
// done the edit.
func TestDropSparesWhatIsInUse(t *testing.T) {
	n := start(t, Options{})
	data := bytes.Repeat([]byte("content "), 10000)
	drop := func() {
		t.Helper()
		if err := n.Attachments.Drop(context.Background(), copyName, "d", [][16]byte{{1}, {2}}); err != nil {
			t.Fatal(err)
		}
		if got := n.read("d", [16]byte{1}); got != string(data) {
			t.Errorf("%d bytes are left", len(got))
		}
		r, err := n.Attachments.Read(context.Background(), AttachmentRange{Copy: copyName, ID: "d", Key: [16]byte{2}})
		if err == nil {
			_ = r.Close() // read only
		}
		if !fault.Is(err, fault.NotFound) {
			t.Errorf("content that no edit took: %v", err)
		}
	}
	n.must(n.edits(true, Edit{ID: "d", Body: []byte("{}"), Atts: []EditAttachment{n.putBig("d", 1, data)}})[0])
	n.putBig("d", 2, data)
	drop()
	// It comes once more, for an edit that then finds its revision there.
	n.putBig("d", 1, data)
	n.putBig("d", 2, data)
	drop()
	n.check()
	fs := n.fs
	n.stop()
	n = open(t, fs, Options{})
	t.Cleanup(n.stop)
	if got := n.read("d", [16]byte{1}); got != string(data) {
		t.Errorf("%d bytes are left after a restart", len(got))
	}
	n.check()
}

// pieces counts what is written to it.
type pieces struct {
	bytes.Buffer
	n int
}

func (p *pieces) Write(b []byte) (int, error) {
	p.n++
	return p.Buffer.Write(b)
}

// ReadFrom implements io.ReaderFrom: a copy must not come here.
func (p *pieces) ReadFrom(io.Reader) (int64, error) { return 0, errors.ErrUnsupported }

// TestReadInChunks: what is read goes on in the chunks that are stored, without a
// way by a smaller buffer.
func TestReadInChunks(t *testing.T) {
	n := start(t, Options{})
	data := bytes.Repeat([]byte("content "), 100_000)
	n.must(n.edits(true, Edit{ID: "d", Body: []byte("{}"), Atts: []EditAttachment{n.putBig("d", 1, data)}})[0])
	for _, c := range []struct {
		offset, length int64
		chunks         int
	}{{0, -1, 4}, {262_000, 600, 2}, {0, 0, 0}} {
		r, err := n.Attachments.Read(context.Background(), AttachmentRange{Copy: copyName, ID: "d", Key: [16]byte{1}, Offset: c.offset, Length: c.length})
		if err != nil {
			t.Fatal(err)
		}
		var got pieces
		_, err = io.Copy(&got, r)
		want := data[c.offset:]
		if c.length >= 0 {
			want = want[:c.length]
		}
		if err := errors.Join(err, r.Close()); err != nil || !bytes.Equal(got.Bytes(), want) || got.n != c.chunks {
			t.Errorf("%d bytes from %d: %d of them in %d pieces, %v", c.length, c.offset, got.Len(), got.n, err)
		}
	}
}

// together are tasks that come to the writer at once.
type together []task

func (t together) cost() (edits, bytes int) { return len(t), 0 }

func (t together) stage(g *groupCommit) error {
	for _, one := range t {
		if err := one.stage(g); err != nil {
			return err
		}
	}
	return nil
}

// TestDropMeetsItsEdit: an edit and the order to drop its content are in one
// group, in either order.
func TestDropMeetsItsEdit(t *testing.T) {
	for _, first := range []string{"edit", "drop"} {
		t.Run(first, func(t *testing.T) {
			n := start(t, Options{})
			data := bytes.Repeat([]byte("content "), 10000)
			req := DecideRequest{Copy: copyName, NewEdits: true, Edits: []Edit{{
				ID: "d", Body: []byte("{}"), Atts: []EditAttachment{n.putBig("d", 1, data)},
			}}}
			edit := newDecide(context.Background(), n.states, req)
			edit.open = n.openCopy()
			defer edit.open.Close()
			if err := edit.prepare(context.Background()); err != nil {
				t.Fatal(err)
			}
			drop := &dropTask{id: "d", keys: [][16]byte{{1}}}
			both := together{edit, drop}
			if first == "drop" {
				both = together{drop, edit}
			}
			if err := n.states.submit(context.Background(), edit.open.store, both, false); err != nil || edit.results[0].Err != nil {
				t.Fatal(err, edit.results)
			}
			if got := n.read("d", [16]byte{1}); got != string(data) {
				t.Errorf("%d bytes are left", len(got))
			}
			n.check()
		})
	}
}
