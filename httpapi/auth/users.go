package auth

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"divan/storage/fault"
)

const (
	// accountLimit bounds the cache of accounts unless auth_cache_size is
	// larger (I6).
	accountLimit = 10_000
	// accountTrust is how long an account counts while the changes of the
	// authentication database are not being followed.
	accountTrust = 5 * time.Second
	// accountAge is how long one counts while they are. A purge is no change:
	// it is only noticed then.
	accountAge = time.Minute
)

// accountKey names an account: the authentication database is a setting.
type accountKey struct{ db, name string }

// accounts reads user documents through a cache.
type accounts struct {
	store UserStore
	cache *lru[accountKey, reading]
	// flight's key has the generation, so that no caller gets an answer that was asked for
	// before a change it knows about.
	flight singleflight[accountFlight, reading]
	// mu makes an account enter the cache only when no invalidation came since
	// it was read: generation moves with each, under mu.
	mu         sync.Mutex
	generation atomic.Uint64
	following  atomic.Bool // every change is being seen
	// hits and misses count the accounts that were in the cache, and the others, as CouchDB
	// does: it keeps only what exists, and a server administrator without a document is neither.
	hits, misses atomic.Uint64
}

// reading is the outcome of reading a user document. The reading of an account without a
// document, a server administrator's, has the time at which that was found.
type reading struct {
	*account // nil: there is no such user
	at       time.Time
	stored   bool // there is a document
}

type accountFlight struct {
	accountKey
	generation uint64
}

func newAccounts(store UserStore, limit int) *accounts {
	return &accounts{store: store, cache: newLRU[accountKey, reading](limit)}
}

// age is how long what was read counts. It changes together with the generation.
func (s *accounts) age() time.Duration {
	if s.following.Load() {
		return accountAge
	}
	return accountTrust
}

// get returns the account of a user document; admin says that the name is also that of a
// server administrator.
func (s *accounts) get(ctx context.Context, k accountKey, admin bool, now time.Time) (reading, error) {
	a, ok := s.cache.get(k, now, s.age(), false)
	switch {
	case a.stored:
		s.hits.Add(1)
	case !admin:
		s.misses.Add(1)
	}
	if ok {
		return a, nil
	}
	generation := s.generation.Load()
	return s.flight.do(ctx, accountFlight{k, generation}, func(ctx context.Context) (reading, error) {
		return s.load(ctx, k, generation, now)
	})
}

func (s *accounts) load(ctx context.Context, k accountKey, generation uint64, now time.Time) (reading, error) {
	u, err := s.store.Get(ctx, k.db, k.name)
	var a *account
	switch {
	case fault.Is(err, fault.NotFound):
	case err != nil:
		return reading{}, err
	default:
		if a, err = parseAccount(u); err != nil {
			return reading{}, err
		}
	}
	found := reading{a, now, a != nil}
	if a == nil || a.size() <= accountSize {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.generation.Load() == generation {
			s.cache.put(k, found, now)
		}
	}
	return found, nil
}

// invalidate forgets one account.
func (s *accounts) invalidate(k accountKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.generation.Add(1)
	s.cache.remove(k)
}

// forget forgets all accounts; following tells whether every change is seen
// from now on.
func (s *accounts) forget(following bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.following.Store(following)
	s.generation.Add(1)
	s.cache.clear()
}
