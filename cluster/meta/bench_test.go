package meta

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"divan/cluster/meta/dbsetting"
)

// BenchmarkCreate makes databases on a real directory, 64 clients at once.
func BenchmarkCreate(b *testing.B) {
	for _, clients := range []int{1, 64} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			m, _ := start(b, Options{Dir: b.TempDir()})
			var n atomic.Int64
			b.SetParallelism(max(clients/runtime.GOMAXPROCS(0), 1))
			if clients == 1 {
				for b.Loop() {
					create(b, m, fmt.Sprintf("db%d", n.Add(1)))
				}
				return
			}
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := m.CreateDatabase(b.Context(), Create{Name: fmt.Sprintf("db%d", n.Add(1)), Q: 2, N: 1}); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}

func manyDatabases(n int) Databases {
	var d Databases
	for i := range n {
		db := &Database{
			Name: fmt.Sprintf("userdb-%032x", i), Created: 1763600000, N: 1, Settings: dbsetting.Standard(),
			Security: []byte(`{"members":{"roles":["_admin"]},"admins":{"roles":["_admin"]}}`),
		}
		db.Shards = shardsOn(2, "divan@a.example.com", "divan@b.example.com", "divan@c.example.com")
		c, err := decodeCommand(encode(createCommand(db)))
		if err != nil {
			panic(err)
		}
		d = d.with(c.database)
	}
	return d
}

// A database costs less than 2 KB of memory.
func TestMemoryPerDatabase(t *testing.T) {
	if testing.Short() {
		t.Skip("makes 50,000 databases")
	}
	const n = 50_000
	heap := func() uint64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	before := heap()
	d := manyDatabases(n)
	per := (heap() - before) / n
	t.Logf("%d bytes per database with 2 ranges of 3 copies", per)
	if per > 2048 {
		t.Errorf("%d bytes per database", per)
	}
	runtime.KeepAlive(d)
}

func BenchmarkDatabase(b *testing.B) {
	d := manyDatabases(100_000)
	names := make([]string, 1024)
	for i := range names {
		names[i] = fmt.Sprintf("userdb-%032x", i*97)
	}
	i := 0
	for b.Loop() {
		i++
		if _, ok := d.Get(names[i&1023]); !ok {
			b.Fatal("not found")
		}
	}
}

func BenchmarkListing(b *testing.B) {
	d := manyDatabases(100_000)
	for b.Loop() {
		lo, n := d.Index("userdb-0000000000000000000000000000c350"), 0
		for range d.Slice(lo, lo+20) {
			n++
		}
		if n != 20 {
			b.Fatal(n)
		}
	}
}
