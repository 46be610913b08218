package auth

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"divan/cluster/config"
	"divan/storage/doc"
	"divan/storage/fault"
)

// upgradeQueue is how many outdated hashes may wait to be made anew. What does
// not fit is upgraded at a later login.
const upgradeQueue = 64

// upgrade is a password that was just verified against an outdated hash.
type upgrade struct {
	db, name, password string
	rev                doc.Rev // of the document it was verified against
}

// offerUpgrade asks, once for each account that was read, for a new hash of the
// password when the stored one is weaker than new ones are ([chttpd_auth]
// upgrade_hash_on_auth).
func (a *Authenticator) offerUpgrade(s *settings, acc *account, password string) {
	if !s.outdated(acc) || !acc.upgrading.CompareAndSwap(false, true) {
		return
	}
	select {
	case a.upgrades <- upgrade{db: s.db, name: acc.name, password: password, rev: acc.rev}:
	default:
		acc.upgrading.Store(false)
	}
}

// outdated reports whether the hash of an account is to be made anew.
func (s *settings) outdated(acc *account) bool {
	return s.upgrade && acc.inDB && s.passwords.outdated(acc.hash)
}

// Run follows the changes of the authentication database and rewrites outdated
// hashes, until ctx ends. It returns nil.
func (a *Authenticator) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { a.follow(ctx) })
	defer wg.Wait()
	for {
		select {
		case <-ctx.Done():
			return nil
		case u := <-a.upgrades:
			if err := a.upgrade(ctx, u); err != nil && ctx.Err() == nil {
				a.log.Warn("password hash not upgraded", zap.String("user", u.name), zap.Error(err))
			}
		}
	}
}

// upgrade rewrites the document. The salt stays, so that sessions go on, as
// CouchDB's password hasher has it (`preserve_salt` in couch_password_hasher.erl). A
// document that has changed in the meantime is left alone: its next login
// decides again.
func (a *Authenticator) upgrade(ctx context.Context, u upgrade) error {
	stored, err := a.users.store.Get(ctx, u.db, u.name)
	if fault.Is(err, fault.NotFound) || (err == nil && stored.Rev != u.rev) {
		return nil
	}
	if err != nil {
		return err
	}
	acc, err := parseAccount(stored)
	if err != nil {
		return err
	}
	policy := &a.settings().passwords
	var h passwordHash
	err = a.verifier.slowly(ctx, applicant{name: u.name}, func(ctx context.Context) (err error) {
		h, err = policy.hash(ctx, u.password, acc.salt)
		return err
	})
	if err != nil {
		return err
	}
	if stored.Body, err = withHash(stored.Body, h); err != nil {
		return err
	}
	err = a.users.store.Put(ctx, u.db, stored)
	if err != nil && !fault.Is(err, fault.Conflict) {
		return err // the account stays as it is, and is not tried again soon
	}
	a.users.invalidate(accountKey{u.db, u.name})
	if err == nil {
		a.log.Info("password hash upgraded", zap.String("user", u.name))
	}
	return nil
}

// followRetry is how long to wait before the changes are asked for again: the
// authentication database may not exist yet.
const followRetry = time.Second

// follow keeps the accounts current. Whenever changes may have been missed,
// all accounts are forgotten.
func (a *Authenticator) follow(ctx context.Context) {
	for ctx.Err() == nil {
		err := a.watch(ctx)
		a.users.forget(false)
		if err != nil && !fault.Is(err, fault.NotFound) && ctx.Err() == nil {
			a.log.Warn("the changes of the authentication database cannot be followed", zap.Error(err))
		}
		timer := time.NewTimer(followRetry)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// watch follows one database until the setting names another.
func (a *Authenticator) watch(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	db := a.settings().db
	stop := a.config.Subscribe(func(_, now *config.Snapshot) {
		if now.ChttpdAuth.AuthenticationDB != db {
			cancel()
		}
	})
	defer stop()
	if a.settings().db != db { // changed before the subscription
		return nil
	}
	return a.users.store.Watch(ctx, db,
		func() { a.users.forget(true) },
		func(name string) { a.users.invalidate(accountKey{db, name}) },
	)
}
