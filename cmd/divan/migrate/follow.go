package migrate

import (
	"context"
	"slices"
	"sync/atomic"
	"time"
)

const (
	// followEvery is the least pause between two looks at the source.
	followEvery = 2 * time.Second
	// tellEvery is how often a log hears what has been brought.
	tellEvery = time.Minute
)

// follow brings what changes at the source, new databases too, until ctx ends.
// It looks at the databases again and again, which any server can do for any
// number of them; a feed of each would keep as many requests open.
func (m *migration) follow(ctx context.Context) {
	m.show.Line("Following %s. Interrupt (Ctrl-C) at the cut-over.", m.source.Host())
	pause := time.NewTimer(followEvery)
	defer pause.Stop()
	var written int64
	told := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
		start := time.Now()
		n, err := m.round(ctx)
		if err != nil && ctx.Err() == nil {
			m.show.Line("%s: %s", m.source.Host(), reason(err)) // it may be back next time
		}
		if written += n; written > 0 && (m.cfg.Terminal || time.Since(told) >= tellEvery) {
			m.show.Line("%s: %s", time.Now().Format(time.TimeOnly), count(written, "revision"))
			written, told = 0, time.Now()
		}
		pause.Reset(max(followEvery, time.Since(start))) // an old server has other work too
	}
}

// round brings the databases that have changed, or are new. It returns how many
// revisions it has written.
func (m *migration) round(ctx context.Context) (int64, error) {
	names, err := m.list(ctx)
	if err != nil {
		return 0, err
	}
	infos, err := m.infos(ctx, names)
	if err != nil {
		return 0, err
	}
	changed := slices.DeleteFunc(names, func(name string) bool {
		i, there := infos[name]
		return !there || m.dbs.get(name).has(i)
	})
	var written atomic.Int64
	err = m.each(ctx, changed, func(ctx context.Context, name string) error {
		db := m.dbs.get(name)
		db.source = infos[name]
		b := m.bring(ctx, db)
		written.Add(b.written)
		if b.trouble && ctx.Err() == nil && db.told != b.text { // not the same each time
			db.told = b.text
			m.show.Line("%s", b.text)
		}
		return nil
	})
	return written.Load(), err
}
