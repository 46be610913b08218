package auth

import (
	"crypto/sha256"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"divan/cluster/network"
	"divan/storage/fault"
)

// lockoutMode is [chttpd_auth_lockout] mode.
type lockoutMode uint8

const (
	lockoutOff lockoutMode = iota
	lockoutWarn
	lockoutEnforce
)

// lockoutRule is the section [chttpd_auth_lockout].
type lockoutRule struct {
	mode      lockoutMode
	threshold int
	lifetime  time.Duration // a count starts again so long after its first failure
}

// attempt is the key under which failures are counted. The stored hash is part of it so
// that a new password starts with a clean record.
type attempt struct {
	peer, name string
	hash       [sha256.Size]byte
}

func newAttempt(peer, name string, h *passwordHash) attempt {
	return attempt{peer: networkOf(peer), name: name[:min(len(name), maxName)], hash: h.id}
}

// networkOf is network.Of for the text of an address, or of what stands for one.
func networkOf(peer string) string {
	if strings.IndexByte(peer, ':') >= 0 {
		if ip, err := netip.ParseAddr(peer); err == nil {
			return network.Of(ip).String()
		}
	}
	return peer
}

// lockout counts failed logins.
type lockout struct {
	failures *lru[attempt, int]
	// changes counts the failures: while it stays, nothing is locked that was not before.
	changes *atomic.Uint64
}

// newLockout remembers at most limit attempts (I6).
func newLockout(limit int) lockout {
	return lockout{failures: newLRU[attempt, int](limit), changes: new(atomic.Uint64)}
}

// locked reports whether there were as many failures as a rule that is enforced allows.
func (l lockout) locked(r lockoutRule, a attempt, now time.Time) bool {
	if r.mode != lockoutEnforce {
		return false
	}
	n, _ := l.failures.get(a, now, r.lifetime, false)
	return n >= r.threshold
}

// failed counts one more failure, and reports whether it is the last one that the
// rule allows.
func (l lockout) failed(r lockoutRule, a attempt, now time.Time) bool {
	if r.mode == lockoutOff {
		return false
	}
	count := 0
	l.failures.update(a, now, r.lifetime, func(n int) int {
		count = n + 1
		return count
	})
	l.changes.Add(1)
	return count == r.threshold
}

// errLocked is the refusal, the same for names that exist and that do not.
func errLocked() error {
	return fault.New(fault.Forbidden, "Account is temporarily locked due to multiple authentication failures")
}
