package replica

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"divan/shard"
	"divan/shard/index"
	"divan/shard/view"
	"divan/storage/fault"
)

func TestStreamsEndWithTheirContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, p, _ := remoteCopies(t)
		fill1000(t, local)
		putAttachment(t, local, [16]byte{1}, make([]byte, 8<<20))
		ctx, cancel := context.WithCancel(t.Context())
		list, err := AllDocs.On(ctx, Copy{At: p}, shard.DocsRequest{Copy: testCopy, IncludeDocs: true})
		if err != nil {
			t.Fatal(err)
		}
		defer list.Close()
		read, err := ReadAttachment.On(ctx, Copy{At: p}, shard.AttachmentRange{Copy: testCopy, ID: "doc", Key: [16]byte{1}, Length: -1})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = read.Close() }()
		sink, err := PutAttachment.On(ctx, Copy{At: p}, PutAttachmentRequest{testCopy, "doc", [16]byte{7}})
		if err != nil {
			t.Fatal(err)
		}
		defer sink.Abort()
		cancel()
		var b shard.RowBatch
		for err = nil; err == nil; {
			_, err = list.Next(&b)
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("list: %v", err)
		}
		if _, err := io.Copy(io.Discard, read); !errors.Is(err, context.Canceled) {
			t.Fatalf("read: %v", err)
		}
		for err = nil; err == nil; {
			_, err = sink.Write(make([]byte, 1<<20))
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("write: %v", err)
		}
	})
}

// Streams on a node that goes away fail with NodeDown.
func TestStreamsFailWithTheirNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, p, b := remoteCopies(t)
		putAttachment(t, local, [16]byte{1}, make([]byte, 8<<20))
		ctx := t.Context()
		read, err := ReadAttachment.On(ctx, Copy{At: p}, shard.AttachmentRange{Copy: testCopy, ID: "doc", Key: [16]byte{1}, Length: -1})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = read.Close() }()
		sink, err := PutAttachment.On(ctx, Copy{At: p}, PutAttachmentRequest{testCopy, "doc", [16]byte{7}})
		if err != nil {
			t.Fatal(err)
		}
		c := make(chan struct{}, 1)
		w, err := Watch.On(t.Context(), Copy{At: p}, WatchRequest{testCopy, c})
		if err != nil {
			t.Fatal(err)
		}
		b.stop()
		if _, err := io.Copy(io.Discard, read); !fault.Is(err, fault.NodeDown) {
			t.Fatalf("read: %v", err)
		}
		for err = nil; err == nil; {
			_, err = sink.Write(make([]byte, 1<<20))
		}
		if !fault.Is(err, fault.NodeDown) {
			t.Fatalf("write: %v", err)
		}
		sink.Abort()
		<-c // watchers are woken
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, p, _ := remoteCopies(t)
		one, two := make(chan struct{}, 1), make(chan struct{}, 1)
		w1, err := Watch.On(t.Context(), Copy{At: p}, WatchRequest{testCopy, one})
		if err != nil {
			t.Fatal(err)
		}
		w2, err := Watch.On(t.Context(), Copy{At: p}, WatchRequest{testCopy, two})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			update(t, local, shard.Edit{ID: fmt.Sprint("x", i), Body: []byte(`{}`)})
			<-one
			<-two
		}
		if err := w1.Close(); err != nil {
			t.Fatal(err)
		}
		if err := w1.Close(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-one:
		default:
		}
		update(t, local, shard.Edit{ID: "y", Body: []byte(`{}`)})
		<-two
		select {
		case <-one:
			t.Fatal("a closed watch was woken")
		default:
		}
		if err := w2.Close(); err != nil {
			t.Fatal(err)
		}
		w3, err := Watch.On(t.Context(), Copy{At: p}, WatchRequest{testCopy, one}) // again, after the last has gone
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Drop.On(t.Context(), Copy{At: local}, testCopy); err != nil {
			t.Fatal(err)
		}
		select {
		case <-one:
		case <-time.After(5 * time.Second):
			t.Fatal("the watch of a dropped copy is not woken")
		}
		if err := w3.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// Streams on a node that is cut off fail like calls.
func TestStreamsOnPartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, p, b := remoteCopies(t)
		fill1000(t, local)
		putAttachment(t, local, [16]byte{1}, make([]byte, 8<<20))
		ctx := t.Context()
		read, err := ReadAttachment.On(ctx, Copy{At: p}, shard.AttachmentRange{Copy: testCopy, ID: "doc", Key: [16]byte{1}, Length: -1})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = read.Close() }()
		feed, err := Changes.On(ctx, Copy{At: p}, shard.ChangesRequest{Copy: testCopy})
		if err != nil {
			t.Fatal(err)
		}
		defer feed.Close()
		sink, err := PutAttachment.On(ctx, Copy{At: p}, PutAttachmentRequest{testCopy, "doc", [16]byte{2}})
		if err != nil {
			t.Fatal(err)
		}
		defer sink.Abort()
		moved := make(chan struct{}, 1)
		watch, err := Watch.On(t.Context(), Copy{At: p}, WatchRequest{testCopy, moved})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = watch.Close() }()
		time.Sleep(time.Hour) // all of them are in use all the time
		b.cutOff()
		start := time.Now()
		errs := make(chan error, 3)
		go func() { _, err := io.Copy(io.Discard, read); errs <- err }()
		go func() { _, err := feed.Pending(0); errs <- err }()
		go func() {
			var err error
			for err == nil {
				_, err = sink.Write(make([]byte, 1<<20))
			}
			errs <- err
		}()
		for range 3 {
			if err := <-errs; !fault.Is(err, fault.NodeDown) {
				t.Fatalf("got %v", err)
			}
		}
		<-moved
		if d := time.Since(start); d > 1100*time.Millisecond {
			t.Fatalf("failed after %v", d)
		}
		// The node lets go of everything too, although it hears of nothing.
		time.Sleep(10 * time.Second)
		if _, err := Drop.On(ctx, Copy{At: local}, testCopy); err != nil {
			t.Fatal(err)
		}
	})
}

// TestViews: rows of views, groups of them and what is told about an index are the
// same here and over the network.
func TestViews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, p, _ := remoteCopies(t)
		fill1000(t, local)
		def, err := view.Parse([]byte(`{"views":{"v":{"map":"function (doc) { emit(doc.i % 10, doc._id); }","reduce":"_count"}}}`), false)
		if err != nil {
			t.Fatal(err)
		}
		read := func(at Copies, q view.Request) (head view.Head, rows []view.Row) {
			q.Copy, q.Signature, q.Definition, q.View = testCopy, def.Signature, def.Text, "v"
			list, err := ViewQuery.On(t.Context(), Copy{At: at}, q)
			if err != nil {
				t.Fatal(err)
			}
			defer list.Close()
			var b view.Batch
			for more := true; more; {
				if more, err = list.Next(&b); err != nil {
					t.Fatal(err)
				}
				for _, r := range b.Rows {
					r.Sort = append([]byte(nil), r.Sort...) // none is nil, here or over the network
					r.Key, r.Value, r.ID = bytes.Clone(r.Key), bytes.Clone(r.Value), strings.Clone(r.ID)
					if r.Doc != nil {
						r.Doc = &shard.Doc{ID: strings.Clone(r.Doc.ID), Rev: r.Doc.Rev, Body: bytes.Clone(r.Doc.Body)}
					}
					rows = append(rows, r)
				}
			}
			return list.Head, rows
		}
		three, err := def.Views[0].AppendSortKey(nil, []byte("3"))
		if err != nil {
			t.Fatal(err)
		}
		for i, tc := range []struct {
			q    view.Request
			rows int
		}{
			{view.Request{}, 714},
			{view.Request{Desc: true, IncludeDocs: true, Conflicts: true}, 714},
			{view.Request{Ranges: []view.KeyRange{{Lo: view.Bound{Key: three}, Hi: view.Bound{Key: three}}}}, 64},
			{view.Request{Ranges: []view.KeyRange{{Lo: view.Bound{Key: three, ID: "d100", HasID: true, Exclusive: true}}}}, 439},
			{view.Request{Reduce: true, GroupLevel: view.GroupExact}, 11},
			{view.Request{Reduce: true}, 1},
			{view.Request{Update: view.UpdateNever, Limit: 1}, 714},
		} {
			head, rows := read(local, tc.q)
			if len(rows) != tc.rows || head.Total != 714 {
				t.Errorf("%d: %d rows, %+v", i, len(rows), head)
			}
			far, away := read(p, tc.q)
			same(t, fmt.Sprint(i, ": head"), far, head)
			same(t, fmt.Sprint(i, ": rows"), away, rows)
		}
		of := IndexRequest{testCopy, def.Text}
		as[view.Info](t, "ViewInfo")(ViewInfo.On(t.Context(), Copy{At: p}, of))(ViewInfo.On(t.Context(), Copy{At: local}, of))
		if _, err := ViewCompact.On(t.Context(), Copy{At: p}, of); err != nil {
			t.Error(err)
		}
		if _, err := IndexCleanup.On(t.Context(), Copy{At: p}, CleanupRequest{Copy: testCopy, Type: index.View}); err != nil {
			t.Error(err)
		}
		info, err := ViewInfo.On(t.Context(), Copy{At: local}, of)
		for fault.Is(err, fault.Unavailable) { // the other end of a stream that was closed here still has it
			<-time.After(time.Millisecond)
			info, err = ViewInfo.On(t.Context(), Copy{At: local}, of)
		}
		if err != nil || info.Seq != 0 {
			t.Errorf("after a clean-up: %+v, %v", info, err)
		}
	})
}
