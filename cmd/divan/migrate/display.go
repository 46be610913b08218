package migrate

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/dustin/go-humanize"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// display shows how far the migration is. On a terminal there is a bar for each
// database that is under way and one for all, below the lines of those that are
// done; anywhere else there are only the lines.
//
// Bars have goroutines of their own; close waits for them.
type display struct {
	bars *mpb.Progress // nil: lines only
	all  *mpb.Bar
	mu   struct {
		sync.Mutex
		out io.Writer // guarded as lines come from several databases
	}
}

// nameWidth is what the names of databases get of a line.
const nameWidth = 28

func newDisplay(out io.Writer, terminal bool, total uint64) *display {
	d := &display{}
	d.mu.out = out
	if terminal {
		d.bars = mpb.New(mpb.WithOutput(out), mpb.WithWidth(40), mpb.WithAutoRefresh())
		d.all = d.bars.AddBar(int64(total), mpb.BarPriority(1<<20), // below the others
			mpb.PrependDecorators(decor.Name(fitted("all documents"))),
			mpb.AppendDecorators(decor.Percentage(decor.WC{W: 5}), counters()))
	}
	return d
}

func counters() decor.Decorator {
	return decor.Any(func(s decor.Statistics) string {
		return "  " + humanize.Comma(s.Current) + " of " + humanize.Comma(s.Total)
	})
}

// line prints a line that stays.
func (d *display) line(format string, args ...any) {
	text := fmt.Sprintf(format, args...) + "\n"
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.bars != nil {
		if _, err := d.bars.Write([]byte(text)); err == nil {
			return // above the bars
		}
	}
	_, _ = io.WriteString(d.mu.out, text) // who does not listen misses nothing of the report
}

// close ends the bars.
func (d *display) close() {
	if d.bars == nil {
		return
	}
	d.all.Abort(false)
	d.bars.Wait()
}

// meter is how far one database is. It is safe for concurrent use.
type meter struct {
	bar, all *mpb.Bar // nil: nobody looks
	total    int64    // documents when it began
	mu       sync.Mutex
	done     int64 // of the total
	written  atomic.Int64
	bytes    atomic.Int64 // of bodies and attachments that were written
}

// database begins a database with so many documents.
func (d *display) database(name string, total uint64) *meter {
	m := &meter{total: int64(total)}
	if d.bars == nil {
		return m
	}
	m.all = d.all
	m.bar = d.bars.AddBar(0, // not the total, which would end the bar when it is reached
		mpb.PrependDecorators(decor.Name(fitted(name))),
		mpb.AppendDecorators(decor.Percentage(decor.WC{W: 5}), counters(), decor.Any(func(decor.Statistics) string {
			return "  " + humanize.Bytes(uint64(m.bytes.Load()))
		})))
	m.bar.SetTotal(m.total, false)
	return m
}

// fitted makes a name as wide as the others.
func fitted(name string) string {
	if letters := []rune(name); len(letters) > nameWidth {
		name = string(letters[:nameWidth-1]) + "…"
	}
	return fmt.Sprintf("%-*s", nameWidth, name)
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
