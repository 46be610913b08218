package auth

import (
	"encoding/base64"
	"net/http"
	"strings"

	"divan/storage/fault"
)

// parseBasic reads an Authorization header. ok is false when it is no Basic
// credential, when it has no colon, and for the user "_" with the password "_"
// that browsers are given to forget a login.
func parseBasic(header string) (name, password string, ok bool, err error) {
	if !isBasic(header) {
		return "", "", false, nil
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(header[len(basicPrefix):]))
	if err != nil {
		return "", "", false, fault.New(fault.BadRequest, "Authorization header has invalid base64 value")
	}
	name, password, ok = strings.Cut(string(raw), ":")
	if !ok || (name == "_" && password == "_") {
		return "", "", false, nil
	}
	return name, password, true, nil
}

const basicPrefix = "basic "

func isBasic(header string) bool {
	return len(header) >= len(basicPrefix) && strings.EqualFold(header[:len(basicPrefix)], basicPrefix)
}

func (a *Authenticator) byBasic(r *http.Request, s *settings) (Result, bool, error) {
	header := r.Header.Get("Authorization")
	if !isBasic(header) {
		return Result{}, false, nil
	}
	login := a.newBasicLogin(s, s.peer.Peer(r), header)
	if user, ok := a.knows(&login); ok {
		return Result{User: user}, true, nil
	}
	name, password, ok, err := parseBasic(header)
	if !ok || err != nil {
		return Result{}, false, err
	}
	acc, err := a.check(r.Context(), s, credential{name: name, password: password, peer: login.peer})
	if err != nil {
		return Result{}, false, err
	}
	a.remember(&login, acc)
	return Result{User: acc.user()}, true, nil
}
