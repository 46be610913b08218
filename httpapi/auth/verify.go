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
	hashQueue = 128
	// hashTime is the longest that one slow hash may run: the number of
	// iterations of a user document is chosen by whoever wrote it.
	hashTime = 30 * time.Second
)

// digest identifies a name and a password together with the stored hash they
// are compared with. The name is part of it so that attempts on two names that
// do not exist are as separate as those on two that do (I2). It is keyed with a
// secret of the process: the cache is of no use to anybody who gets to see it.
type digest [sha256.Size]byte

// verifier compares passwords with stored hashes, slowly the first time and
// from its cache later.
type verifier struct {
	key      [32]byte
	verified *lru[digest, struct{}]
	flight   flight[digest, bool]
	slots    chan struct{} // one element for each slow hash that runs
	waiting  atomic.Int64
}

// newVerifier returns a verifier that runs at most parallel slow hashes.
func newVerifier(parallel int) *verifier {
	v := &verifier{
		verified: newLRU[digest, struct{}](verifiedLimit),
		slots:    make(chan struct{}, max(1, parallel)),
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

// verify reports whether c's password belongs to h. A wrong one costs at
// least as many iterations as floor.hash would, whatever h is: what took less
// is made up for (I2).
func (v *verifier) verify(
	ctx context.Context, c credential, h *passwordHash, floor hashing, now time.Time,
) (ok bool, err error) {
	d := v.digest(c.name, c.password, h)
	if _, ok := v.verified.get(d, now, verifiedIdle, true); ok {
		return true, nil
	}
	ok, err = v.flight.do(ctx, d, func(ctx context.Context) (bool, error) {
		return v.compare(ctx, c.password, h, floor)
	})
	if ok {
		v.verified.put(d, struct{}{}, now)
	}
	return ok, err
}

// compare is verify without the cache.
func (v *verifier) compare(ctx context.Context, password string, h *passwordHash, floor hashing) (ok bool, err error) {
	err = v.slowly(ctx, func(ctx context.Context) (err error) {
		if ok, err = h.matches(ctx, password); ok || err != nil {
			return err
		}
		if rest := floor.iterations - h.cost(); rest > 0 && floor.scheme == namePBKDF2 {
			_, err = pbkdf2(ctx, floor.prf, password, h.salt, rest)
		}
		return err
	})
	return ok && err == nil, err
}

// slowly runs fn as soon as one of the slots is free.
func (v *verifier) slowly(ctx context.Context, fn func(context.Context) error) error {
	if v.waiting.Add(1) > hashQueue {
		v.waiting.Add(-1)
		return fault.New(fault.Unavailable, "Too many logins at this time. Try again later.")
	}
	select {
	case v.slots <- struct{}{}:
		v.waiting.Add(-1)
	case <-ctx.Done():
		v.waiting.Add(-1)
		return fmt.Errorf("wait for password hashing: %w", context.Cause(ctx))
	}
	defer func() { <-v.slots }()
	limited, cancel := context.WithTimeoutCause(ctx, hashTime, errTooSlow)
	defer cancel()
	err := fn(limited)
	if errors.Is(err, errTooSlow) {
		return fault.Wrap(fault.Forbidden, reasonTooManyIterations, err)
	}
	return err
}

var errTooSlow = errors.New("password hashing takes too long")

// The refusals of iteration counts outside min_iterations … max_iterations.
const (
	reasonTooFewIterations  = "Iteration count is too low for this server"
	reasonTooManyIterations = "Iteration count is too high for this server"
)
