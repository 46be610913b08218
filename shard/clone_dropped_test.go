package shard

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/storage/fault"
)

// TestFillOfDropped: a fill ends soon after its source or its target was dropped.
func TestFillOfDropped(t *testing.T) {
	o := halves[0]
	for _, which := range []string{o.Source, o.Target} {
		n := open(t, newFS(), Options{})
		n.create(CreateOptions{})
		n.createHalves(CreateOptions{})
		for i := range 40 {
			e := Edit{ID: fmt.Sprint("doc", i), Body: body(10), Atts: []EditAttachment{{Data: bytes.Repeat([]byte{byte(i)}, 600<<10)}}}
			a := &e.Atts[0]
			a.Name, a.Length, a.StoredLength, a.Digest = "a", 600<<10, 600<<10, digest(string(a.Data))
			n.must(n.edits(true, e)[0])
		}
		dropped, after := false, 0
		o.Pace = func(ctx context.Context, bytes int) error {
			if dropped {
				after += bytes
				return nil
			}
			dropped = true
			return n.Copies.Drop(ctx, which)
		}
		if _, err := n.Clones.Range(context.Background(), o); !fault.Is(err, fault.NoCopy) {
			t.Errorf("%s was dropped: %v", which, err)
		}
		if after > 4<<20 {
			t.Errorf("%s was dropped: %d bytes were copied after that", which, after)
		}
		n.stop()
	}
}

// limitedFS says how much space there is on the disk.
type limitedFS struct {
	vfs.FS
	free atomic.Uint64
}

func (l *limitedFS) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: l.free.Load(), TotalBytes: 1 << 40}, nil
}

// TestFilesOfFillOnAFullDisk: what an interrupted fill left goes when the store is opened on a full
// disk too, since it may be what fills it.
func TestFilesOfFillOnAFullDisk(t *testing.T) {
	fs := &limitedFS{FS: newFS()}
	fs.free.Store(1 << 39)
	n := open(t, fs, Options{})
	n.create(CreateOptions{})
	n.createHalves(CreateOptions{})
	n.edit("d", "", "{}")
	n.edit("e", "", "{}")
	o := halves[0]
	if _, err := n.Clones.Range(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	n.stop()
	f, err := fs.Create("/data/"+o.Target+"/aabb.upload", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	fs.free.Store(1 << 20)
	n = open(t, fs, Options{})
	defer n.stop()
	if _, err = n.Clones.Range(context.Background(), o); err != nil {
		t.Error(err)
	}
	files, err := fs.List("/data/" + o.Target)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, ".upload") {
			t.Errorf("%s is still there", name)
		}
	}
}
