package migrate

import (
	"io"
	"sync"
	"sync/atomic"

	"github.com/dustin/go-humanize"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"divan/cmd/divan/progress"
	"divan/shard"
)

// display shows how far the migration is: on a terminal there is a bar for each database that
// is under way and one for all, below the lines of those that are done.
type display struct {
	*progress.Display
	all *mpb.Bar // nil: no terminal
}

func newDisplay(out io.Writer, terminal bool, total uint64) *display {
	d := &display{Display: progress.New(out, terminal)}
	d.all = d.Bar("all documents", int64(total), mpb.BarPriority(1<<20), // below the others
		mpb.AppendDecorators(decor.Percentage(decor.WC{W: 5}), counters()))
	return d
}

// Close ends the bars.
func (d *display) Close() {
	if d.all != nil {
		d.all.Abort(false)
	}
	d.Display.Close()
}

func counters() decor.Decorator {
	return decor.Any(func(s decor.Statistics) string {
		return "  " + humanize.Comma(s.Current) + " of " + humanize.Comma(s.Total)
	})
}

// meter is how far one database is. It is safe for concurrent use.
type meter struct {
	bar, all *mpb.Bar // nil: there is no terminal
	total    int64    // documents when it began
	mu       sync.Mutex
	done     int64          // of the total
	read     int64          // documents of which the feed has told
	open     int64          // of those: what the target lacks of them is not written yet, as far as is known
	missing  map[string]int // revisions that are still to come, of some of those documents
	written  atomic.Int64
	bytes    atomic.Int64 // of bodies and attachments that were written
}

// database begins a database with so many documents.
func (d *display) database(name string, total uint64) *meter {
	m := &meter{total: int64(total), missing: make(map[string]int)}
	m.all = d.all
	m.bar = d.Bar(name, 0, // not the total, which would end the bar when it is reached
		mpb.AppendDecorators(decor.Percentage(decor.WC{W: 5}), counters(), decor.Any(func(decor.Statistics) string {
			return "  " + humanize.Bytes(uint64(m.bytes.Load()))
		})))
	if m.bar != nil {
		m.bar.SetTotal(m.total, false)
	}
	return m
}

// reach says how many documents are done, be it by an earlier run. There may be
// more of them than there were at the beginning.
func (m *meter) reach(done int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	done = min(done, m.total)
	if done <= m.done {
		return
	}
	if m.bar != nil {
		m.bar.IncrInt64(done - m.done)
		m.all.IncrInt64(done - m.done)
	}
	m.done = done
}

// told says that the feed has told of so many documents, and that kept of the last
// ones are looked at. The bar counts what is done with, not what is known of: the
// last documents may have large attachments.
func (m *meter) told(read int64, kept int) {
	m.mu.Lock()
	m.read = read
	m.open += int64(kept)
	done := m.read - m.open
	m.mu.Unlock()
	m.reach(done)
}

// begin says that a feed begins, when so many documents are done.
func (m *meter) begin(done int64) {
	m.mu.Lock()
	m.read, m.open, m.missing = done, 0, make(map[string]int)
	m.mu.Unlock()
	m.reach(done)
}

// lacks says what the target lacks of so many documents.
func (m *meter) lacks(asked int, missing []shard.IDMissing) {
	m.mu.Lock()
	for i := range missing {
		m.missing[missing[i].ID] = len(missing[i].Missing)
	}
	m.open = max(0, m.open-int64(asked-len(missing)))
	done := m.read - m.open
	m.mu.Unlock()
	m.reach(done)
}

// settled says that a revision was written, or refused.
func (m *meter) settled(id string) {
	m.mu.Lock()
	left, known := m.missing[id]
	if known && left > 1 {
		m.missing[id] = left - 1
	} else if known {
		delete(m.missing, id)
		m.open = max(0, m.open-1)
	}
	done := m.read - m.open
	m.mu.Unlock()
	m.reach(done)
}

// wrote says that the target has taken a document.
func (m *meter) wrote(bytes int64) {
	m.written.Add(1)
	m.bytes.Add(bytes)
}

// end takes the bar away, and counts what was not seen when all is done.
func (m *meter) end(complete bool) {
	if complete {
		m.reach(m.total)
	}
	if m.bar != nil {
		m.bar.Abort(true)
		m.bar.Wait()
	}
}
