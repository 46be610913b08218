package peruser

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"

	"divan/cluster"
	"divan/cluster/meta"
	"divan/shard/ring"
	"divan/storage/fault"
	"divan/storage/pause"
)

// userPrefix is how the ids of the documents of accounts begin.
const userPrefix = "org.couchdb.user:"

// How long it takes until all accounts are looked at again when something has failed: at
// first firstWait, then twice as long each time that nothing has been done, up to
// longestWait.
const (
	firstWait   = time.Second
	longestWait = 30 * time.Second
)

// keep keeps the databases of accounts until ctx ends.
func (k *Keeper) keep(ctx context.Context, t turn) {
	k.log.Info("this node keeps the databases of accounts", zap.String("accounts", t.accounts), zap.Uint64("term", t.term))
	said := ""
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		done := k.done()
		err := k.follow(ctx, t)
		if ctx.Err() != nil {
			return
		}
		if text := fmt.Sprint(err); text != said && !fault.Is(err, fault.NoDatabase) { // it may stay so
			said = text
			k.log.Warn("not all accounts have their databases yet", zap.Error(err))
		}
		if k.done() > done || fault.Is(err, fault.NoDatabase) {
			wait = firstWait
		}
		if pause.For(ctx, wait) != nil {
			return
		}
	}
}

// done counts what has been done.
func (k *Keeper) done() uint64 { return k.created.Load() + k.deleted.Load() + k.secured.Load() }

// follow looks at all accounts and then at those that change, until something has failed
// that may work at another time.
func (k *Keeper) follow(ctx context.Context, t turn) error {
	db, err := k.o.Coordinator.DB(ctx, t.accounts)
	if err != nil {
		return err
	}
	feed, err := db.Changes(ctx, cluster.ChangesQuery{Limit: cluster.NoLimit})
	if err != nil {
		return fmt.Errorf("follow %s: %w", t.accounts, err)
	}
	defer feed.Close()
	for {
		var late error
		for feed.Next() {
			account, ok := strings.CutPrefix(feed.Row().ID, userPrefix)
			if !ok || account == "" {
				continue
			}
			err := k.look(ctx, t, account, !feed.Row().Deleted)
			switch {
			case err == nil:
			case ctx.Err() != nil, fault.Is(err, fault.Unavailable): // so would be all others
				return err
			case !lasting(err):
				late = err
			}
		}
		if err := feed.Err(); err != nil {
			return fmt.Errorf("follow %s: %w", t.accounts, err)
		}
		if late != nil {
			return late
		}
		if err := feed.Wait(ctx); err != nil {
			return fmt.Errorf("follow %s: %w", t.accounts, err)
		}
	}
}

// lasting reports whether what has failed would fail the next time, as where no database can
// have that name, so many shards or so large a security object.
func lasting(err error) bool { return fault.RepeatOf(err) == fault.Lasting }

// look does what has to be done for an account, as a row of the feed says. A failure is
// counted, and told where it is not tried again.
func (k *Keeper) look(ctx context.Context, t turn, account string, alive bool) error {
	name := databaseOf(t.settings.Prefix, account)
	db, _ := k.o.Meta.Database(name)
	s, _, err := next(account, alive, db, t.settings.DeleteDBs)
	if err == nil && s == create {
		err = ring.ValidateName(name)
	}
	if err == nil && s != nothing {
		err = k.settle(ctx, t, account, db)
	}
	if err == nil || ctx.Err() != nil {
		return err
	}
	k.failed.Add(1)
	if lasting(err) {
		k.log.Error("an account gets no database", zap.String("account", account), zap.String("database", name), zap.Error(err))
	}
	return fmt.Errorf("database %s of account %q: %w", name, account, err)
}

// settle does what has to be done for an account, as most copies of its document say now.
// Nothing but seen is deleted: the database that look found, nil for none.
func (k *Keeper) settle(ctx context.Context, t turn, account string, seen *meta.Database) error {
	if err := k.o.Owners.Check(ctx, k.slot, t.term); err != nil {
		return err
	}
	alive, known, err := k.alive(ctx, t.accounts, account)
	if err != nil || !known {
		return err
	}
	name := databaseOf(t.settings.Prefix, account)
	db, _ := k.o.Meta.Database(name)
	s, security, err := next(account, alive, db, t.settings.DeleteDBs)
	if err != nil {
		return err
	}
	if s == create {
		if err := k.create(ctx, name, t.settings.Q); err != nil {
			return err
		}
		db, _ = k.o.Meta.Database(name)
		if s, security, err = next(account, alive, db, false); err != nil {
			return err
		}
	}
	switch s {
	case grant, revoke:
		return k.secure(ctx, db, security)
	case drop:
		return k.drop(ctx, seen)
	case create:
		return fault.Newf(fault.Unavailable, "database %s is gone again", name)
	default:
		return nil
	}
}

// alive reports whether there is an account. It is not known of one whose document was
// purged.
func (k *Keeper) alive(ctx context.Context, accounts, account string) (alive, known bool, err error) {
	err = k.o.Coordinator.Do(ctx, accounts, func(d *cluster.DB) error {
		_, err := d.Open(ctx, cluster.OpenOptions{ID: userPrefix + account, HeadOnly: true, Strict: true})
		return err
	})
	switch {
	case err == nil:
		return true, true, nil
	case fault.Is(err, fault.NoDatabase):
		return false, false, err
	case fault.Is(err, fault.NotFound):
		return false, fault.Reason(err) == "deleted", nil
	default:
		return false, false, err
	}
}

func (k *Keeper) create(ctx context.Context, name string, q int) error {
	err := k.o.Coordinator.CreateDB(ctx, name, cluster.CreateOptions{Q: q})
	if fault.Is(err, fault.Exists) {
		return nil
	}
	if err == nil {
		k.created.Add(1)
	}
	return err
}

// secure changes the security object of one database, not that of another one that has its
// name by now.
func (k *Keeper) secure(ctx context.Context, db *meta.Database, security []byte) error {
	err := k.o.Meta.SetSecurity(ctx, db, security)
	if err == nil {
		k.secured.Add(1)
	}
	return err
}

// drop deletes one database, if it is still there.
func (k *Keeper) drop(ctx context.Context, db *meta.Database) error {
	if db == nil {
		return nil
	}
	err := k.o.Coordinator.DeleteExactly(ctx, db)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err == nil {
		k.deleted.Add(1)
		k.log.Info("the database of a deleted account is deleted", zap.String("database", db.Name))
	}
	return err
}
