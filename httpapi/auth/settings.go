package auth

import (
	"net/http"
	"strings"

	"divan/cluster/config"
)

// settings is the part of one configuration snapshot that authentication reads, parsed
// once for each snapshot. It is immutable.
type settings struct {
	from       *config.Snapshot
	handlers   []string // in the order they are asked
	peer       PeerRule
	forwarded  config.Forwarded
	db         string // name of the authentication database
	cookie     cookieRule
	proxy      proxyRule
	jwt        jwtRule
	admins     map[string]passwordHash
	lockout    lockoutRule
	passwords  passwordPolicy
	upgrade    bool         // upgrade_hash_on_auth
	conflicted bool         // allow_conflicted_user_docs
	nobody     passwordHash // what passwords of unknown names are compared with
}

func newSettings(snap *config.Snapshot) *settings {
	a := &snap.ChttpdAuth
	s := &settings{
		from:      snap,
		handlers:  knownHandlers(snap.Chttpd.AuthHandlers),
		forwarded: snap.Chttpd.Forwarded,
		db:        a.AuthenticationDB,
		cookie: cookieRule{
			secret: a.Secret, algorithms: a.HashAlgorithms, timeout: a.Timeout,
			persistent: a.AllowPersistentCookies, domain: cookieText(a.CookieDomain), sameSite: sameSite(a.SameSite),
		},
		proxy: proxyRule{
			username: snap.Proxy.UserNameHeader, roles: snap.Proxy.RolesHeader, token: snap.Proxy.TokenHeader,
			useSecret: snap.Proxy.UseSecret,
		},
		jwt:       newJWTRule(&snap.JWT),
		admins:    make(map[string]passwordHash, len(snap.Admins)),
		lockout:   newLockoutRule(&snap.Lockout),
		passwords: newPasswordPolicy(snap),
		upgrade:   a.UpgradeHashOnAuth,
	}
	s.peer = NewPeerRule(snap)
	allow, _ := snap.Get("chttpd_auth", "allow_conflicted_user_docs")
	s.conflicted = allow == "true"
	for name, value := range snap.Admins {
		if h, ok := parseAdmin(value); ok {
			s.admins[name] = h
		}
	}
	s.nobody = passwordHash{salt: "nobody"}.sealed() // always the same, as the hash of a name that exists is
	return s
}

// Names of the handlers in [chttpd] authentication_handlers and in the answer
// of GET /_session.
const (
	handlerCookie = "cookie"
	handlerBasic  = "default"
	handlerProxy  = "proxy"
	handlerJWT    = "jwt"
)

// knownHandlers drops the names that this server has no handler for. When none is left,
// cookies and Basic remain, or no administrator could mend the setting.
func knownHandlers(names []string) []string {
	var out []string
	for _, name := range names {
		switch name {
		case handlerCookie, handlerBasic, handlerProxy, handlerJWT:
			out = append(out, name)
		}
	}
	if len(out) == 0 {
		return []string{handlerCookie, handlerBasic}
	}
	return out
}

func newLockoutRule(c *config.Lockout) lockoutRule {
	r := lockoutRule{threshold: c.Threshold, lifetime: c.MaxLifetime}
	switch c.Mode {
	case "warn":
		r.mode = lockoutWarn
	case "enforce":
		r.mode = lockoutEnforce
	}
	return r
}

func sameSite(value string) string {
	switch strings.ToLower(value) {
	case "none":
		return "None"
	case "lax":
		return "Lax"
	case "strict":
		return "Strict"
	}
	return ""
}

// cookieText drops a value that would break out of a cookie attribute.
func cookieText(value string) string {
	if strings.ContainsAny(value, ";,\" \t\r\n") {
		return ""
	}
	return value
}

// secure reports whether the client speaks TLS, to this server or to the proxy
// in front of it. A client that lies about it harms its own cookie only.
func (s *settings) secure(r *http.Request) bool {
	return r.TLS != nil || r.Header.Get(s.forwarded.SSL) == "on" || r.Header.Get(s.forwarded.Proto) == "https"
}
