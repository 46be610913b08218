package auth

import (
	"encoding/base64"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"divan/storage/fault"
)

func testCookies() cookieRule {
	return cookieRule{
		secret: "s3cret", algorithms: []string{"sha256", "sha"}, timeout: 10 * time.Minute, persistent: true,
	}
}

// valueOf takes the cookie's value out of a Set-Cookie header.
func valueOf(header string) string {
	pair, _, _ := strings.Cut(header, ";")
	return strings.TrimPrefix(pair, cookieName+"=")
}

func TestSessionRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := testCookies()
		name := strings.ReplaceAll(rapid.String().Draw(t, "name"), ":", "")
		salt := rapid.String().Draw(t, "salt")
		now := time.Unix(rapid.Int64Range(0, 1<<35).Draw(t, "now"), 0)
		s, err := parseSession(valueOf(r.issue(name, salt, now, false)))
		if err != nil || s.name != name || !s.issued.Equal(now) || r.left(s, now) != r.timeout {
			t.Fatalf("%+v, %v", s, err)
		}
		if !r.signedBy(s, salt) {
			t.Fatal("the signature does not verify")
		}
		if r.signedBy(s, salt+"x") {
			t.Fatal("the salt does not count")
		}
		other := r
		other.secret += "x"
		if other.signedBy(s, salt) {
			t.Fatal("the secret does not count")
		}
		s.signed += "0"
		if r.signedBy(s, salt) {
			t.Fatal("another time is believed")
		}
	})
}

func TestSessionsOfEveryAlgorithmCount(t *testing.T) {
	old := testCookies()
	old.algorithms = []string{"sha"}
	now := time.Now()
	s, err := parseSession(valueOf(old.issue("alice", "salt", now, false)))
	if err != nil {
		t.Fatal(err)
	}
	if r := testCookies(); !r.signedBy(s, "salt") {
		t.Error("a cookie signed by the second algorithm is refused")
	}
	only := testCookies()
	only.algorithms = []string{"sha512"}
	if only.signedBy(s, "salt") {
		t.Error("a cookie signed by an algorithm that is not listed is accepted")
	}
	none := testCookies()
	none.secret = ""
	if none.issue("alice", "salt", now, false) != "" || none.signedBy(s, "salt") {
		t.Error("sessions work without a secret")
	}
}

func TestCookieText(t *testing.T) {
	now := time.Unix(0x5F000000, 0)
	r := testCookies()
	tests := []struct {
		name   string
		change func(*cookieRule)
		secure bool
		want   string
	}{
		{"as delivered", func(*cookieRule) {}, false, "; Version=1; Expires=Sat, 04 Jul 2020 04:15:20 GMT; Max-Age=600; Path=/; HttpOnly"},
		{"for this session", func(r *cookieRule) { r.persistent = false }, false, "; Version=1; Path=/; HttpOnly"},
		{
			"with everything", func(r *cookieRule) { r.domain, r.sameSite = "example.com", "Strict" }, true,
			"; Version=1; Expires=Sat, 04 Jul 2020 04:15:20 GMT; Max-Age=600; Secure; Domain=example.com; Path=/; HttpOnly; SameSite=Strict",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rule := r
			tt.change(&rule)
			got := rule.issue("vera", "salt", now, tt.secure)
			if attributes := got[strings.IndexByte(got, ';'):]; attributes != tt.want {
				t.Errorf("attributes %s\nwant       %s", attributes, tt.want)
			}
			if !regexp.MustCompile(`^AuthSession=[A-Za-z0-9_-]+;`).MatchString(got) {
				t.Errorf("value of %s", got)
			}
			if cleared := rule.header("", now, tt.secure); cleared != "AuthSession="+tt.want {
				t.Errorf("cleared: %s", cleared)
			}
		})
	}
	raw, err := base64.RawURLEncoding.DecodeString(valueOf(r.issue("vera", "salt", now, false)))
	if err != nil || !strings.HasPrefix(string(raw), "vera:5F000000:") || len(raw) != len("vera:5F000000:")+32 {
		t.Errorf("value %q, %v", raw, err)
	}
}

func TestMalformedSessions(t *testing.T) {
	encode := base64.RawURLEncoding.EncodeToString
	for value, reason := range map[string]string{
		"broken!":                       "Malformed AuthSession cookie. Please clear your cookies.",
		encode([]byte("vera")):          "Malformed AuthSession cookie. Please clear your cookies.",
		encode([]byte("vera:5F000000")): "Malformed AuthSession cookie. Please clear your cookies.",
	} {
		_, err := parseSession(value)
		wantFault(t, err, fault.BadRequest, reason)
	}
	r := testCookies()
	for _, value := range []string{encode([]byte("vera:no time:x")), encode([]byte("::")), encode([]byte("vera:-1:x"))} {
		s, err := parseSession(value)
		if err != nil || r.left(s, time.Now()) > 0 {
			t.Errorf("%q: %v, left %v", value, err, r.left(s, time.Now()))
		}
	}
}

func TestSessionCookie(t *testing.T) {
	for header, want := range map[string]string{
		"AuthSession=abc":                    "abc",
		"theme=dark; AuthSession=abc; l=en":  "abc",
		"theme=dark;AuthSession=abc":         "abc",
		`AuthSession="abc"`:                  "abc",
		"AuthSession=":                       "",
		"AuthSession":                        "",
		"XAuthSession=abc":                   "",
		"AuthSession=broken!; AuthSession=b": "broken!",
		"":                                   "",
	} {
		if got := sessionCookie(http.Header{"Cookie": {header}}); got != want {
			t.Errorf("%q: %q, want %q", header, got, want)
		}
	}
	if got := sessionCookie(http.Header{"Cookie": {"a=b", "AuthSession=abc"}}); got != "abc" {
		t.Errorf("second line: %q", got)
	}
}

func FuzzSession(f *testing.F) {
	r := testCookies()
	f.Add("AuthSession=" + valueOf(r.issue("vera", "salt", time.Unix(1_700_000_000, 0), false)))
	f.Add("AuthSession=dmVyYTo1RjAwMDAwMDpYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWA")
	f.Add("a=b; AuthSession=broken!; c")
	f.Fuzz(func(t *testing.T, header string) {
		s, err := parseSession(sessionCookie(http.Header{"Cookie": {header}}))
		if err != nil {
			wantFault(t, err, fault.BadRequest, "Malformed AuthSession cookie. Please clear your cookies.")
			return
		}
		if strings.Contains(s.name, ":") || !strings.HasPrefix(s.signed, s.name+":") {
			t.Fatalf("%+v", s)
		}
		if r.signedBy(s, "salt") && s.name != "vera" {
			t.Fatalf("a session was accepted that nobody signed: %q", header)
		}
	})
}
