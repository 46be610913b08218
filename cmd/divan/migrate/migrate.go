package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"divan/cmd/divan/httpclient"
	"divan/replicator/remote"
	"divan/shard/script"
)

// Config says what is moved, and how.
type Config struct {
	Source, Target httpclient.Server
	Only, Exclude  []string // names of databases, in which * stands for anything; no Only: all
	Parallel       int      // databases at the same time
	Q              int      // shards of new databases; 0: as many as at the source
	Replications   bool     // bring the documents of replicator databases, which start to run on the target
	FromStart      bool     // look at every document again, in spite of checkpoints
	DryRun         bool     // only look
	Continuous     bool     // follow the source until ctx ends
	Insecure       bool     // take certificates that are not trusted
	Progress       io.Writer
	Terminal       bool // Progress is one
	Report         io.Writer
	Logger         *zap.Logger
	UserAgent      string
}

// errSame is the error of a source that is the target.
var errSame = errors.New("the source and the target are the same server")

// ErrIncomplete is the error of a migration after which something of the source
// is not on the target.
var ErrIncomplete = errors.New("not everything is there")

// errInterrupted is the error of a run that was ended before it began.
var errInterrupted = errors.New("interrupted")

// migration is one run.
type migration struct {
	cfg            Config
	source, target *side
	transfer       *transfer
	scripts        *script.Engine
	choice         choice
	show           *display
	dbs            databases
}

// Run moves databases and prints the report. The error says why it could not, or
// that something is missing on the target.
func Run(ctx context.Context, cfg Config) error {
	m, err := newMigration(cfg)
	if err != nil {
		return err
	}
	defer m.close()
	names, total, err := m.prepare(ctx)
	if ctx.Err() != nil {
		return errInterrupted
	}
	if err != nil {
		return err
	}
	m.show.Line("%s: %s, %s (%s)", m.source.Host(), count(int64(len(names)), "database"), count(int64(total), "document"), m.source.about)
	if err := m.first(ctx, names, total); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return m.interrupted()
	}
	if cfg.Continuous {
		m.follow(ctx)
	}
	return m.report(ctx)
}

// prepare finds out what there is to bring.
func (m *migration) prepare(ctx context.Context) (names []string, total uint64, err error) {
	if err := m.meet(ctx); err != nil {
		return nil, 0, err
	}
	if names, err = m.list(ctx); err != nil {
		return nil, 0, err
	}
	if len(names) == 0 {
		return nil, 0, fmt.Errorf("%s has no such database", m.source.Host())
	}
	total, err = m.measure(ctx, names)
	return names, total, err
}

func newMigration(cfg Config) (*migration, error) {
	network, err := remote.NewNetwork(remote.NetworkOptions{TLS: remote.TLS{Verify: !cfg.Insecure}})
	if err != nil {
		return nil, err
	}
	m := &migration{
		cfg: cfg, scripts: script.New(script.Options{Logger: cfg.Logger}),
		source: newSide(cfg.Source, cfg.Insecure, cfg.UserAgent), target: newSide(cfg.Target, cfg.Insecure, cfg.UserAgent),
		show: newDisplay(cfg.Progress, false, 0),
	}
	m.dbs.mu.byName = make(map[string]*database)
	for _, side := range []*side{m.source, m.target} {
		if side.through, err = side.Proxy(); err != nil {
			return nil, fmt.Errorf("the proxy to %s: %w", side.Host(), err)
		}
	}
	m.transfer = &transfer{source: m.source, target: m.target, network: network, userAgent: cfg.UserAgent, logger: cfg.Logger}
	if err := m.transfer.logIn(); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *migration) close() {
	m.transfer.logOut()
	_ = m.scripts.Close() // nothing runs any more
	m.transfer.network.Close()
	m.source.CloseIdleConnections()
	m.target.CloseIdleConnections()
}

// meet makes sure that both sides are there and let us in.
func (m *migration) meet(ctx context.Context) error {
	if err := m.source.hello(ctx); err != nil {
		return fmt.Errorf("the source: %w", err)
	}
	if err := m.target.hello(ctx); err != nil {
		return fmt.Errorf("the target: %w", err)
	}
	if m.source.about.UUID != "" && m.source.about.UUID == m.target.about.UUID {
		return errSame
	}
	return nil
}

// list returns the names of the databases to bring.
func (m *migration) list(ctx context.Context) ([]string, error) {
	names, err := m.source.databases(ctx)
	if err != nil {
		return nil, err
	}
	m.choice = choose(names, &m.cfg)
	return m.choice.take, nil
}

// measure finds out how large the databases are.
func (m *migration) measure(ctx context.Context, names []string) (total uint64, err error) {
	infos, err := m.infos(ctx, names)
	for name, i := range infos {
		total += i.all()
		m.dbs.get(name).source = i
	}
	return total, err
}

// each calls do for each name, for several at the same time. An error ends it.
func (m *migration) each(ctx context.Context, names []string, do func(ctx context.Context, name string) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(1, m.cfg.Parallel))
	for _, name := range names {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error { return do(ctx, name) })
	}
	return group.Wait()
}

// first brings everything once.
func (m *migration) first(ctx context.Context, names []string, total uint64) error {
	m.show = newDisplay(m.cfg.Progress, m.cfg.Terminal && !m.cfg.DryRun, total)
	defer func() {
		m.show.Close()
		m.show = newDisplay(m.cfg.Progress, false, 0)
	}()
	last := slices.IndexFunc(names, isReplicator) // what these begin is to find the other databases complete
	if last < 0 {
		last = len(names)
	}
	for _, part := range [][]string{names[:last], names[last:]} {
		err := m.each(ctx, part, func(ctx context.Context, name string) error {
			m.show.Line("%s", m.bring(ctx, m.dbs.get(name)).text)
			return nil // the other databases go on
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// interrupted is the error of a run that was ended before it was through.
func (m *migration) interrupted() error {
	done, all := 0, m.dbs.all()
	for _, db := range all {
		if db.complete {
			done++
		}
	}
	return fmt.Errorf("%w with %d of %d databases done; the same command goes on where this one ended", errInterrupted, done, len(all))
}
