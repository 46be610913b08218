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
	const prefix = "basic "
	if len(header) < len(prefix) || !strings.EqualFold(header[:len(prefix)], prefix) {
		return "", "", false, nil
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(header[len(prefix):]))
	if err != nil {
		return "", "", false, fault.New(fault.BadRequest, "Authorization header has invalid base64 value")
	}
	name, password, ok = strings.Cut(string(raw), ":")
	if !ok || (name == "_" && password == "_") {
		return "", "", false, nil
	}
	return name, password, true, nil
}

func (a *Authenticator) byBasic(r *http.Request, s *settings) (Result, bool, error) {
	name, password, ok, err := parseBasic(r.Header.Get("Authorization"))
	if !ok || err != nil {
		return Result{}, false, err
	}
	acc, err := a.check(r.Context(), s, credential{name: name, password: password, peer: s.peer.Peer(r)})
	if err != nil {
		return Result{}, false, err
	}
	return Result{User: acc.user()}, true, nil
}
