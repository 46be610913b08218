package auth

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"divan/storage/fault"
)

func TestParseBasic(t *testing.T) {
	tests := []struct {
		header, name, password string
		ok                     bool
		reason                 string
	}{
		{"Basic YWRtOnBhc3M=", "adm", "pass", true, ""},
		{"basic  YWRtOnBhc3M= ", "adm", "pass", true, ""},
		{basic("bob", "päß:wörd"), "bob", "päß:wörd", true, ""},
		{basic("bob", ""), "bob", "", true, ""},
		{basic("", ""), "", "", true, ""},
		{basic("_", "_"), "", "", false, ""},
		{basic("_", "x"), "_", "x", true, ""},
		{"Basic " + base64.StdEncoding.EncodeToString([]byte("no colon")), "", "", false, ""},
		{"Basic YWRtOnBhc3M", "", "", false, "Authorization header has invalid base64 value"},
		{"Basic %%%", "", "", false, "Authorization header has invalid base64 value"},
		{"Basic ", "", "", false, ""},
		{"Basic", "", "", false, ""},
		{"Bearer abc", "", "", false, ""},
		{"", "", "", false, ""},
	}
	for _, tt := range tests {
		name, password, ok, err := parseBasic(tt.header)
		if name != tt.name || password != tt.password || ok != tt.ok {
			t.Errorf("%q: %q %q %v", tt.header, name, password, ok)
		}
		kind := fault.Kind(0)
		if tt.reason != "" {
			kind = fault.BadRequest
		}
		wantFault(t, err, kind, tt.reason)
	}
}

func FuzzBasic(f *testing.F) {
	f.Add("Basic YWRtOnBhc3M=")
	f.Add("basic _")
	f.Add(basic("_", "_"))
	f.Fuzz(func(t *testing.T, header string) {
		name, password, ok, err := parseBasic(header)
		if err != nil {
			wantFault(t, err, fault.BadRequest, "Authorization header has invalid base64 value")
		}
		if ok && (err != nil || strings.Contains(name, ":") || (name == "_" && password == "_")) {
			t.Fatalf("%q: %q %q %v", header, name, password, err)
		}
		if ok {
			if n, p, ok, err := parseBasic(basic(name, password)); n != name || p != password || !ok || err != nil {
				t.Fatalf("round trip of %q: %q %q %v %v", header, n, p, ok, err)
			}
		}
	})
}

func testProxy() proxyRule {
	return proxyRule{username: "X-Auth-CouchDB-UserName", roles: "X-Auth-CouchDB-Roles", token: "X-Auth-CouchDB-Token"}
}

// The tokens are those of golden auth/13.
func TestProxy(t *testing.T) {
	const (
		name, roles, token = "X-Auth-CouchDB-UserName", "X-Auth-CouchDB-Roles", "X-Auth-CouchDB-Token"
		sha256Token        = "1e2275c66cec1e1172c65a28aa2da02bb39a484962c08de600ae2deed399e448"
		sha1Token          = "955ea7b3449b6f58b408112576dea27bc208c091"
	)
	tests := []struct {
		title     string
		useSecret bool
		headers   []string
		want      string // name and roles, empty: anonymous
	}{
		{"a name", false, []string{name, "paula"}, "paula"},
		{"a name and roles", false, []string{name, "paula", roles, "readers, writers,blogger"}, "paula readers writers blogger"},
		{"no name", false, []string{roles, "readers"}, ""},
		{"an empty name", false, []string{name, ""}, ""},
		{"two names", false, []string{name, "adm", name, "paula"}, ""},
		{"two lists of roles", false, []string{name, "paula", roles, "_admin", roles, "readers"}, ""},
		{"SHA-256", true, []string{name, "paula", roles, "readers", token, sha256Token}, "paula readers"},
		{"SHA-1", true, []string{name, "paula", token, sha1Token}, "paula"},
		{"of another name", true, []string{name, "otto", token, sha256Token}, ""},
		{"wrong", true, []string{name, "paula", token, strings.Repeat("0", 64)}, ""},
		{"no hex", true, []string{name, "paula", token, "zz"}, ""},
		{"none", true, []string{name, "paula"}, ""},
		{"two tokens", true, []string{name, "paula", token, sha1Token, token, sha1Token}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.title, func(t *testing.T) {
			p := testProxy()
			p.useSecret = tt.useSecret
			user, ok := p.identify(request(tt.headers...).Header, []string{"sha256", "sha"}, "golden secret")
			got := strings.Join(append([]string{user.Name}, user.Roles...), " ")
			if ok != (tt.want != "") || got != tt.want {
				t.Errorf("got %q, %v", got, ok)
			}
		})
	}
	p := testProxy()
	p.useSecret = true
	if _, ok := p.identify(request(name, "paula", token, sha256Token).Header, []string{"sha256"}, ""); ok {
		t.Error("a token is believed without a secret")
	}
}

func TestRolesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		roles := rapid.SliceOf(rapid.StringMatching(`[a-z_][a-z _]{0,5}[a-z]`)).Draw(t, "roles")
		sep := rapid.SampledFrom([]string{",", ", ", " ,", ",,"}).Draw(t, "separator")
		if got := splitRoles(strings.Join(roles, sep)); strings.Join(got, "|") != strings.Join(roles, "|") {
			t.Fatalf("%q became %q", roles, got)
		}
	})
}

func FuzzProxyRoles(f *testing.F) {
	f.Add("paula", "readers, writers,blogger")
	f.Add("", ",,, ,")
	f.Fuzz(func(t *testing.T, name, roles string) {
		p := testProxy()
		user, ok := p.identify(http.Header{http.CanonicalHeaderKey(p.username): {name}, http.CanonicalHeaderKey(p.roles): {roles}}, nil, "")
		if ok != (name != "") || user.Name != name {
			t.Fatalf("%+v, %v", user, ok)
		}
		for _, role := range user.Roles {
			if role == "" || strings.ContainsRune(role, ',') || strings.TrimSpace(role) != role {
				t.Fatalf("role %q", role)
			}
		}
	})
}

func TestPeer(t *testing.T) {
	const proxies = "10.0.0.0/8, 2001:db8:1::/48,192.0.2.1"
	forwarded := func(values ...string) (headers []string) {
		for _, v := range values {
			headers = append(headers, "X-Forwarded-For", v)
		}
		return headers
	}
	tests := []struct {
		remote, header, proxies string
		headers                 []string
		want                    string
	}{
		{"192.0.2.1:1234", "", "", nil, "192.0.2.1"},
		{"[2001:db8::1]:1234", "", "", nil, "2001:db8::1"},
		{"192.0.2.1:1234", "", "", forwarded("198.51.100.7"), "192.0.2.1"},
		{"192.0.2.1:1234", "X-Forwarded-For", "", forwarded("198.51.100.7"), "198.51.100.7"},
		{"192.0.2.1:1234", "X-Forwarded-For", "", forwarded("10.0.0.1, 198.51.100.7"), "198.51.100.7"},
		{"192.0.2.1:1234", "X-Forwarded-For", "", forwarded("10.0.0.1", "198.51.100.7:55"), "198.51.100.7"},
		{"192.0.2.1:1234", "X-Forwarded-For", "", forwarded("[2001:db8::2]"), "2001:db8::2"},
		{"192.0.2.1:1234", "X-Forwarded-For", "", forwarded("x,"), "192.0.2.1"},
		{"192.0.2.1:1234", "X-Forwarded-For", "", nil, "192.0.2.1"},
		{"@", "", "", nil, "@"},
		{"192.0.2.1:1234", "", proxies, nil, "192.0.2.1"},
		{"192.0.2.1:1234", "", proxies, forwarded("198.51.100.7"), "198.51.100.7"},
		{"192.0.2.2:1234", "", proxies, forwarded("198.51.100.7"), "192.0.2.2"},
		{"192.0.2.1:1234", "", proxies, forwarded("203.0.113.5, 198.51.100.7, 10.1.2.3"), "198.51.100.7"},
		{"192.0.2.1:1234", "", proxies, forwarded("203.0.113.5", "198.51.100.7:80", "10.1.2.3"), "198.51.100.7"},
		{"192.0.2.1:1234", "", proxies, forwarded("10.9.9.9, 10.1.2.3"), "10.9.9.9"},
		{"192.0.2.1:1234", "", proxies, forwarded("198.51.100.7, unknown"), "192.0.2.1"},
		{"192.0.2.1:1234", "", proxies, forwarded("198.51.100.7,"), "192.0.2.1"},
		{"[2001:db8:1::9]:1", "", proxies, forwarded("[2001:db8:2::1]:99"), "2001:db8:2::1"},
		{"[::ffff:10.0.0.1]:1", "", proxies, forwarded("198.51.100.7"), "198.51.100.7"},
		{"192.0.2.1:1234", "X-Real-IP", proxies, []string{"X-Real-IP", "198.51.100.7", "X-Forwarded-For", "203.0.113.5"}, "198.51.100.7"},
		{"192.0.2.2:1234", "X-Real-IP", proxies, []string{"X-Real-IP", "198.51.100.7"}, "192.0.2.2"},
		{"192.0.2.1:1234", "", "nonsense, 300.0.0.1", forwarded("198.51.100.7"), "192.0.2.1"},
	}
	for _, tt := range tests {
		a, _, _ := newTest(t, "chttpd", "peer_header", tt.header, "chttpd", "trusted_proxies", tt.proxies)
		r := request(tt.headers...)
		r.RemoteAddr = tt.remote
		if got := a.Peer(r); got != tt.want {
			t.Errorf("%+v: %q", tt, got)
		}
	}
}

func TestAttemptsOfOneNetwork(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{"192.0.2.1", "192.0.2.1", true},
		{"192.0.2.1", "192.0.2.2", false},
		{"2001:db8::1", "2001:db8::ffff:1", true},
		{"2001:db8::1%eth0", "2001:db8::2", true},
		{"2001:db8::1", "2001:db8:0:1::1", false},
		{"::ffff:192.0.2.1", "::ffff:192.0.2.2", false},
	} {
		if got := newAttempt(tt.a, "n", &passwordHash{}) == newAttempt(tt.b, "n", &passwordHash{}); got != tt.same {
			t.Errorf("%s and %s: %v", tt.a, tt.b, got)
		}
	}
}
