package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"divan/cluster/config"
	"divan/shard"
	"divan/storage/fault"
)

// goldenKey is the key of golden auth/12.
const goldenKey = "Z29sZGVuIGtleSBvbmU="

// goldenTokens are the tokens of golden auth/12 with CouchDB's answers.
var goldenTokens = []struct {
	name, token string
	user        shard.User
	kind        fault.Kind
	reason      string
}{
	{"a token", "eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9." +
		"eyJzdWIiOiJqdWR5IiwiZXhwIjo0MTAyNDQ0ODAwLCJfY291Y2hkYi5yb2xlcyI6WyJyZWFkZXJzIiwid3JpdGVycyJdfQ." +
		"G1eMQqkcjDq8avAyPLNYgl0yf1z_lJAmoo9MGs-G4XI", shard.User{Name: "judy", Roles: []string{"readers", "writers"}}, 0, ""},
	{"without roles", "eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9." +
		"eyJzdWIiOiJqdWR5IiwiZXhwIjo0MTAyNDQ0ODAwfQ." +
		"wHyZdfs2K58RavBbkZhovEGkGr_q-1elZKylR3tnfZo", shard.User{Name: "judy", Roles: []string{}}, 0, ""},
	{"no roles", "eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9." +
		"eyJzdWIiOiJqdWR5IiwiZXhwIjo0MTAyNDQ0ODAwLCJfY291Y2hkYi5yb2xlcyI6W119." +
		"aNC3RqFlkz5-2fyrOtXlpKVFXfPhCZYLHycJjvnNjpw", shard.User{Name: "judy", Roles: []string{}}, 0, ""},
	{"roles as a text", "eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9." +
		"eyJzdWIiOiJqdWR5IiwiZXhwIjo0MTAyNDQ0ODAwLCJfY291Y2hkYi5yb2xlcyI6InJlYWRlcnMsIHdyaXRlcnMifQ." +
		"QidE7L4r7Bd3of1VShgog4FXVqEfxW3qvazcD2xlnhc", shard.User{Name: "judy", Roles: []string{"readers", "writers"}}, 0, ""},
	{"other claims do not matter", "eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9." +
		"eyJzdWIiOiJqdWR5IiwiZXhwIjo0MTAyNDQ0ODAwLCJfY291Y2hkYi5yb2xlcyI6WyJyZWFkZXJzIiwid3JpdGVycyJdLCJhdWQiOiJ4IiwiaXNzIjoieSIsIm5iZiI6NDEwMjQ0NDgwMCwiaWF0IjoieiJ9." +
		"K-f-lXeCYiUOcJwOZH63Hhne1ufshzCdw9in9cL-UVk", shard.User{Name: "judy", Roles: []string{"readers", "writers"}}, 0, ""},
	{"another algorithm of the same kind", "eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzUxMiJ9." +
		"eyJzdWIiOiJqdWR5IiwiZXhwIjo0MTAyNDQ0ODAwLCJfY291Y2hkYi5yb2xlcyI6WyJyZWFkZXJzIiwid3JpdGVycyJdfQ." +
		"vpTzL__6k9Km0EUmpDEpCGf_jMb4XkodW4roh0Cti45Mn0FOJLxgYWf-m8bdGSGKYP2UbhTZb50N5RrzgeRShw", shard.User{Name: "judy", Roles: []string{"readers", "writers"}}, 0, ""},
	{"and another", "eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzM4NCJ9." +
		"eyJzdWIiOiJqdWR5IiwiZXhwIjo0MTAyNDQ0ODAwLCJfY291Y2hkYi5yb2xlcyI6WyJyZWFkZXJzIiwid3JpdGVycyJdfQ." +
		"FqsbxbE-Y2Wir65UsI3hm7TCEkr3ZX06znPot0Q-Mwb_-UPPmxfhpt6qTC8EGukd", shard.User{Name: "judy", Roles: []string{"readers", "writers"}}, 0, ""},
	{"the role of server administrators", "eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9." +
		"eyJzdWIiOiJyb290IiwiZXhwIjo0MTAyNDQ0ODAwLCJfY291Y2hkYi5yb2xlcyI6WyJfYWRtaW4iXX0." +
		"7pofuS2IszCDfhIBieQ9mXJkVLpUsOokLLyduDiNcBc", shard.User{Name: "root", Roles: []string{"_admin"}}, 0, ""},
	{"expired", "eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9." +
		"eyJzdWIiOiJqdWR5IiwiZXhwIjoxMDAwMDAwMDAwLCJfY291Y2hkYi5yb2xlcyI6WyJyZWFkZXJzIiwid3JpdGVycyJdfQ." +
		"a28sJzneb_Lh-4I04U0DMmTtM-H8evaPgfrarxzchHY", shard.User{}, fault.Unauthorized, "exp not in future"},
	{"without exp", "eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9." +
		"eyJzdWIiOiJqdWR5In0." +
		"O36HQ1NOHc0XbI-WZI9CGP0eDE6kWzwDAQJQ5jb6-bs", shard.User{}, fault.BadRequest, "Missing exp claim"},
	{"without sub", "eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9." +
		"eyJleHAiOjQxMDI0NDQ4MDB9." +
		"8ZnW0iKuo1b-fuzAOqlfwKFElF-TMKW4FH0bPzE7eHQ", shard.User{}, fault.Unauthorized, "Token missing sub claim."},
	{"signed with another key", "eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9." +
		"eyJzdWIiOiJqdWR5IiwiZXhwIjo0MTAyNDQ0ODAwLCJfY291Y2hkYi5yb2xlcyI6WyJyZWFkZXJzIiwid3JpdGVycyJdfQ." +
		"cbb2LvfN5tKh7gshZZ9YPEXZHS6LDOCmRfpPKONo_ec", shard.User{}, fault.BadRequest, "Bad HMAC in authentication token"},
	{"changed after signing", "eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9." +
		"eyJzdWIiOiJyb290IiwiZXhwIjo0MTAyNDQ0ODAwLCJfY291Y2hkYi5yb2xlcyI6WyJyZWFkZXJzIiwid3JpdGVycyJdfQ." +
		"G1eMQqkcjDq8avAyPLNYgl0yf1z_lJAmoo9MGs-G4XI", shard.User{}, fault.BadRequest, "Bad HMAC in authentication token"},
	{"no signature", "eyJ0eXAiOiJKV1QiLCJhbGciOiJub25lIn0." +
		"eyJzdWIiOiJqdWR5IiwiZXhwIjo0MTAyNDQ0ODAwLCJfY291Y2hkYi5yb2xlcyI6WyJyZWFkZXJzIiwid3JpdGVycyJdfQ." +
		"", shard.User{}, fault.BadRequest, "Invalid alg header parameter"},
	{"no algorithm", "eyJ0eXAiOiJKV1QifQ." +
		"eyJzdWIiOiJqdWR5IiwiZXhwIjo0MTAyNDQ0ODAwLCJfY291Y2hkYi5yb2xlcyI6WyJyZWFkZXJzIiwid3JpdGVycyJdfQ." +
		"G1eMQqkcjDq8avAyPLNYgl0yf1z_lJAmoo9MGs-G4XI", shard.User{}, fault.BadRequest, "Missing alg header parameter"},
	{"an unknown algorithm", "eyJ0eXAiOiJKV1QiLCJhbGciOiJQUzI1NiJ9." +
		"eyJzdWIiOiJqdWR5IiwiZXhwIjo0MTAyNDQ0ODAwLCJfY291Y2hkYi5yb2xlcyI6WyJyZWFkZXJzIiwid3JpdGVycyJdfQ." +
		"ZzHAdCHU4fDhTBVJzqLWQG8E1FsPXcBddzZI1NFE4jU", shard.User{}, fault.BadRequest, "Invalid alg header parameter"},
	{"an unknown key", "eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiIsImtpZCI6InVua25vd24ifQ." +
		"eyJzdWIiOiJqdWR5IiwiZXhwIjo0MTAyNDQ0ODAwLCJfY291Y2hkYi5yb2xlcyI6WyJyZWFkZXJzIiwid3JpdGVycyJdfQ." +
		"x1P8i8EkNfEd-HdEF68qaaU1cyXZ7d1J1HJZvgKvWn4", shard.User{}, fault.BadRequest, "Unknown kid"},
	{"two parts", "eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9." +
		"eyJzdWIiOiJqdWR5IiwiZXhwIjo0MTAyNDQ0ODAwLCJfY291Y2hkYi5yb2xlcyI6WyJyZWFkZXJzIiwid3JpdGVycyJdfQ", shard.User{}, fault.BadRequest, "Malformed authentication token"},
	{"no token at all", "nonsense", shard.User{}, fault.BadRequest, "Malformed authentication token"},
	{"parts that are no JSON", "eyJhbGc." +
		"e30." +
		"x", shard.User{}, fault.BadRequest, "Malformed authentication token"},
	{"claims that are no object", "eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9." +
		"WyJqdWR5Il0." +
		"XxlBzOIEhkU1dCbqAxcaQ5cyhtDUomOMNeFe_fPRTS0", shard.User{}, fault.BadRequest, "Not an object"},
}

func jwtConfig(keys map[string]string, more ...string) jwtRule {
	v := config.Values{"jwt_keys": keys, "jwt_auth": {}}
	for i := 0; i+1 < len(more); i += 2 {
		v["jwt_auth"][more[i]] = more[i+1]
	}
	return newJWTRule(&config.FromValues(v).JWT)
}

func sameUser(a, b shard.User) bool {
	return a.Name == b.Name && a.Anonymous == b.Anonymous && strings.Join(a.Roles, "|") == strings.Join(b.Roles, "|")
}

func TestGoldenTokens(t *testing.T) {
	r := jwtConfig(map[string]string{"hmac:_default": goldenKey})
	for _, tt := range goldenTokens {
		t.Run(tt.name, func(t *testing.T) {
			user, err := r.identify(tt.token, time.Now())
			wantFault(t, err, tt.kind, tt.reason)
			if !sameUser(user, tt.user) {
				t.Errorf("user %+v, want %+v", user, tt.user)
			}
		})
	}
}

// sign makes a token with the header and the claims as they are written.
func sign(tb testing.TB, alg, header, claims string, key any) string {
	tb.Helper()
	signed := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
	sig, err := jwt.GetSigningMethod(alg).Sign(signed, key)
	if err != nil {
		tb.Fatal(err)
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(sig)
}

// signDER makes a token with an ECDSA signature as CouchDB's own jwtf does.
func signDER(tb testing.TB, header, claims string, hash crypto.Hash, key *ecdsa.PrivateKey) string {
	tb.Helper()
	signed := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
	h := hash.New()
	h.Write([]byte(signed))
	sig, err := ecdsa.SignASN1(rand.Reader, key, h.Sum(nil))
	if err != nil {
		tb.Fatal(err)
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(sig)
}

func publicPEM(tb testing.TB, key crypto.PublicKey) string {
	tb.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		tb.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	return strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", `\n`)
}

func TestPublicKeys(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]string{
		"rsa:a": publicPEM(t, rsaKey.Public()), "rsa:ec": "", "ec:rsa": publicPEM(t, rsaKey.Public()), "hmac:bad": "%%%", "rsa:bad": "nonsense",
		"hmac:empty": "",
	}
	ecKeys := map[string]*ecdsa.PrivateKey{}
	for alg, curve := range map[string]elliptic.Curve{"ES256": elliptic.P256(), "ES384": elliptic.P384(), "ES512": elliptic.P521()} {
		key, err := ecdsa.GenerateKey(curve, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		ecKeys[alg], keys["ec:"+alg] = key, publicPEM(t, key.Public())
	}
	keys["rsa:ec"] = keys["ec:ES256"]
	r := jwtConfig(keys)
	const claims = `{"sub":"judy","exp":4102444800}`
	header := func(alg, kid string) string { return `{"alg":"` + alg + `","kid":"` + kid + `"}` }
	tests := []struct {
		name, token string
		kind        fault.Kind
		reason      string
	}{
		{"RS256", sign(t, "RS256", header("RS256", "a"), claims, rsaKey), 0, ""},
		{"RS384", sign(t, "RS384", header("RS384", "a"), claims, rsaKey), 0, ""},
		{"RS512", sign(t, "RS512", header("RS512", "a"), claims, rsaKey), 0, ""},
		{"ES256", sign(t, "ES256", header("ES256", "ES256"), claims, ecKeys["ES256"]), 0, ""},
		{"ES384", sign(t, "ES384", header("ES384", "ES384"), claims, ecKeys["ES384"]), 0, ""},
		{"ES512", sign(t, "ES512", header("ES512", "ES512"), claims, ecKeys["ES512"]), 0, ""},
		{"ES256, CouchDB's form", signDER(t, header("ES256", "ES256"), claims, crypto.SHA256, ecKeys["ES256"]), 0, ""},
		{"ES384, CouchDB's form", signDER(t, header("ES384", "ES384"), claims, crypto.SHA384, ecKeys["ES384"]), 0, ""},
		{"ES512, CouchDB's form", signDER(t, header("ES512", "ES512"), claims, crypto.SHA512, ecKeys["ES512"]), 0, ""},
		{"CouchDB's form, another key", signDER(t, header("ES256", "ES256"), claims, crypto.SHA256, ecKeys["ES384"]), fault.BadRequest, "Bad signature in authentication token"},
		{"another algorithm than signed", sign(t, "RS256", header("RS512", "a"), claims, rsaKey), fault.BadRequest, "Bad signature in authentication token"},
		{"a key of another curve", sign(t, "ES256", header("ES256", "ES384"), claims, ecKeys["ES256"]), fault.BadRequest, "Bad signature in authentication token"},
		{"ES384 by a key of P-256, which Erlang takes", signDER(t, header("ES384", "ES256"), claims, crypto.SHA384, ecKeys["ES256"]), fault.BadRequest, "Bad signature in authentication token"},
		{"the public key as a secret", sign(t, "HS256", header("HS256", "a"), claims, []byte(keys["rsa:a"])), fault.BadRequest, "Unknown kid"},
		{"an EC key for RSA", sign(t, "RS256", header("RS256", "ec"), claims, rsaKey), fault.BadRequest, "not an RSA public key"},
		{"an RSA key for EC", sign(t, "ES256", header("ES256", "rsa"), claims, ecKeys["ES256"]), fault.BadRequest, "not an EC public key"},
		{"no base64", sign(t, "HS256", header("HS256", "bad"), claims, []byte("x")), fault.BadRequest, "Not a valid key"},
		{"no PEM", sign(t, "RS256", header("RS256", "bad"), claims, rsaKey), fault.BadRequest, "Not a valid key"},
		{"an empty secret", sign(t, "HS256", header("HS256", "empty"), claims, []byte{}), fault.BadRequest, "Not a valid key"},
		{"PS", sign(t, "PS256", header("PS256", "a"), claims, rsaKey), fault.BadRequest, "Invalid alg header parameter"},
		{"kid is no text", sign(t, "RS256", `{"alg":"RS256","kid":5}`, claims, rsaKey), fault.BadRequest, "Unknown kid"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := r.identify(tt.token, time.Now())
			wantFault(t, err, tt.kind, tt.reason)
		})
	}
}

func TestRequiredClaims(t *testing.T) {
	key := []byte("golden key one")
	now := time.Unix(1_700_000_000, 0)
	const head = `{"typ":"JWT","alg":"HS256"}`
	tests := []struct {
		name, required, header, claims string
		kind                           fault.Kind
		reason                         string
	}{
		{"issuer", `{iss, "me"}`, head, `{"sub":"j","iss":"me"}`, 0, ""},
		{"no issuer", `{iss, "me"}`, head, `{"sub":"j"}`, fault.BadRequest, "Missing iss claim"},
		{"another issuer", `{iss, "me"}`, head, `{"sub":"j","iss":"you"}`, fault.BadRequest, "Invalid iss claim"},
		{"one of two issuers", `{iss, "me"}, {iss, "you"}`, head, `{"sub":"j","iss":"you"}`, 0, ""},
		{"iat", "iat", head, `{"sub":"j","iat":1700000000}`, 0, ""},
		{"no iat", "iat", head, `{"sub":"j"}`, fault.BadRequest, "Missing iat claim"},
		{"iat is no integer", "iat", head, `{"sub":"j","iat":"1"}`, fault.BadRequest, "Invalid iat claim"},
		{"iat to come", "iat", head, `{"sub":"j","iat":1700000001}`, 0, ""},
		{"iat is a fraction", "iat", head, `{"sub":"j","iat":1.0}`, fault.BadRequest, "Invalid iat claim"},
		{"iat is null", "iat", head, `{"sub":"j","iat":null}`, fault.BadRequest, "Invalid iat claim"},
		{"nbf", "nbf", head, `{"sub":"j","nbf":1700000000.0}`, 0, ""},
		{"no nbf", "nbf", head, `{"sub":"j"}`, fault.BadRequest, "Missing nbf claim"},
		{"nbf to come", "nbf", head, `{"sub":"j","nbf":1700000001}`, fault.Unauthorized, "nbf not in past"},
		{"nbf is no number", "nbf", head, `{"sub":"j","nbf":"1"}`, fault.Unauthorized, "nbf not in past"},
		{"nbf is null", "nbf", head, `{"sub":"j","nbf":null}`, fault.Unauthorized, "nbf not in past"},
		{"any issuer, which is none", "iss", head, `{"sub":"j","iss":"me"}`, fault.BadRequest, "Invalid iss claim"},
		{"no issuer at all", "iss", head, `{"sub":"j"}`, fault.BadRequest, "Missing iss claim"},
		{"an issuer that is no text", `{iss, "5"}`, head, `{"sub":"j","iss":5}`, fault.BadRequest, "Invalid iss claim"},
		{"exp is not required, but it is there", "iat", head, `{"sub":"j","iat":1,"exp":1700000000}`, fault.Unauthorized, "exp not in future"},
		{"nothing is required", "", head, `{"sub":"j"}`, 0, ""},
		{"exp is no number", "exp", head, `{"sub":"j","exp":"never"}`, 0, ""},
		{"exp is the text of a number", "exp", head, `{"sub":"j","exp":"1"}`, 0, ""},
		{"exp is null", "exp", head, `{"sub":"j","exp":null}`, 0, ""},
		{"exp is less than a double holds", "exp", head, `{"sub":"j","exp":-1e400}`, fault.BadRequest, "Malformed authentication token"},
		{"exp is a fraction of now", "exp", head, `{"sub":"j","exp":1700000000.5}`, 0, ""},
		{"a pair that is not closed counts as a word", `{iss`, head, `{"sub":"j","iss":"me"}`, fault.BadRequest, "Invalid iss claim"},
		{"words without commas", `exp nbf`, head, `{"sub":"j","exp":1700000001}`, fault.BadRequest, "Missing nbf claim"},
		{"no word", `123, {}`, head, `{"sub":"j"}`, fault.Misconfigured, "JWT is not configured correctly"},
		{"capitals", `EXP`, head, `{"sub":"j"}`, fault.Misconfigured, "JWT is not configured correctly"},
		{"typ", "typ", head, `{"sub":"j"}`, 0, ""},
		{"no typ", "typ", `{"alg":"HS256"}`, `{"sub":"j"}`, fault.BadRequest, "Missing typ header parameter"},
		{"another typ", "typ", `{"alg":"HS256","typ":"X"}`, `{"sub":"j"}`, fault.BadRequest, "Invalid typ header parameter"},
		{"no kid", "kid", head, `{"sub":"j"}`, fault.BadRequest, "Missing kid claim"},
		{"audience", `{aud, "db"}`, head, `{"sub":"j","aud":["x","db"]}`, 0, ""},
		{"another audience", `{aud, "db"}`, head, `{"sub":"j","aud":["x"]}`, fault.BadRequest, "Invalid aud claim"},
		{"iss is checked before exp", `exp, {iss, "me"}`, head, `{"exp":1}`, fault.BadRequest, "Missing iss claim"},
		{"claims are checked before the key", "exp", `{"alg":"HS256","kid":"unknown"}`, `{"exp":1}`, fault.Unauthorized, "exp not in future"},
		{"sub is no text", "typ", head, `{"sub":5}`, fault.Unauthorized, "Token missing sub claim."},
		{"sub is empty", "typ", head, `{"sub":""}`, fault.Unauthorized, "Token missing sub claim."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := jwtConfig(map[string]string{"hmac:_default": goldenKey}, "required_claims", tt.required)
			_, err := r.identify(sign(t, "HS256", tt.header, tt.claims, key), now)
			wantFault(t, err, tt.kind, tt.reason)
		})
	}
}

func TestTokenRoles(t *testing.T) {
	key := []byte("golden key one")
	tests := []struct {
		name, setting, value, claims string
		want                         []string
	}{
		{"by default", "", "", `{"_couchdb.roles":["a","b"]}`, []string{"a", "b"}},
		{"another name", "roles_claim_name", "groups", `{"groups":["a"],"_couchdb.roles":["x"]}`, []string{"a"}},
		{"a path", "roles_claim_path", "access.db.roles", `{"access":{"db":{"roles":["a"]}}}`, []string{"a"}},
		{"a path with dots in names", "roles_claim_path", `a\.b.c`, `{"a.b":{"c":"x, y"}}`, []string{"x", "y"}},
		{"a path that ends early", "roles_claim_path", "a.b", `{"a":["x"]}`, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := jwtConfig(map[string]string{"hmac:_default": goldenKey}, "required_claims", "typ")
			if tt.setting != "" {
				r = jwtConfig(map[string]string{"hmac:_default": goldenKey}, "required_claims", "typ", tt.setting, tt.value)
			}
			claims := `{"sub":"j",` + tt.claims[1:]
			user, err := r.identify(sign(t, "HS256", `{"typ":"JWT","alg":"HS256"}`, claims, key), time.Now())
			if err != nil || strings.Join(user.Roles, "|") != strings.Join(tt.want, "|") || user.Roles == nil {
				t.Errorf("roles %#v, %v, want %v", user.Roles, err, tt.want)
			}
		})
	}
}

// Roles that are no texts make a token malformed.
func TestTokenRolesRefused(t *testing.T) {
	r := jwtConfig(map[string]string{"hmac:_default": goldenKey}, "required_claims", "")
	for _, roles := range []string{`["a",5]`, `[null]`, `[["a"]]`, `{"a":1}`, `null`, `5`, `true`} {
		token := sign(t, "HS256", `{"alg":"HS256"}`, `{"sub":"j","_couchdb.roles":`+roles+`}`, []byte("golden key one"))
		_, err := r.identify(token, time.Now())
		wantFault(t, err, fault.BadRequest, "Malformed authentication token")
	}
}

func FuzzToken(f *testing.F) {
	for _, tt := range goldenTokens {
		f.Add(tt.token)
	}
	f.Add(sign(f, "HS256", `{"alg":"HS256"}`, `{"sub":"a","exp":1e999}`, []byte("golden key one")))
	r := jwtConfig(map[string]string{"hmac:_default": goldenKey}, "roles_claim_path", "a.b")
	signer := hmacOf(goldenKey)
	f.Fuzz(func(t *testing.T, token string) {
		user, err := r.identify(token, time.Unix(1_700_000_000, 0))
		if err != nil {
			if k := fault.KindOf(err); k != fault.BadRequest && k != fault.Unauthorized {
				t.Fatalf("a refusal of kind %d: %v", k, err)
			}
			return
		}
		if user.Name == "" || user.Anonymous {
			t.Fatalf("a token for nobody was accepted: %+v", user)
		}
		dot := strings.LastIndexByte(token, '.')
		if !signer(token[:dot], token[dot+1:]) {
			t.Fatal("a token was accepted that the key did not sign")
		}
	})
}

// hmacOf returns a check of HMAC signatures that shares no code with what is
// tested.
func hmacOf(key string) func(signed, signature string) bool {
	secret, _ := base64.StdEncoding.DecodeString(key)
	return func(signed, signature string) bool {
		sig, err := base64.RawURLEncoding.DecodeString(signature)
		if err != nil {
			return false
		}
		for _, alg := range []string{"HS256", "HS384", "HS512"} {
			if jwt.GetSigningMethod(alg).Verify(signed, sig, secret) == nil {
				return true
			}
		}
		return false
	}
}
