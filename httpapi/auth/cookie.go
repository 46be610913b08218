package auth

import (
	"crypto/hmac"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	"divan/storage/fault"
)

// cookieName is the name of the session cookie.
const cookieName = "AuthSession"

// cookieRule holds the settings of [chttpd_auth] about sessions.
type cookieRule struct {
	secret     string
	algorithms []string      // the first signs, all are accepted
	timeout    time.Duration // how long a session lasts without use
	persistent bool          // allow_persistent_cookies: with Max-Age and Expires
	domain     string        // cookie_domain
	sameSite   string        // "None", "Lax", "Strict" or empty
}

// session is a decoded cookie (semantics.md section 9.1): the base64url text of
// name:HEXTIME:hmac, where the hmac is over name:HEXTIME as they stand there.
type session struct {
	name   string
	signed string // name:HEXTIME
	issued time.Time
	mac    []byte
}

func errCookie() error {
	return fault.New(fault.BadRequest, "Malformed AuthSession cookie. Please clear your cookies.")
}

// parseSession decodes the value of a cookie. An issue time that is no
// hexadecimal number gives a session that has expired long ago.
func parseSession(value string) (session, error) {
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(value, "="))
	if err != nil {
		return session{}, errCookie()
	}
	text := string(raw)
	name, rest, ok := strings.Cut(text, ":")
	if !ok {
		return session{}, errCookie()
	}
	stamp, mac, ok := strings.Cut(rest, ":")
	if !ok {
		return session{}, errCookie()
	}
	s := session{name: name, signed: text[:len(name)+1+len(stamp)], mac: []byte(mac)}
	if n, err := strconv.ParseInt(stamp, 16, 40); err == nil { // 40 bits of seconds: 17,000 years
		s.issued = time.Unix(n, 0)
	}
	return s, nil
}

// left returns how long the session goes on.
func (r *cookieRule) left(s session, now time.Time) time.Duration {
	return s.issued.Add(r.timeout).Sub(now)
}

// signedBy reports whether the session was signed for a user with that salt.
func (r *cookieRule) signedBy(s session, salt string) bool {
	if r.secret == "" {
		return false
	}
	for _, algorithm := range r.algorithms {
		if mac := r.mac(algorithm, salt, s.signed); mac != nil && hmac.Equal(mac, s.mac) {
			return true // which of the algorithms it was is no secret
		}
	}
	return false
}

// mac signs text with the secret followed by the user's salt; nil for an
// unknown algorithm.
func (r *cookieRule) mac(algorithm, salt, text string) []byte {
	newHash := prfOf(algorithm)
	if newHash == nil {
		return nil
	}
	m := hmac.New(newHash, []byte(r.secret+salt))
	m.Write([]byte(text))
	return m.Sum(nil)
}

// issue returns the value of a Set-Cookie header for a new session; empty when
// there is no secret or no algorithm to sign with.
func (r *cookieRule) issue(name, salt string, now time.Time, secure bool) string {
	if r.secret == "" || len(r.algorithms) == 0 {
		return ""
	}
	text := name + ":" + strings.ToUpper(strconv.FormatInt(now.Unix(), 16))
	mac := r.mac(r.algorithms[0], salt, text)
	if mac == nil {
		return ""
	}
	return r.header(base64.RawURLEncoding.EncodeToString(append([]byte(text+":"), mac...)), now, secure)
}

// header returns the value of a Set-Cookie header. Some clients cut it at the
// semicolons, so order and spelling are CouchDB's to the letter. The empty
// value, with the same attributes, is how a session ends.
func (r *cookieRule) header(value string, now time.Time, secure bool) string {
	b := make([]byte, 0, 256)
	b = append(b, cookieName+"="...)
	b = append(b, value...)
	b = append(b, "; Version=1"...)
	if r.persistent {
		b = append(b, "; Expires="...)
		b = now.Add(r.timeout).UTC().AppendFormat(b, http.TimeFormat)
		b = append(b, "; Max-Age="...)
		b = strconv.AppendInt(b, int64(r.timeout/time.Second), 10)
	}
	if secure {
		b = append(b, "; Secure"...)
	}
	if r.domain != "" {
		b = append(b, "; Domain="...)
		b = append(b, r.domain...)
	}
	b = append(b, "; Path=/; HttpOnly"...)
	if r.sameSite != "" {
		b = append(b, "; SameSite="...)
		b = append(b, r.sameSite...)
	}
	return string(b)
}

// sessionCookie finds the value of the session cookie among the Cookie
// headers, empty when there is none. The standard library's parser would drop
// a malformed value, which must be told to the client instead.
func sessionCookie(h http.Header) string {
	for _, line := range h["Cookie"] {
		for line != "" {
			var pair string
			pair, line, _ = strings.Cut(line, ";")
			name, value, _ := strings.Cut(pair, "=")
			if strings.TrimSpace(name) == cookieName {
				return strings.Trim(strings.TrimSpace(value), `"`)
			}
		}
	}
	return ""
}

// refreshBelow is how much of a session, in tenths, is left when the cookie is
// sent anew (semantics.md section 9.1).
const refreshBelow = 9

func (a *Authenticator) byCookie(r *http.Request, s *settings) (Result, bool, error) {
	value := sessionCookie(r.Header)
	if value == "" {
		return Result{}, false, nil
	}
	ses, err := parseSession(value)
	if err != nil {
		return Result{}, false, err
	}
	now := time.Now()
	left := s.cookie.left(ses, now)
	if left <= 0 {
		return Result{}, false, nil
	}
	acc, err := a.account(r.Context(), s, ses.name, now)
	if err != nil || acc.account == nil || !s.cookie.signedBy(ses, acc.salt) {
		return Result{}, false, err
	}
	if err := s.usable(acc.account); err != nil {
		return Result{}, false, err
	}
	res := Result{User: acc.user()}
	if left*10 < s.cookie.timeout*refreshBelow {
		res.RefreshCookie = s.cookie.issue(acc.name, acc.salt, now, s.secure(r))
	}
	return res, true, nil
}
