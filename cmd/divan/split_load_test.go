package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// splitMegabytes is how large the database of TestSplitUnderLoad is; DIVAN_SPLIT_MB says another number.
const splitMegabytes = 8

// splitClients write and read meanwhile.
const splitClients = 64

// TestSplitUnderLoad: a database is split while clients write and read: none is refused, and all
// that was there and came meanwhile is there. It logs what its clients felt, how fast the copying
// was and what it took of the disk.
func TestSplitUnderLoad(t *testing.T) {
	t.Parallel()
	megabytes := splitMegabytes
	if text := os.Getenv("DIVAN_SPLIT_MB"); text != "" {
		var err error
		if megabytes, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	m := newMember(t, 1)
	m.want(t, "POST", "/_cluster_setup", `{"action":"enable_single_node","username":"adm","password":"pass"}`, 201)
	m.want(t, "PUT", "/large?q=1", "", 201)
	l := &load{m: m, texts: rand.New(rand.NewPCG(1, 2))}
	l.fill(t, megabytes*1000)
	before := diskUsage(t, m.dir)
	undisturbed := l.during(t, func() {
		if megabytes > splitMegabytes {
			<-time.After(30 * time.Second)
		}
	})
	t.Logf("%d bytes on disk; undisturbed: %s", before, undisturbed)
	var most int64
	var took time.Duration
	split := l.during(t, func() {
		begin := time.Now()
		m.want(t, "POST", "/_reshard/jobs", `{"type":"split","db":"large"}`, 201)
		wait(t, time.Hour, "the job ends", func() bool {
			var is struct {
				Completed, Failed, Total int
			}
			status, err := m.call("GET", "/_reshard", nil, &is)
			most = max(most, diskUsage(t, m.dir))
			return err == nil && status == 200 && is.Completed+is.Failed == is.Total
		})
		took = time.Since(begin)
	})
	var jobs struct {
		Jobs []struct {
			State   string `json:"job_state"`
			History []struct{ Timestamp, Type, Detail string }
		}
	}
	if status, err := m.call("GET", "/_reshard/jobs", nil, &jobs); err != nil || status != 200 || len(jobs.Jobs) != 1 || jobs.Jobs[0].State != "completed" {
		t.Errorf("%d, %v, %+v", status, err, jobs)
	}
	for _, h := range jobs.Jobs[0].History {
		t.Log(h.Timestamp, h.Type, h.Detail)
	}
	t.Logf("split in %v, %.0f MB/s; at most %.2f of what there was more on disk, %d at the end; meanwhile: %s",
		took.Round(time.Millisecond), float64(megabytes)/took.Seconds(), float64(most)/float64(before)-1, diskUsage(t, m.dir), split)
	if n := l.failed.Load(); n > 0 {
		t.Errorf("%d requests were refused", n)
	}
	var info struct {
		Count int64           `json:"doc_count"`
		Shard struct{ Q int } `json:"cluster"`
	}
	if status, err := m.call("GET", "/large", nil, &info); err != nil || status != 200 || info.Count != l.written.Load() || info.Shard.Q != 2 {
		t.Errorf("%d, %v, %+v; %d were written", status, err, info, l.written.Load())
	}
	if rows := l.rows(t); rows != l.written.Load() {
		t.Errorf("%d rows; %d were written", rows, l.written.Load())
	}
}

// rows counts the documents of a listing, page by page.
func (l *load) rows(t *testing.T) (n int64) {
	t.Helper()
	const page = 50_000
	from := ""
	for {
		var is struct{ Rows []struct{ ID string } }
		status, err := l.m.call("GET", fmt.Sprintf("/large/_all_docs?limit=%d&startkey=%s", page+1, url.QueryEscape(strconv.Quote(from))), nil, &is)
		if err != nil || status != 200 {
			t.Fatal(status, err)
		}
		if len(is.Rows) <= page {
			return n + int64(len(is.Rows))
		}
		n += page
		from = is.Rows[page].ID
	}
}

// load is documents and the clients that write and read them.
type load struct {
	m       *member
	texts   *rand.Rand   // of fill
	base    int          // documents of fill, which are called by their numbers
	written atomic.Int64 // all documents
	failed  atomic.Int64 // requests
}

// words is text that is compressed to about half.
func words(rng *rand.Rand, n int) string {
	var b strings.Builder
	for b.Len() < n {
		fmt.Fprintf(&b, "%x ", rng.Uint64())
	}
	return b.String()[:n]
}

// fill writes so many documents of 1 KB.
func (l *load) fill(t *testing.T, count int) {
	t.Helper()
	const each = 1000
	var work sync.WaitGroup
	batches := make(chan []byte)
	for range 4 {
		work.Go(func() {
			for b := range batches {
				if status, _, err := l.m.do("POST", "/large/_bulk_docs", "application/json", b); err != nil || status != 201 {
					t.Errorf("%d, %v", status, err)
				}
			}
		})
	}
	for first := 0; first < count; first += each {
		var b bytes.Buffer
		b.WriteString(`{"docs":[`)
		for i := range each {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `{"_id":"%08d","text":%q}`, first+i, words(l.texts, 950))
		}
		b.WriteString(`]}`)
		batches <- b.Bytes()
	}
	close(batches)
	work.Wait()
	l.base = count
	l.written.Store(int64(count))
}

// felt is what clients felt of the server.
type felt struct{ reads, writes *hdrhistogram.Histogram }

func (f *felt) String() string {
	var b strings.Builder
	for _, of := range []struct {
		name string
		h    *hdrhistogram.Histogram
	}{{"reads", f.reads}, {"writes", f.writes}} {
		ms := func(q float64) float64 { return float64(of.h.ValueAtQuantile(q)) / 1000 }
		fmt.Fprintf(&b, "%d %s: p50 %.1f p90 %.1f p99 %.1f most %.1f ms; ", of.h.TotalCount(), of.name, ms(50), ms(90), ms(99), float64(of.h.Max())/1000)
	}
	return b.String()
}

// during has clients write and read while something is done.
func (l *load) during(t *testing.T, do func()) *felt {
	t.Helper()
	all := &felt{hdrhistogram.New(1, 600_000_000, 3), hdrhistogram.New(1, 600_000_000, 3)}
	base := l.base
	var ends []func()
	for i := range splitClients {
		c, rng := newClient(t, l.m.address), rand.New(rand.NewPCG(uint64(i), uint64(l.written.Load())))
		f := felt{hdrhistogram.New(1, 600_000_000, 3), hdrhistogram.New(1, 600_000_000, 3)}
		end := meanwhile(t, func(int) {
			method, status, into := "GET", 200, f.reads
			path, body := fmt.Sprintf("/large/%08d", rng.IntN(base)), []byte(nil)
			if rng.IntN(2) == 0 {
				method, status, into = "PUT", 201, f.writes
				path, body = fmt.Sprintf("/large/new-%d-%016x", i, rng.Uint64()), fmt.Appendf(nil, `{"text":%q}`, words(rng, 950))
			}
			begin := time.Now()
			got, _, err := c.do(method, path, "application/json", body)
			if err != nil || got != status {
				l.failed.Add(1)
				return
			}
			_ = into.RecordValue(time.Since(begin).Microseconds()) // of less than ten minutes
			if method == "PUT" {
				l.written.Add(1)
			}
		})
		ends = append(ends, func() {
			end()
			all.reads.Merge(f.reads)
			all.writes.Merge(f.writes)
		})
	}
	do()
	for _, end := range ends {
		end()
	}
	return all
}

// diskUsage is what files below a directory take, those that go meanwhile left out.
func diskUsage(t *testing.T, dir string) (n int64) {
	t.Helper()
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if info, err := d.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil
	})
	return n
}
