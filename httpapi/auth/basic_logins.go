package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"divan/shard"
)

// basicLogins are logins by Basic that were right, so that the next request with the same
// header need not be checked step by step. A login counts only as long as each step would
// end as it did: with the same settings, no account changed or due to be read again, and
// no more failures counted (I4).
type basicLogins struct {
	key  [32]byte // as that of the verifier
	seen *lru[digest, basicSeen]
}

// basicSeen is a login that was right, and what it depends on.
type basicSeen struct {
	basicTerms
	until  time.Time // when the account has to be read again
	user   shard.User
	stored bool // the account has a document
}

// basicTerms are the values that have to stay the same for a login to count.
type basicTerms struct {
	settings *settings
	accounts uint64 // their generation
	failures uint64
}

// basicLogin is a header that is being looked at.
type basicLogin struct {
	digest // of header and peer
	basicTerms
	peer string
	now  time.Time
	kept bool // it is small enough
}

const (
	basicLimit  = 4096 // logins that are kept (I6)
	basicLength = 512  // bytes of a header and a peer that are
)

func newBasicLogins() *basicLogins {
	l := &basicLogins{seen: newLRU[digest, basicSeen](basicLimit)}
	_, _ = rand.Read(l.key[:]) // never fails, see crypto/rand
	return l
}

// newBasicLogin returns what is known of a header of a peer before it is checked: a change
// that comes meanwhile makes the outcome one of before it.
func (a *Authenticator) newBasicLogin(s *settings, peer, header string) basicLogin {
	l := basicLogin{peer: peer, kept: len(peer)+len(header) <= basicLength}
	if !l.kept {
		return l
	}
	l.basicTerms = basicTerms{settings: s, accounts: a.users.generation.Load(), failures: a.lockout.changes.Load()}
	l.now = time.Now()
	buf := make([]byte, 0, basicLength+40) // on the stack
	buf = append(buf, a.basic.key[:]...)
	buf = binary.BigEndian.AppendUint32(buf, uint32(len(peer)))
	buf = append(append(buf, peer...), header...)
	l.digest = sha256.Sum256(buf)
	return l
}

// knows returns the user of a login that was right and is still.
func (a *Authenticator) knows(l *basicLogin) (shard.User, bool) {
	if !l.kept {
		return shard.User{}, false
	}
	seen, ok := a.basic.seen.get(l.digest, l.now, accountAge, false)
	if !ok || seen.basicTerms != l.basicTerms || !l.now.Before(seen.until) {
		return shard.User{}, false
	}
	if seen.stored {
		a.users.hits.Add(1)
	}
	a.verifier.fast.Add(1)
	return seen.user, true
}

// remember keeps a login that was right. One that a new hash is due for is checked again,
// until that is made.
func (a *Authenticator) remember(l *basicLogin, acc reading) {
	if l.kept && !l.settings.outdated(acc.account) && acc.size() <= accountSize {
		a.basic.seen.put(l.digest, basicSeen{basicTerms: l.basicTerms, until: acc.at.Add(a.users.age()), user: acc.user(), stored: acc.stored}, l.now)
	}
}
