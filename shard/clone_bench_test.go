package shard

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"syscall"
	"testing"
	"time"

	"divan/storage/doc"
)

// BenchmarkCloneRange reports the bytes of bodies and attachments per second that are
// brought to a copy of half the range, and the processor time for a million of them,
// compactions included.
func BenchmarkCloneRange(b *testing.B) {
	for _, c := range []struct {
		name             string
		docs, body, atts int
	}{
		{"1KB", 200000, 1000, 0}, {"10KB", 20000, 10000, 0}, {"100KB attachments", 3000, 100, 100 << 10}, {"4MB attachments", 100, 100, 4 << 20},
	} {
		b.Run(c.name, func(b *testing.B) {
			n := startDisk(b)
			if c.atts == 0 {
				fill(b, n, c.docs, body(c.body), nil)
			} else {
				fillAttachments(b, n, c.docs, c.atts)
			}
			o := halves[0]
			b.ResetTimer()
			var bytes int64
			var took, cpu time.Duration
			for range b.N {
				b.StopTimer()
				if err := n.Copies.Create(context.Background(), o.Target, CreateOptions{}); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				begun, used := time.Now(), processorTime()
				if _, err := n.Clones.Range(context.Background(), o); err != nil {
					b.Fatal(err)
				}
				took += time.Since(begun)
				cpu += processorTime() - used
				info, err := n.Info(context.Background(), o.Target)
				if err != nil {
					b.Fatal(err)
				}
				bytes += info.External
				b.StopTimer()
				if err := n.Copies.Drop(context.Background(), o.Target); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(bytes)/1e6/took.Seconds(), "MB/s")
			b.ReportMetric(cpu.Seconds()*1e3/(float64(bytes)/1e6), "cpu-ms/MB")
		})
	}
}

// processorTime is what the process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // never fails
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// fillAttachments makes documents with one attachment of so many bytes.
func fillAttachments(b *testing.B, n *node, docs, size int) {
	b.Helper()
	data := bytes.Repeat([]byte("0123456789abcdef"), size/16)
	for i := range docs {
		binary.BigEndian.PutUint64(data, uint64(i))
		key := newKey()
		w, err := n.Attachments.Put(context.Background(), copyName, benchID(i), key)
		if err == nil {
			if _, err = w.Write(data); err == nil {
				err = w.Close()
			}
		}
		if err != nil {
			b.Fatal(err)
		}
		n.must(n.edits(true, Edit{ID: benchID(i), Body: fmt.Appendf(nil, `{"i":%d}`, i), Atts: []EditAttachment{{
			Attachment: doc.Attachment{Name: "a", Key: key, Length: int64(size), StoredLength: int64(size)},
		}}})[0])
	}
}
