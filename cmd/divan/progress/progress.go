// Package progress shows how far a command is: bars on a terminal, below lines that stay; only the
// lines anywhere else.
package progress

import (
	"fmt"
	"io"
	"sync"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// Display shows the progress of a command. It is safe for concurrent use.
//
// Bars have goroutines of their own; Close waits for them.
type Display struct {
	bars *mpb.Progress // nil: lines only
	mu   struct {
		sync.Mutex
		out io.Writer // guarded as lines come from several goroutines
	}
}

// nameWidth is the width of a bar's name.
const nameWidth = 28

// New returns a display without bars.
func New(out io.Writer, terminal bool) *Display {
	d := &Display{}
	d.mu.out = out
	if terminal {
		d.bars = mpb.New(mpb.WithOutput(out), mpb.WithWidth(40), mpb.WithAutoRefresh())
	}
	return d
}

// Bar adds a bar; nil when there is no terminal.
func (d *Display) Bar(name string, total int64, options ...mpb.BarOption) *mpb.Bar {
	if d.bars == nil {
		return nil
	}
	return d.bars.AddBar(total, append(options, mpb.PrependDecorators(decor.Name(fitted(name))))...)
}

// Line prints a line that stays.
func (d *Display) Line(format string, args ...any) {
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

// Close waits for the bars, all of which have been ended or aborted.
func (d *Display) Close() {
	if d.bars != nil {
		d.bars.Wait()
	}
}

// fitted makes a name as wide as the others.
func fitted(name string) string {
	if letters := []rune(name); len(letters) > nameWidth {
		name = string(letters[:nameWidth-1]) + "…"
	}
	return fmt.Sprintf("%-*s", nameWidth, name)
}
