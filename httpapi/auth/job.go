package auth

import (
	"net"
	"net/http"
	"strings"
	"time"
)

// jobPeer begins what stands in for the address of a replication, before its account.
const jobPeer = "replication of "

// AuthenticateJob is Authenticate for a replication that reaches a database of this
// cluster by its URL; account is whose replication it is. Failures of one account lock
// the replications of no other. One that comes again with the password in its URL has
// not guessed anew: each wrong password counts once, so that it does not lock the other
// replications of its account either.
func (a *Authenticator) AuthenticateJob(r *http.Request, account string) (Result, error) {
	r.RemoteAddr = net.JoinHostPort(jobPeer+account, "0") // what looks like a port in a name is none
	return a.Authenticate(r)
}

// jobFailure is a wrong password of the replications of an account.
type jobFailure struct {
	peer string
	digest
}

// repeated reports whether a failure is one of a replication that was counted before.
func (v *verifier) repeated(t *try, now time.Time) (seen bool) {
	if !strings.HasPrefix(t.peer, jobPeer) {
		return false
	}
	key := jobFailure{t.attempt.peer, v.digest(t.name, t.password, t.hash)}
	v.jobFailures.update(key, now, t.from.lockout.lifetime, func(before bool) bool {
		seen = before
		return true
	})
	return seen
}
