package auth

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"divan/shard"
	"divan/storage/fault"
)

// credential is a name with its proof.
type credential struct {
	name, password string
	peer           string
	token          string // one-time token
	session        bool   // for a session: only then a second factor can be given
}

func errPassword() error {
	return fault.New(fault.Unauthorized, "Name or password is incorrect.")
}

// tokenUse names whose one-time token was used: the salt makes a new password
// start afresh.
type tokenUse struct{ name, salt string }

// tokenMemory is how long used one-time tokens are remembered: as long as they
// could be used again.
const tokenMemory = 3 * totpPeriod * time.Second

// check returns the account that c proves to own. The order is the same for
// names that exist and that do not (I2): lockout, password, second factor.
func (a *Authenticator) check(ctx context.Context, s *settings, c credential) (reading, error) {
	now := time.Now()
	acc, err := a.account(ctx, s, c.name, now)
	if err != nil {
		return reading{}, err
	}
	hash := &s.nobody
	if acc.account != nil {
		hash = &acc.hash
	}
	t := try{credential: c, hash: hash, attempt: newAttempt(c.peer, c.name, hash), from: s}
	if a.lockout.locked(s.lockout, t.attempt, now) {
		return reading{}, errLocked()
	}
	if err := s.passwords.allows(hash); err != nil {
		return reading{}, err
	}
	ok, err := a.verifier.verify(ctx, t, now)
	if err != nil {
		if errors.Is(err, errUnfinished) { // else a client that does not wait for answers has unlimited attempts
			a.failed(t)
		}
		return reading{}, err
	}
	if !ok || acc.account == nil || !a.secondFactor(acc.account, c, now) {
		a.log.Warn("login failed", zap.String("user", c.name), zap.String("peer", c.peer))
		a.failed(t)
		return reading{}, errPassword()
	}
	if err := s.usable(acc.account); err != nil {
		return reading{}, err
	}
	a.offerUpgrade(s, acc.account, c.password)
	return acc, nil
}

// failed counts a failed login. What follows too many of them is refused without a
// line for each.
func (a *Authenticator) failed(t try) {
	now := time.Now()
	if a.verifier.repeated(&t, now) {
		return
	}
	if a.lockout.failed(t.from.lockout, t.attempt, now) {
		a.log.Warn("threshold of failed logins reached", zap.String("user", t.name), zap.String("peer", t.peer))
	}
}

// secondFactor reports whether the one-time token is right, for an account
// that needs one. It can only be given for a session, and a token that was
// used is used up (RFC 6238 section 5.2).
func (a *Authenticator) secondFactor(acc *account, c credential, now time.Time) bool {
	if acc.totp == nil {
		return true
	}
	if !c.session {
		return false
	}
	step, ok := acc.totp.check(c.token, now)
	if !ok {
		return false
	}
	unused := false
	a.tokens.update(tokenUse{acc.name, acc.salt}, now, tokenMemory, func(last uint64) uint64 {
		unused = step > last
		return max(last, step)
	})
	return unused
}

// Login is the content of POST /_session.
type Login struct {
	Name, Password string
	Token          string // one-time token, for users with a second factor
	Peer           string // see Authenticator.Peer
	Secure         bool   // the client speaks TLS: the cookie must not go out without
}

// Session is the outcome of a login.
type Session struct {
	User      shard.User
	SetCookie string // value of the Set-Cookie header
}

var errNoSecret = fault.New(fault.Unavailable,
	"No session can be signed: [chttpd_auth] secret is not set. A node that joins a cluster has it a moment after it is a member.")

// Login opens a session. fault.Unauthorized: the name or the password is
// wrong; fault.Forbidden: too many failures, or the iteration count is outside
// the limits.
func (a *Authenticator) Login(ctx context.Context, l Login) (Session, error) {
	s := a.settings()
	acc, err := a.check(ctx, s, credential{
		name: l.Name, password: l.Password, peer: l.Peer, token: l.Token, session: true,
	})
	if err != nil {
		return Session{}, err
	}
	cookie := s.cookie.issue(acc.name, acc.salt, time.Now(), l.Secure)
	if cookie == "" {
		return Session{}, errNoSecret
	}
	return Session{User: acc.user(), SetCookie: cookie}, nil
}

// Logout returns the value of the Set-Cookie header that makes a client forget
// its session. The session itself stays valid until it runs out: nothing of it
// is kept on the server.
func (a *Authenticator) Logout(secure bool) string {
	return a.settings().cookie.header("", time.Now(), secure)
}
