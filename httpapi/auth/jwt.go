package auth

import (
	"bytes"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"divan/cluster/config"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// jwtRule is the sections [jwt_auth] and [jwt_keys] (semantics.md section 9.3).
type jwtRule struct {
	broken   bool // required_claims names no claim
	required []config.Claim
	roles    []string // path of the claim with the roles
	keys     map[string]jwtKey
}

func newJWTRule(c *config.JWT) jwtRule {
	r := jwtRule{broken: c.Misconfigured, required: c.RequiredClaims, keys: parseKeys(c.Keys)}
	switch {
	case c.RolesClaimPath != "":
		r.roles = splitPath(c.RolesClaimPath)
	case c.RolesClaimName != "":
		r.roles = []string{c.RolesClaimName}
	default:
		r.roles = []string{"_couchdb.roles"}
	}
	return r
}

// splitPath splits at dots; "\." is a dot in a name.
func splitPath(path string) []string {
	var out []string
	name := make([]byte, 0, len(path))
	for i := 0; i < len(path); i++ {
		switch {
		case path[i] == '\\' && i+1 < len(path) && path[i+1] == '.':
			name = append(name, '.')
			i++
		case path[i] == '.':
			out = append(out, string(name))
			name = name[:0]
		default:
			name = append(name, path[i])
		}
	}
	return append(out, string(name))
}

// parseBearer takes the token out of an Authorization header.
func parseBearer(header string) (token string, ok bool) {
	const prefix = "bearer "
	if len(header) < len(prefix) || !strings.EqualFold(header[:len(prefix)], prefix) {
		return "", false
	}
	return strings.TrimSpace(header[len(prefix):]), true
}

func errToken(reason string) error { return fault.New(fault.BadRequest, reason) }

func errMalformedToken() error { return errToken("Malformed authentication token") }

// object is the top-level members of a JSON object: raw values by name. The
// last of several members of one name counts.
type object map[string][]byte

// identify checks a token and returns whom it names. The order of the checks
// is CouchDB's, so that a token with two faults is refused with its text:
// header, claims, key, signature, subject.
func (r *jwtRule) identify(token string, now time.Time) (shard.User, error) {
	if r.broken {
		return shard.User{}, fault.New(fault.Misconfigured, "JWT is not configured correctly")
	}
	header64, rest, ok := strings.Cut(token, ".")
	payload64, signature64, ok2 := strings.Cut(rest, ".")
	if !ok || !ok2 || strings.Contains(signature64, ".") {
		return shard.User{}, errMalformedToken()
	}
	header, err := decodeObject(header64)
	if err != nil {
		return shard.User{}, err
	}
	alg, err := r.checkHeader(header)
	if err != nil {
		return shard.User{}, err
	}
	claims, err := decodeObject(payload64)
	if err != nil {
		return shard.User{}, err
	}
	if err := r.checkClaims(claims, now); err != nil {
		return shard.User{}, err
	}
	kid, err := r.keyID(header)
	if err != nil {
		return shard.User{}, err
	}
	signature, err := base64.RawURLEncoding.DecodeString(signature64)
	if err != nil {
		return shard.User{}, errMalformedToken()
	}
	if err := r.verify(alg, kid, token[:len(header64)+1+len(payload64)], signature); err != nil {
		return shard.User{}, err
	}
	name, ok := doc.Unquote(claims["sub"])
	if !ok || name == "" {
		return shard.User{}, fault.New(fault.Unauthorized, "Token missing sub claim.")
	}
	roles, err := tokenRoles(claims, r.roles)
	return shard.User{Name: name, Roles: roles}, err
}

// decodeObject decodes one part of a token.
func decodeObject(part string) (object, error) {
	raw, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		return nil, errMalformedToken()
	}
	text, err := doc.Canonical(nil, raw)
	if err != nil {
		return nil, errMalformedToken()
	}
	if len(text) == 0 || text[0] != '{' {
		return nil, errToken("Not an object")
	}
	return members(text)
}

func members(text []byte) (object, error) {
	o := object{}
	err := doc.EachMember(text, func(name string, value []byte) error {
		o[name] = value
		return nil
	})
	if err != nil {
		return nil, errMalformedToken()
	}
	return o, nil
}

// checkHeader returns the algorithm.
func (r *jwtRule) checkHeader(header object) (alg string, err error) {
	if r.requires("typ") {
		typ, there := header["typ"]
		if !there {
			return "", errToken("Missing typ header parameter")
		}
		if text, _ := doc.Unquote(typ); text != "JWT" {
			return "", errToken("Invalid typ header parameter")
		}
	}
	value, there := header["alg"]
	if !there {
		return "", errToken("Missing alg header parameter")
	}
	alg, _ = doc.Unquote(value)
	if keyKind(alg) == "" {
		return "", errToken("Invalid alg header parameter")
	}
	return alg, nil
}

func (r *jwtRule) requires(name string) bool {
	for _, c := range r.required {
		if c.Name == name {
			return true
		}
	}
	return false
}

// keyID returns the kid of the header, "_default" when it has none.
func (r *jwtRule) keyID(header object) (string, error) {
	value, there := header["kid"]
	if !there {
		if r.requires("kid") {
			return "", errToken("Missing kid claim")
		}
		return "_default", nil
	}
	kid, ok := doc.Unquote(value)
	if !ok {
		return "", errToken("Unknown kid")
	}
	return kid, nil
}

// checkClaims holds the claims against what is required. Claims that are not
// required are not looked at, except for exp: a token that says when it ends
// has ended then.
func (r *jwtRule) checkClaims(claims object, now time.Time) error {
	for _, name := range []string{"iss", "iat", "nbf", "exp"} {
		if !r.requires(name) && (name != "exp" || claims["exp"] == nil) {
			continue
		}
		if err := r.checkClaim(name, claims, now); err != nil {
			return err
		}
	}
	for _, c := range r.required {
		switch c.Name {
		case "typ", "alg", "kid", "iss", "iat", "nbf", "exp":
		default:
			if err := r.checkClaim(c.Name, claims, now); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkClaim holds one claim against what is required of it. What is no number is neither before nor after a time as
// CouchDB orders values, but greater than each number: such an exp never passes, such an nbf is still to come.
func (r *jwtRule) checkClaim(name string, claims object, now time.Time) error {
	value, there := claims[name]
	if !there {
		return errToken("Missing " + name + " claim")
	}
	switch name {
	case "iat":
		if _, ok := numericDate(value); !ok || bytes.ContainsAny(value, ".eE") {
			return errToken("Invalid iat claim")
		}
	case "nbf":
		if at, ok := numericDate(value); !ok || at > float64(now.Unix()) {
			return fault.New(fault.Unauthorized, "nbf not in past")
		}
	case "exp":
		if at, ok := numericDate(value); ok && at <= float64(now.Unix()) {
			return fault.New(fault.Unauthorized, "exp not in future")
		}
	case "iss":
		if !r.expected(name, value) || !r.named(name) && string(value) != "true" {
			return errToken("Invalid iss claim")
		}
	default:
		if !r.expected(name, value) {
			return errToken("Invalid " + name + " claim")
		}
	}
	return nil
}

// expected reports whether a claim has one of the values that the
// configuration names, or whether it names none. An array (aud) has each of
// its elements.
func (r *jwtRule) expected(name string, value []byte) bool {
	anyValue := true
	for _, c := range r.required {
		if c.Name != name || !c.HasValue {
			continue
		}
		anyValue = false
		if text, ok := doc.Unquote(value); ok && text == c.Value {
			return true
		}
		if len(value) > 0 && value[0] == '[' && containsText(value, c.Value) {
			return true
		}
	}
	return anyValue
}

// named reports whether the configuration names a value of a claim.
func (r *jwtRule) named(name string) bool {
	return slices.ContainsFunc(r.required, func(c config.Claim) bool { return c.Name == name && c.HasValue })
}

var errFound = errors.New("found")

func containsText(array []byte, want string) bool {
	err := doc.EachElement(array, func(v []byte) error {
		if text, ok := doc.Unquote(v); ok && text == want {
			return errFound
		}
		return nil
	})
	return errors.Is(err, errFound)
}

// numericDate reads seconds since 1970 (RFC 7519 section 2).
func numericDate(value []byte) (float64, bool) {
	if len(value) == 0 || value[0] == '"' {
		return 0, false
	}
	n, err := strconv.ParseFloat(string(value), 64)
	return n, err == nil
}

// tokenRoles takes the roles out of the claims: an array of texts or one text
// with a comma list. Anything else is no token, but for a claim that is not
// there, which gives none.
func tokenRoles(claims object, path []string) ([]string, error) {
	for _, name := range path[:len(path)-1] {
		value := claims[name]
		if len(value) == 0 || value[0] != '{' {
			return []string{}, nil
		}
		var err error
		if claims, err = members(value); err != nil {
			return nil, err
		}
	}
	value, there := claims[path[len(path)-1]]
	if !there {
		return []string{}, nil
	}
	if text, ok := doc.Unquote(value); ok {
		return splitRoles(text), nil
	}
	if !doc.IsArray(value) {
		return nil, errMalformedToken()
	}
	roles := []string{}
	err := doc.EachElement(value, func(v []byte) error {
		role, ok := doc.Unquote(v)
		if !ok {
			return errMalformedToken()
		}
		roles = append(roles, role)
		return nil
	})
	return roles, err
}

func (a *Authenticator) byToken(r *http.Request, s *settings) (Result, bool, error) {
	token, ok := parseBearer(r.Header.Get("Authorization"))
	if !ok {
		return Result{}, false, nil
	}
	user, err := s.jwt.identify(token, time.Now())
	return Result{User: user}, err == nil, err
}
