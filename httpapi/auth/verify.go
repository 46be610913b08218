package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"divan/storage/fault"
)

const (
	// verifiedLimit and verifiedIdle bound the cache of verified passwords
	// (semantics.md section 9.2).
	verifiedLimit = 10_000
	verifiedIdle  = 10 * time.Minute
	// hashQueue is how many requests may wait for a slow hash (I3).
	hashQueue = 1024
	// hashTime is the longest that one slow hash may run: the number of iterations of a user
	// document is chosen by its writer.
	hashTime = 30 * time.Second
)

// digest identifies a name and a password together with the stored hash they are compared
// with. The name is part of it so that attempts on two names that do not exist are as
// separate as those on two that do (I2). It is keyed with a secret of the process: the
// cache is of no use to an attacker who gets to see it.
type digest [sha256.Size]byte

// verifier compares passwords with stored hashes, slowly the first time and
// from its cache later.
type verifier struct {
	key      [32]byte
	verified *lru[digest, struct{}]
	flight   singleflight[digest, bool]
	lockout  lockout
	hashing  fairSemaphore
	proven   *lru[login, struct{}] // who logged in from where

	jobFailures *lru[jobFailure, bool] // see repeated

	fast, slow atomic.Uint64 // passwords that the cache knew, and that were hashed
}

// login is a name that a peer uses.
type login struct{ peer, name string }

// provenAge is how long a login makes the name count as proven.
const provenAge = 7 * 24 * time.Hour

// newVerifier returns a verifier that runs at most parallel slow hashes.
func newVerifier(parallel int, l lockout) *verifier {
	v := &verifier{
		verified: newLRU[digest, struct{}](verifiedLimit),
		lockout:  l,
		hashing:  fairSemaphore{limit: max(1, parallel)},
		proven:   newLRU[login, struct{}](verifiedLimit),

		jobFailures: newLRU[jobFailure, bool](verifiedLimit),
	}
	_, _ = rand.Read(v.key[:]) // never fails, see crypto/rand
	return v
}

func (v *verifier) digest(name, password string, h *passwordHash) digest {
	buf := make([]byte, 0, 256) // on the stack unless name or password are long
	buf = append(buf, v.key[:]...)
	buf = append(buf, h.id[:]...)
	buf = binary.BigEndian.AppendUint32(buf, uint32(len(name)))
	buf = append(buf, name...)
	buf = append(buf, password...)
	return sha256.Sum256(buf)
}

// try is a credential on its way.
type try struct {
	credential
	hash    *passwordHash
	attempt attempt // what failures are counted by
	from    *settings
}

// locked reports whether too many attempts have failed to let this one go on.
func (v *verifier) locked(t *try) bool {
	return v.lockout.locked(t.from.lockout, t.attempt, time.Now())
}

// verify reports whether a password belongs to a hash. A wrong one costs at least as many
// iterations as a new hash would, for every stored hash: a cheaper comparison is made up
// for (I2).
func (v *verifier) verify(ctx context.Context, t try, now time.Time) (ok bool, err error) {
	d := v.digest(t.name, t.password, t.hash)
	if _, ok := v.verified.get(d, now, verifiedIdle, true); ok {
		v.fast.Add(1)
		return true, nil
	}
	return v.hash(ctx, d, t, now)
}

// hash is verify without the cache; on its own, as t is kept in memory then.
func (v *verifier) hash(ctx context.Context, d digest, t try, now time.Time) (ok bool, err error) {
	ok, err = v.flight.do(ctx, d, func(ctx context.Context) (bool, error) {
		return v.compare(ctx, &t)
	})
	if ok {
		v.verified.put(d, struct{}{}, now)
		v.proven.put(login{t.attempt.peer, t.attempt.name}, struct{}{}, now)
	}
	return ok, err
}

// compare compares when it is the client's turn.
func (v *verifier) compare(ctx context.Context, t *try) (ok bool, err error) {
	h, floor := t.hash, t.from.passwords.hashing
	_, proven := v.proven.get(login{t.attempt.peer, t.attempt.name}, time.Now(), provenAge, false)
	who := applicant{peer: t.attempt.peer, name: t.attempt.name, proven: proven}
	err = v.slowly(ctx, who, func(ctx context.Context) (err error) {
		if v.locked(t) { // others have failed while this one waited
			return errLocked()
		}
		v.slow.Add(1)
		if ok, err = h.matches(ctx, t.password); ok || err != nil {
			return err
		}
		if rest := floor.iterations - h.cost(); rest > 0 && floor.scheme == namePBKDF2 {
			_, err = pbkdf2(ctx, floor.prf, t.password, h.salt, rest)
		}
		return err
	})
	return ok && err == nil, err
}

// slowly runs fn when it is the applicant's turn. A hash that was begun and not
// ended, because the client left or it takes too long, is errUnfinished as well.
func (v *verifier) slowly(ctx context.Context, who applicant, fn func(context.Context) error) error {
	if err := v.hashing.acquire(ctx, who); err != nil {
		return err
	}
	defer v.hashing.release()
	limited, cancel := context.WithTimeoutCause(ctx, hashTime, errTooSlow)
	defer cancel()
	err := fn(limited)
	if errors.Is(err, errTooSlow) {
		return fault.Wrap(fault.Forbidden, reasonTooManyIterations, errors.Join(errUnfinished, err))
	}
	if ended(err) {
		return fmt.Errorf("%w: %w", errUnfinished, err)
	}
	return err
}

var (
	errTooSlow    = errors.New("password hashing takes too long")
	errUnfinished = errors.New("password hashing was not ended")
)

// The refusals of iteration counts outside min_iterations … max_iterations.
const (
	reasonTooFewIterations  = "Iteration count is too low for this server"
	reasonTooManyIterations = "Iteration count is too high for this server"
)
