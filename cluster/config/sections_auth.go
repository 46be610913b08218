package config

import (
	"regexp"
	"strings"
	"time"
)

// ChttpdAuth is section [chttpd_auth].
type ChttpdAuth struct {
	Secret                 string // signs cookies and proxy tokens
	AuthenticationDB       string
	AuthenticationRedirect string
	Timeout                time.Duration // of a session
	AllowPersistentCookies bool
	CookieDomain           string
	SameSite               string   // in lower case; what is not strict, lax or none is left out of cookies
	HashAlgorithms         []string // sha, sha224, sha256, sha384, sha512; the first signs, all are accepted
	PasswordScheme         string   // pbkdf2 or simple
	PBKDF2PRF              string   // sha, sha224, sha256, sha384 or sha512
	Iterations             int
	MinIterations          int
	MaxIterations          int
	UpgradeHashOnAuth      bool
	AuthCacheSize          int      // verified users kept
	PublicFields           []string // members of a user document that every client sees
	UsersDBPublic          bool
	PreserveSalt           bool
	PasswordRules          []PasswordRule
}

// PasswordRule is one item of password_regexp: a new password must match.
type PasswordRule struct {
	Pattern *regexp.Regexp
	Reason  string // appended to the refusal; may be empty
}

func readChttpdAuth(r *reader) ChttpdAuth {
	const s = "chttpd_auth"
	return ChttpdAuth{
		Secret:                 r.text(s, "secret", ""),
		AuthenticationDB:       r.text(s, "authentication_db", "_users"),
		AuthenticationRedirect: r.text(s, "authentication_redirect", "/_utils/session.html"),
		Timeout:                r.duration(s, "timeout", 10*time.Minute, time.Second, atLeast(1)),
		AllowPersistentCookies: r.boolean(s, "allow_persistent_cookies", true),
		CookieDomain:           r.text(s, "cookie_domain", ""),
		SameSite:               strings.ToLower(r.text(s, "same_site", "")),
		HashAlgorithms:         readHashes(r),
		PasswordScheme:         r.oneOf(s, "password_scheme", "pbkdf2", "pbkdf2", "simple"),
		PBKDF2PRF:              r.oneOf(s, "pbkdf2_prf", "sha256", "sha", "sha224", "sha256", "sha384", "sha512"),
		Iterations:             r.count(s, "iterations", 600_000, between(1, 1_000_000_000)),
		MinIterations:          r.count(s, "min_iterations", 1, between(1, 1_000_000_000)),
		MaxIterations:          r.count(s, "max_iterations", 1_000_000_000, between(1, 1_000_000_000)),
		UpgradeHashOnAuth:      r.boolean(s, "upgrade_hash_on_auth", true),
		AuthCacheSize:          r.count(s, "auth_cache_size", 50, atLeast(0)),
		PublicFields:           r.list(s, "public_fields"),
		UsersDBPublic:          r.boolean(s, "users_db_public", false),
		PreserveSalt:           r.boolean(s, "preserve_salt", false),
		PasswordRules:          readPasswordRules(r),
	}
}

func readHashes(r *reader) []string {
	const s, key = "chttpd_auth", "hash_algorithms"
	def := []string{"sha256", "sha"}
	out := r.list(s, key, def...)
	for _, h := range out {
		switch h {
		case "sha", "sha224", "sha256", "sha384", "sha512":
		default:
			r.bad(s, key, "a list of sha, sha224, sha256, sha384, sha512")
			return def
		}
	}
	if len(out) == 0 {
		return def
	}
	return out
}

// readPasswordRules reads CouchDB's Erlang notation: a list of regular
// expressions, each a string, {"expression"} or {"expression", "reason"}.
func readPasswordRules(r *reader) []PasswordRule {
	const s, key, want = "chttpd_auth", "password_regexp", `a list like [{"regular expression", "reason"}]`
	v, found := r.lookup(s, key)
	if found == "" {
		return nil
	}
	terms, ok := parseErlangTerms(v)
	var out []PasswordRule
	for _, t := range terms {
		if len(t) > 2 {
			ok = false
			break
		}
		re, err := regexp.Compile(t[0])
		if err != nil {
			ok = false
			break
		}
		rule := PasswordRule{Pattern: re}
		if len(t) == 2 {
			rule.Reason = t[1]
		}
		out = append(out, rule)
	}
	if !ok {
		r.bad(found, key, want)
		return nil
	}
	return out
}

// Lockout is section [chttpd_auth_lockout].
type Lockout struct {
	Mode        string        // off, warn or enforce
	Threshold   int           // failures before the lock
	MaxLifetime time.Duration // how long failures are remembered
	MaxObjects  int           // pairs of peer and user remembered
}

func readLockout(r *reader) Lockout {
	const s = "chttpd_auth_lockout"
	return Lockout{
		Mode:        r.oneOf(s, "mode", "enforce", "off", "warn", "enforce"),
		Threshold:   r.count(s, "threshold", 5, atLeast(1)),
		MaxLifetime: r.duration(s, "max_lifetime", 5*time.Minute, time.Millisecond, atLeast(1)),
		MaxObjects:  r.count(s, "max_objects", 10_000, atLeast(1)),
	}
}

// JWT is the sections [jwt_auth] and [jwt_keys].
type JWT struct {
	RequiredClaims []Claim           // none when the setting is empty or was taken away
	Misconfigured  bool              // required_claims names none: no token is taken
	RolesClaimName string            // empty: _couchdb.roles
	RolesClaimPath string            // dotted; overrides RolesClaimName
	Keys           map[string]string // "hmac:<kid>" → base64; "rsa:<kid>", "ec:<kid>" → PEM with \n for line ends
}

// Claim is a claim that a token must have.
type Claim struct {
	Name     string
	Value    string // what it must be, when HasValue
	HasValue bool
}

// claimPattern finds the words and pairs of required_claims wherever they stand, as CouchDB does: a value that is
// malformed is taken, and counts as what is found in it.
func claimPattern() *regexp.Regexp {
	return regexp.MustCompile(`[a-z]+|\{([a-z]+)\s*,\s*"([^"]+)"\}`)
}

func readJWT(r *reader) JWT {
	const s = "jwt_auth"
	j := JWT{
		RolesClaimName: r.text(s, "roles_claim_name", ""),
		RolesClaimPath: r.text(s, "roles_claim_path", ""),
		Keys:           r.values["jwt_keys"],
	}
	v, found := r.lookup(s, "required_claims")
	if found == "" {
		return j
	}
	for _, m := range claimPattern().FindAllStringSubmatch(v, -1) {
		if m[1] == "" {
			j.RequiredClaims = append(j.RequiredClaims, Claim{Name: m[0]})
		} else {
			j.RequiredClaims = append(j.RequiredClaims, Claim{Name: m[1], Value: m[2], HasValue: true})
		}
	}
	j.Misconfigured = v != "" && len(j.RequiredClaims) == 0
	return j
}

// Proxy is the keys of [chttpd_auth] for authentication by a proxy in front.
type Proxy struct {
	UseSecret      bool
	UserNameHeader string
	RolesHeader    string
	TokenHeader    string
}

func readProxy(r *reader) Proxy {
	const s = "chttpd_auth"
	return Proxy{
		UseSecret:      r.boolean(s, "proxy_use_secret", false),
		UserNameHeader: r.text(s, "x_auth_username", "X-Auth-CouchDB-UserName"),
		RolesHeader:    r.text(s, "x_auth_roles", "X-Auth-CouchDB-Roles"),
		TokenHeader:    r.text(s, "x_auth_token", "X-Auth-CouchDB-Token"),
	}
}
