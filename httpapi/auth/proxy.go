package auth

import (
	"crypto/hmac"
	"encoding/hex"
	"net/http"
	"strings"

	"divan/shard"
)

// proxyRule holds the settings of [chttpd_auth] about trusted proxies.
type proxyRule struct {
	username, roles, token string // names of the headers
	useSecret              bool   // proxy_use_secret: the token must prove the name
}

// identify reads the headers (semantics.md section 9.4). ok is false when they name no
// user, or when the token is wrong: then the next handler is asked.
//
// A header that is there twice is not believed: one of the two may be the
// client's own.
func (p proxyRule) identify(h http.Header, algorithms []string, secret string) (user shard.User, ok bool) {
	name, ok := single(h, p.username)
	if !ok || name == "" {
		return shard.User{}, false
	}
	roles, ok := single(h, p.roles)
	if !ok {
		return shard.User{}, false
	}
	if p.useSecret {
		token, ok := single(h, p.token)
		if !ok || !proves(token, name, algorithms, secret) {
			return shard.User{}, false
		}
	}
	return shard.User{Name: name, Roles: splitRoles(roles)}, true
}

// single returns the value of a header, empty when it is missing; ok is false
// when there are several.
func single(h http.Header, name string) (value string, ok bool) {
	values := h.Values(name)
	if len(values) == 0 {
		return "", true
	}
	return values[0], len(values) == 1
}

// proves reports whether token is the hex HMAC of name under secret, by one of
// the algorithms. Without a secret nothing is proof.
func proves(token, name string, algorithms []string, secret string) bool {
	got, err := hex.DecodeString(strings.TrimSpace(token))
	if err != nil || secret == "" {
		return false
	}
	found := false
	for _, algorithm := range algorithms {
		newHash := prfOf(algorithm)
		if newHash == nil {
			continue
		}
		mac := hmac.New(newHash, []byte(secret))
		mac.Write([]byte(name))
		if hmac.Equal(got, mac.Sum(nil)) {
			found = true
		}
	}
	return found
}

// splitRoles splits a comma list; spaces around the names and empty names do
// not count.
func splitRoles(text string) []string {
	roles := []string{}
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			roles = append(roles, part)
		}
	}
	return roles
}
