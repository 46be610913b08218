package node

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"divan/cluster/meta"
	"divan/storage"
)

// metadata opens and runs the metadata of a node.
type metadata struct {
	base   *base
	engine *storage.Engine
	links  *links // nil: the node stands alone
	meta   *meta.Meta
}

// open builds the metadata.
func (m *metadata) open() (_ *meta.Meta, err error) {
	m.meta, err = meta.New(m.options())
	return m.meta, err
}

// options are those of the metadata.
func (m *metadata) options() meta.Options {
	o := meta.Options{
		Dir: metaDir(m.base.cfg.DataDir), Stores: m.base.cfg.Meta, Self: meta.Node{Name: m.base.name}, Bootstrap: true,
		Config: m.base.config, Logger: m.base.log.Named("meta"), DiskFull: m.engine.DiskFull, Found: m.bootstrap,
	}
	if m.base.cfg.MetaInMemory {
		o.Dir = ""
	}
	if o.Dir != "" && o.Stores == nil {
		o.CopyDir = copyDir(m.base.cfg.DataDir)
	}
	if m.links != nil {
		m.links.describe(&o)
	}
	return o
}

// bootstrap is asked by the metadata how to begin where there are none. A node
// that has shards has lost them, and must not begin anew: nothing would name the
// shards any more.
func (m *metadata) bootstrap(ctx context.Context) (f meta.BootstrapPlan, err error) {
	f.New = true
	if m.links != nil {
		f, err = m.links.bootstrapper.found(ctx)
	}
	if err != nil || !f.New {
		return f, err
	}
	names, err := m.engine.Catalog().Names()
	if err != nil || len(names) == 0 {
		return f, err
	}
	return meta.BootstrapPlan{}, fmt.Errorf("%s has no metadata, but %s has %s: without metadata nothing would ever find them again. "+
		"Put the metadata back from a backup, or make them again: divan recover %s",
		metaDir(m.base.cfg.DataDir), filepath.Join(m.base.cfg.DataDir, "shards"), shardsOf(names), m.base.cfg.DataDir)
}

// advise adds to an error of damaged metadata what to do about them.
func (m *metadata) advise(err error) error {
	switch {
	case !errors.Is(err, meta.ErrDamaged):
		return err
	case m.links != nil && len(m.links.members.id.load().others(m.base.name)) > 0:
		return fmt.Errorf("%w. The other nodes of the cluster have them: move %s away and start again", err, metaDir(m.base.cfg.DataDir))
	}
	return fmt.Errorf("%w. Put them back from a backup, or make them again: divan recover %s", err, m.base.cfg.DataDir)
}

// run runs the metadata.
func (m *metadata) run(ctx context.Context) error { return m.advise(m.meta.Run(ctx)) }

// settlePatience is how long a node of a cluster waits for the metadata before
// it answers requests without: what it can do then is say so.
const settlePatience = 10 * time.Second

// settle waits for the metadata, which also hashes administrators that were
// given as plain text. A node that waits for others to join, or for a majority
// of them, goes on without.
func (m *metadata) settle(ctx context.Context) error {
	if m.links == nil {
		return m.meta.WaitReady(ctx)
	}
	limit := time.NewTimer(settlePatience)
	defer limit.Stop()
	select {
	case <-m.meta.Ready():
		return nil
	case <-m.links.bootstrapper.undecided:
		m.base.log.Info("waiting for a cluster to form; requests are answered meanwhile, most of them with 503")
	case <-limit.C:
		m.base.log.Warn("the metadata are not there yet; requests are answered meanwhile, most of them with 503")
	case <-ctx.Done():
		return ctx.Err()
	}
	if _, err := m.base.config.HashAdmins(nil); err != nil { // the metadata does it otherwise
		return fmt.Errorf("administrators: %w", err)
	}
	return nil
}
