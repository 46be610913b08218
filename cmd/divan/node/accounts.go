package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"divan/cluster"
	"divan/cluster/config"
	"divan/cluster/meta"
	"divan/httpapi/auth"
	"divan/shard"
	"divan/storage/fault"
	"divan/storage/pause"
)

// accountsRetry is when databases of accounts are looked at again that could not be
// written to.
const accountsRetry = time.Second

// accountDatabases returns the names of the databases that get auth.UserDesign.
func accountDatabases(s *config.Snapshot) []string {
	return slices.Compact([]string{"_users", s.ChttpdAuth.AuthenticationDB})
}

// accountRules gives databases of accounts the design document that says who may change
// them.
type accountRules struct {
	alone  bool // the node stands alone
	config *config.Holder
	meta   *meta.Meta
	coord  *cluster.Coordinator
	log    *zap.Logger
}

// run gives databases of accounts their design document when they are made or
// become one. Until then, and should a node die between, the same rules count without it
// (auth.Standard). All nodes do it: the document has the same revision, no matter which
// node writes it.
func (a *accountRules) run(ctx context.Context) error {
	said := ""
	for ctx.Err() == nil {
		err := a.watch(ctx)
		if err == nil {
			continue
		}
		if err = ended(ctx, err); err != nil && !errors.Is(err, meta.ErrLagged) && err.Error() != said { // a full disk may stay so
			said = err.Error()
			a.log.Warn(textNoAccountRules, zap.Error(err))
		}
		_ = pause.For(ctx, accountsRetry) // the loop looks at ctx
	}
	return nil
}

const textNoAccountRules = "a database of accounts has no design document yet"

// wait has a server that stands alone answer requests only when its
// databases of accounts have their design document, unless that cannot be written.
func (a *accountRules) wait(ctx context.Context) error {
	if !a.alone {
		return nil
	}
	for _, name := range accountDatabases(a.config.Load()) {
		if _, there := a.meta.Database(name); !there {
			continue
		}
		if err := a.give(ctx, name); err != nil {
			a.log.Warn(textNoAccountRules, zap.Error(err))
		}
	}
	return nil
}

// watch returns nil when the setting names another database, and at the end.
func (a *accountRules) watch(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	names := accountDatabases(a.config.Load())
	stop := a.config.Subscribe(func(_, now *config.Snapshot) {
		if !slices.Equal(accountDatabases(now), names) {
			cancel()
		}
	})
	defer stop()
	if !slices.Equal(accountDatabases(a.config.Load()), names) { // changed before the subscription
		return nil
	}
	sub, dbs := a.meta.Subscribe()
	defer sub.Close()
	wanted := make([]string, 0, len(names))
	for _, name := range names {
		if _, there := dbs.Get(name); there {
			wanted = append(wanted, name)
		}
	}
	for {
		for _, name := range wanted {
			if err := a.give(ctx, name); err != nil && ctx.Err() == nil {
				return err
			}
		}
		events, err := sub.Next(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("follow the databases: %w", err)
		}
		wanted = wanted[:0]
		for _, e := range events {
			if e.Kind == meta.Created && slices.Contains(names, e.New.Name) {
				wanted = append(wanted, e.New.Name)
			}
		}
	}
}

// give writes the document unless there is one, or an administrator has
// deleted it.
func (a *accountRules) give(ctx context.Context, db string) error {
	design := auth.UserDesign()
	err := a.coord.Do(ctx, db, func(d *cluster.DB) error {
		_, err := d.Open(ctx, cluster.OpenOptions{ID: design.ID, HeadOnly: true})
		if !fault.Is(err, fault.NotFound) || fault.Reason(err) == "deleted" {
			return err
		}
		edit := shard.Edit{ID: design.ID, Body: design.Body}
		results, err := d.Update(ctx, cluster.UpdateOptions{NewEdits: true, User: serverUser()}, []shard.Edit{edit})
		if err != nil {
			return err
		}
		return results[0].Err
	})
	switch {
	case err == nil, fault.Is(err, fault.Conflict), fault.Is(err, fault.NotFound), fault.Is(err, fault.NoDatabase):
		return nil // it is there, or was taken away meanwhile
	default:
		return fmt.Errorf("write %s of %s: %w", design.ID, db, err)
	}
}
