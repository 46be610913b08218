package clusterctl

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"divan/cmd/divan/progress"
	"divan/storage/pause"
)

const (
	// followEvery is the pause between two looks, and so the least time between two lines that
	// say how far it is.
	followEvery = time.Second
	// patience is how long a server may give no answer while it is followed: a node that is restarted is back by
	// then.
	patience = 2 * time.Minute
	// linesAtOnce bounds the lines after one look. The others are in the sums.
	linesAtOnce = 20
)

// extent is how far something is.
type extent struct {
	done, all int64  // of the bar
	text      string // a line, where there is no bar
	brief     string // beside the bar
}

// source is something that is followed.
type source interface {
	// look asks how far it is, prints lines about what has ended since the last look, and
	// reports whether all has.
	look(ctx context.Context, show *progress.Display) (e extent, ended bool, err error)
}

// interruption is the error of a command that ends before what it follows.
type interruption struct{ hint string }

// Error implements error.
func (i *interruption) Error() string { return "no longer followed. " + i.hint }

// follow shows how far something is until it ends. Hint says how to go on when that is interrupted.
func (c *command) follow(ctx context.Context, name string, s source, hint string) error {
	show := progress.New(c.cfg.Progress, c.cfg.Terminal)
	defer show.Close()
	text := "" // of the last line
	var brief atomic.Pointer[string]
	brief.Store(new(string))
	bar := show.Bar(name, 0, mpb.AppendDecorators(decor.Percentage(decor.WC{W: 5}), decor.Any(func(decor.Statistics) string {
		return "  " + *brief.Load()
	})))
	if bar != nil {
		defer bar.Abort(true) // before show is closed
	}
	c.client.Retry = true
	last := time.Now()
	for {
		e, ended, err := s.look(ctx, show)
		switch {
		case ctx.Err() != nil:
			return &interruption{hint}
		case err != nil && (lasting(err) || time.Since(last) > patience):
			return err
		case err != nil:
			show.Line("%s; asking again", oneLine(err.Error()))
		default:
			last = time.Now()
			if bar != nil {
				brief.Store(&e.brief)
				bar.SetTotal(e.all, false)
				bar.SetCurrent(e.done)
			} else if e.text != text {
				text = e.text
				show.Line("%s", text)
			}
			if ended {
				return nil
			}
		}
		if err := pause.For(ctx, followEvery); err != nil {
			return &interruption{hint}
		}
	}
}
