package replica

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"divan/cluster/wire"
	"divan/shard"
	"divan/storage/doc"
)

// loopback returns what does operations over a real TCP connection.
func loopback(b *testing.B, o wire.Operations) Remote {
	b.Helper()
	server := &testNode{name: "b@b", address: "127.0.0.1:0", network: wire.RealNetwork(), operations: o}
	server.run(b, func(string) (string, bool) { return "", false })
	client := &testNode{name: "a@a", address: "127.0.0.1:0", network: wire.RealNetwork()}
	client.run(b, func(string) (string, bool) { return server.port.Addr().String(), true })
	return client.remote(b, "b@b")
}

// fixed answers without reading anything, so that only the way is measured.
func fixed(b *testing.B) wire.Operations {
	b.Helper()
	l := newLocal(b)
	o := l.Operations()
	rev := doc.Rev{Pos: 3, ID: "0123456789abcdef"}
	found := &shard.Doc{ID: "document-000001", Rev: rev, Body: body(1000), Revisions: doc.Path{Start: 3, IDs: []string{rev.ID, rev.ID, rev.ID}}}
	open, decide := *Open, *Decide
	open.Run = func(Admitted, context.Context, shard.OpenRequest) (*shard.Doc, error) { return found, nil }
	decide.Run = func(_ Admitted, _ context.Context, req shard.DecideRequest) ([]shard.EditResult, error) {
		out := make([]shard.EditResult, len(req.Edits))
		for i, e := range req.Edits {
			out[i].Rev = e.Path.Rev()
		}
		return out, nil
	}
	open.serve(&o, l)
	decide.serve(&o, l)
	return o
}

func body(n int) []byte { return fmt.Appendf(nil, `{"text":"%0*d"}`, n, 7) }

func updateOf(edits int) shard.DecideRequest {
	req := shard.DecideRequest{Copy: testCopy, DB: "db", NoPath: true, User: shard.User{Name: "admin", Roles: []string{shard.AdminRole}}}
	for i := range edits {
		req.Edits = append(req.Edits, shard.Edit{
			ID: fmt.Sprintf("document-%06d", i), Body: body(1000),
			Path: doc.Path{Start: 2, IDs: []string{"0123456789abcdef", "fedcba9876543210"}},
		})
	}
	return req
}

func parallel(b *testing.B, goroutines int, f func() error) {
	b.Helper()
	b.ReportAllocs()
	var n atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	before := cpu(b)
	for range goroutines {
		wg.Go(func() {
			for n.Add(1) <= int64(b.N) {
				if err := f(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric((cpu(b)-before).Seconds()*1e6/float64(b.N), "cpu-µs/op")
}

// cpu returns the processor time the process has used: both sides are in it,
// and other processes on the machine are not.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkOpen(b *testing.B) {
	for _, goroutines := range []int{1, 16, 64} {
		b.Run(fmt.Sprint(goroutines), func(b *testing.B) {
			p := loopback(b, fixed(b))
			req := shard.OpenRequest{Copy: testCopy, ID: "document-000001", Revs: true}
			parallel(b, goroutines, func() error {
				_, err := Open.On(context.Background(), Copy{At: p}, req)
				return err
			})
		})
	}
}

func BenchmarkUpdate(b *testing.B) {
	for _, goroutines := range []int{1, 64} {
		b.Run(fmt.Sprint(goroutines), func(b *testing.B) {
			p := loopback(b, fixed(b))
			req := updateOf(1)
			parallel(b, goroutines, func() error {
				ctx, cancel := context.WithTimeout(context.Background(), 1<<40)
				defer cancel()
				_, err := Decide.On(ctx, Copy{At: p}, req)
				return err
			})
		})
	}
}

// BenchmarkMessages measures turning requests and answers into messages, bytes and
// back, without a connection.
func BenchmarkMessages(b *testing.B) {
	rev := doc.Rev{Pos: 3, ID: "0123456789abcdef"}
	found := &shard.Doc{ID: "document-000001", Rev: rev, Body: body(1000), Revisions: doc.Path{Start: 3, IDs: []string{rev.ID, rev.ID, rev.ID}}}
	feed := shard.ChangeBatch{Rows: make([]shard.Change, 100)}
	for i := range feed.Rows {
		feed.Rows[i] = shard.Change{Seq: uint64(i), ID: found.ID, Leaves: []doc.Rev{rev}, Doc: found}
	}
	b.Run("decide", carry(Decide, updateOf(1), []shard.EditResult{{Rev: rev}}))
	b.Run("open", carry(Open, shard.OpenRequest{Copy: testCopy, ID: found.ID, Revs: true}, found))
	b.Run("changes", carry(Changes, shard.ChangesRequest{Copy: testCopy}, feed))
}

// carrier is a transport whose messages can be measured: of a request, and of an
// answer or a batch of one.
type carrier[Q, A any] interface {
	carry(q *Q, a *A, buffer []byte) error
}

func carry[Q, A, B any](o *Operation[Q, A], q Q, a B) func(b *testing.B) {
	return func(b *testing.B) {
		buffer := make([]byte, 1<<20)
		b.ReportAllocs()
		for b.Loop() {
			if err := o.Over.(carrier[Q, B]).carry(&q, &a, buffer); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func (s *unaryTransport[Q, A, MQ, MA, PQ, PA]) carry(q *Q, a *A, buffer []byte) error {
	mq, ma := PQ(new(MQ)), PA(new(MA))
	if err := send(s.request.encode(q), mq, buffer); err != nil {
		return err
	}
	s.request.decode(mq)
	if err := send(s.answer.encode(a), ma, buffer); err != nil {
		return err
	}
	s.answer.decode(ma)
	return nil
}

func (s *listingTransport[Q, H, B, MQ, MH, MB, PQ, PH, PB]) carry(q *Q, a *B, buffer []byte) error {
	mq, out, in := PQ(new(MQ)), PB(new(MB)), PB(new(MB))
	if err := send(s.request.encode(q), mq, buffer); err != nil {
		return err
	}
	s.request.decode(mq)
	s.batch.encode(a, out)
	if err := send(out, in, buffer); err != nil {
		return err
	}
	var got B
	s.batch.decode(in, &got)
	in.ResetVT() // its documents are used again
	return nil
}

// send writes a message into the buffer and reads it from there.
func send(m, to wire.Message, buffer []byte) error {
	buffer = buffer[:m.SizeVT()]
	if _, err := m.MarshalToSizedBufferVT(buffer); err != nil {
		return err
	}
	return to.UnmarshalVTUnsafe(buffer)
}

func BenchmarkBulk(b *testing.B) {
	p := loopback(b, fixed(b))
	req := updateOf(500)
	b.SetBytes(500 << 10)
	parallel(b, 4, func() error {
		_, err := Decide.On(context.Background(), Copy{At: p}, req)
		return err
	})
}

func BenchmarkAllDocs(b *testing.B) {
	local := newLocal(b)
	p := loopback(b, local.Operations())
	req := updateOf(1000)
	for i := range 20 {
		for j := range req.Edits {
			req.Edits[j].ID = fmt.Sprintf("document-%03d-%06d", i, j)
		}
		if _, err := Decide.On(context.Background(), Copy{At: local}, req); err != nil {
			b.Fatal(err)
		}
	}
	for _, docs := range []bool{false, true} {
		b.Run(fmt.Sprint("docs=", docs), func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				s, err := AllDocs.On(context.Background(), Copy{At: p}, shard.DocsRequest{Copy: testCopy, IncludeDocs: docs})
				if err != nil {
					b.Fatal(err)
				}
				var batch shard.RowBatch
				rows := 0
				for more := true; more; {
					if more, err = s.Next(&batch); err != nil {
						b.Fatal(err)
					}
					rows += len(batch.Rows)
				}
				s.Close()
				if rows != 20000 {
					b.Fatal(rows)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/20000, "ns/row")
		})
	}
}

func BenchmarkReadAttachment(b *testing.B) {
	local := newLocal(b)
	p := loopback(b, local.Operations())
	const size = 16 << 20
	s, err := PutAttachment.On(context.Background(), Copy{At: local}, PutAttachmentRequest{testCopy, "doc", [16]byte{1}})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := s.Write(make([]byte, size)); err != nil {
		b.Fatal(err)
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(size)
	b.ResetTimer()
	for range b.N {
		r, err := ReadAttachment.On(context.Background(), Copy{At: p}, shard.AttachmentRange{Copy: testCopy, ID: "doc", Key: [16]byte{1}, Length: -1})
		if err != nil {
			b.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, r); n != size || err != nil {
			b.Fatal(n, err)
		}
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
