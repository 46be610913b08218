package auth

import (
	"strings"

	"divan/cluster/config"
	"divan/storage/fault"
)

// passwordPolicy is how passwords are stored and which ones may be.
type passwordPolicy struct {
	hashing
	minIterations int
	maxIterations int
	keepSalt      bool // preserve_salt: a new password does not end sessions
	rules         []config.PasswordRule
	broken        bool // password_regexp does not parse
}

func newPasswordPolicy(snap *config.Snapshot) passwordPolicy {
	a := &snap.ChttpdAuth
	p := passwordPolicy{
		hashing:       hashing{scheme: a.PasswordScheme, prf: a.PBKDF2PRF, iterations: a.Iterations},
		minIterations: a.MinIterations,
		maxIterations: a.MaxIterations,
		keepSalt:      a.PreserveSalt,
		rules:         a.PasswordRules,
	}
	text, _ := snap.Get("chttpd_auth", "password_regexp")
	text = strings.Join(strings.Fields(text), "")
	p.broken = text != "" && text != "[]" && len(p.rules) == 0
	return p
}

// accepts refuses a new password that breaks one of the rules. Rules that do
// not parse accept nothing: a mistake must not switch them off.
func (p *passwordPolicy) accepts(password string) error {
	if p.broken {
		return errCannotHash()
	}
	for _, rule := range p.rules {
		if rule.Pattern.MatchString(password) {
			continue
		}
		reason := "Password does not conform to requirements."
		if rule.Reason != "" {
			reason += " " + rule.Reason
		}
		return fault.New(fault.BadRequest, reason)
	}
	return nil
}

// ownIterations bounds the iterations of a hash that is stored by an account other than an
// administrator: each login takes their time, about 0.2 s.
const ownIterations = 1_000_000

// mostIterations is that number, with regard to what this server makes itself.
func (p *passwordPolicy) mostIterations() int {
	return min(p.maxIterations, max(ownIterations, p.iterations))
}

// allows refuses a stored hash whose iteration count is outside the limits.
func (p *passwordPolicy) allows(h *passwordHash) error {
	switch n := h.cost(); {
	case n == 0: // no iterations in this scheme
	case n < p.minIterations:
		return fault.New(fault.Forbidden, reasonTooFewIterations)
	case n > p.maxIterations:
		return fault.New(fault.Forbidden, reasonTooManyIterations)
	}
	return nil
}
