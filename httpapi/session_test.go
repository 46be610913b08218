package httpapi

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"divan/cluster/config"
	"divan/httpapi/apitest"
	"divan/httpapi/auth"
)

// sessionAPI has one user, the administrator adm with password pass.
func sessionAPI(t *testing.T, more config.Values) *API {
	t.Helper()
	adm, err := auth.HashAdmin(context.Background(), "pass", "pbkdf2", "sha256", 1)
	if err != nil {
		t.Fatal(err)
	}
	values := config.Values{"admins": {"adm": adm}, "chttpd_auth": {"secret": "s3cret"}, "chttpd_auth_lockout": {"threshold": "100"}}
	for section, keys := range more {
		if values[section] == nil {
			values[section] = map[string]string{}
		}
		for k, v := range keys {
			values[section][k] = v
		}
	}
	return frontAPI(t, values)
}

const (
	asJSON    = "Content-Type: application/json"
	asForm    = "Content-Type: application/x-www-form-urlencoded"
	asAdmin   = "Authorization: Basic YWRtOnBhc3M="
	goodLogin = `{"name":"adm","password":"pass"}`
	wrongText = `{"error":"unauthorized","reason":"Name or password is incorrect."}`
	loggedIn  = `{"ok":true,"name":"adm","roles":["_admin"]}`
)

// TestSession holds golden auth/01 as far as one user goes.
func TestSession(t *testing.T) {
	const cleared, fresh = `AuthSession=; Version=1; `, `AuthSession=[A-Za-z0-9_-]+; Version=1; `
	tests := []struct {
		name, method, target, body string
		headers                    []string
		status                     int
		want                       string
		cookie, location           string
	}{
		{
			"nobody", "GET", "/_session", "", nil, 200,
			`{"ok":true,"userCtx":{"name":null,"roles":[]},"info":{"authentication_handlers":["cookie","default"]}}`, "", "",
		},
		{
			"by basic authentication", "GET", "/_session", "",
			[]string{asAdmin},
			200,
			`{"ok":true,"userCtx":{"name":"adm","roles":["_admin"]},"info":{"authentication_handlers":["cookie","default"],"authenticated":"default"}}`, "", "",
		},
		{"a wrong password by basic authentication", "GET", "/_session", "", []string{"Authorization: Basic YWRtOnBlYXI="}, 401, wrongText, "", ""},
		{"nobody where a name is demanded", "GET", "/_session?basic=true", "", nil, 401, `{"error":"unauthorized","reason":"Please login."}`, "", ""},
		{"log in by JSON", "POST", "/_session", goodLogin, []string{asJSON}, 200, loggedIn, fresh, ""},
		{"log in by form", "POST", "/_session", "name=adm&password=p%61ss", []string{asForm + "; charset=utf-8"}, 200, loggedIn, fresh, ""},
		{"username is another word for name", "POST", "/_session", `{"username":"adm","password":"pass"}`, []string{asJSON}, 200, loggedIn, fresh, ""},
		{"both, the same", "POST", "/_session", `{"name":"adm","username":"adm","password":"pass"}`, []string{asJSON}, 200, loggedIn, fresh, ""},
		{
			"both, different", "POST", "/_session", `{"name":"adm","username":"bob","password":"pass"}`,
			[]string{asJSON},
			400,
			`{"error":"bad_request","reason":"request body contains different usernames"}`, "", "",
		},
		{"neither", "POST", "/_session", `{"password":"pass"}`, []string{asJSON}, 400, `{"error":"bad_request","reason":"request body must contain a username"}`, "", ""},
		{
			"a name that is no text", "POST", "/_session", `{"name":5,"password":"pass"}`,
			[]string{asJSON},
			400,
			`{"error":"bad_request","reason":"request body must contain a username"}`, "", "",
		},
		{"a wrong password clears the cookie", "POST", "/_session", `{"name":"adm","password":"pear"}`, []string{asJSON}, 401, wrongText, cleared, ""},
		{"an unknown user", "POST", "/_session", `{"name":"nobody","password":"pear"}`, []string{asJSON}, 401, wrongText, cleared, ""},
		{"no password", "POST", "/_session", "name=adm", []string{asForm}, 401, wrongText, cleared, ""},
		{"a password that is no text", "POST", "/_session", `{"name":"adm","password":["pass"]}`, []string{asJSON}, 401, wrongText, cleared, ""},
		{
			"another content type", "POST", "/_session", "name=adm&password=pass",
			[]string{"Content-Type: text/plain"},
			415,
			`{"error":"bad_content_type","reason":"Content-Type must be 'application/x-www-form-urlencoded' or 'application/json'"}`, "", "",
		},
		{"a body that is no JSON", "POST", "/_session", `{"name": `, []string{asJSON}, 400, `{"error":"bad_request","reason":"invalid UTF-8 JSON"}`, "", ""},
		{"a body that is no object", "POST", "/_session", `["adm"]`, []string{asJSON}, 400, `{"error":"bad_request","reason":"Request body must be a JSON object"}`, "", ""},
		{"an escape that is none", "POST", "/_session", "name=%zz", []string{asForm}, 401, wrongText, cleared, ""},
		{"where to go next", "POST", "/_session?next=/_up", goodLogin, []string{asJSON}, 302, loggedIn, fresh, "http://example.com/_up"},
		{
			"next on another server", "POST", "/_session?next=http://x/", goodLogin,
			[]string{asJSON},
			400,
			`{"error":"bad_request","reason":"path must begin with a slash."}`, "", "",
		},
		{
			"where to go when it fails", "POST", "/_session?fail=/_utils/login.html", `{"name":"adm","password":"pear"}`,
			[]string{asJSON},
			302, wrongText, cleared,
			"http://example.com/_utils/login.html",
		},
		{"log out", "DELETE", "/_session", "", nil, 200, `{"ok":true}`, cleared, ""},
		{"log out and go on", "DELETE", "/_session?next=/_up", "", nil, 302, `{"ok":true}`, cleared, "http://example.com/_up"},
		{
			"a broken cookie", "POST", "/_session", goodLogin,
			[]string{asJSON, "Cookie: AuthSession=broken!"},
			400,
			`{"error":"bad_request","reason":"Malformed AuthSession cookie. Please clear your cookies."}`, "", "",
		},
		{"put", "PUT", "/_session", "{}", nil, 405, `{"error":"method_not_allowed","reason":"Only GET,HEAD,POST,DELETE allowed"}`, "", ""},
	}
	a := sessionAPI(t, nil)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := apitest.Ask(t, a, tt.method+" "+tt.target, tt.body, tt.headers...)
			if got := strings.TrimSpace(w.Body.String()); w.Code != tt.status || got != tt.want {
				t.Errorf("%d %s\nwant %d %s", w.Code, got, tt.status, tt.want)
			}
			cookie := w.Header().Get("Set-Cookie")
			if (tt.cookie == "") != (cookie == "") || !regexp.MustCompile("^"+tt.cookie).MatchString(cookie) {
				t.Errorf("cookie %q, want %q", cookie, tt.cookie)
			}
			if got := w.Header().Get("Location"); got != tt.location {
				t.Errorf("location %q, want %q", got, tt.location)
			}
		})
	}
}

func TestSessionCookieWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := sessionAPI(t, nil)
		pair, _, _ := strings.Cut(apitest.Ask(t, a, "POST /_session", goodLogin, asJSON).Header().Get("Set-Cookie"), ";")
		cookie := "Cookie: theme=dark; " + pair
		w := apitest.Ask(t, a, "GET /_session?basic=true", "", cookie)
		if !strings.Contains(w.Body.String(), `"authenticated":"cookie"`) || w.Header().Get("Set-Cookie") != "" {
			t.Errorf("%s, %v", w.Body, w.Header())
		}
		<-time.After(2 * time.Minute)
		for _, target := range []string{"/_session", "/_up"} {
			if w := apitest.Ask(t, a, "GET "+target, "", cookie); !strings.HasPrefix(w.Header().Get("Set-Cookie"), "AuthSession=") {
				t.Errorf("%s does not prolong the session: %v", target, w.Header())
			}
		}
		w = apitest.Ask(t, a, "DELETE /_session", "", cookie)
		if got := w.Header().Values("Set-Cookie"); len(got) != 1 || !strings.HasPrefix(got[0], "AuthSession=;") {
			t.Errorf("log out sets %q", got)
		}
	})
}

// TestSessionWhereANameIsDemanded holds golden auth/14.
func TestSessionWhereANameIsDemanded(t *testing.T) {
	a := sessionAPI(t, config.Values{"chttpd": {"require_valid_user": "true"}})
	for _, tt := range []struct {
		method, body string
		status       int
		challenge    string
	}{
		{"GET", "", http.StatusUnauthorized, `Basic realm="server"`},
		{"DELETE", "", http.StatusUnauthorized, `Basic realm="server"`},
		{"POST", goodLogin, http.StatusOK, ""},
		{"POST", `{"name":"adm","password":"wrong"}`, http.StatusUnauthorized, ""},
	} {
		w := apitest.Ask(t, a, tt.method+" /_session", tt.body, asJSON)
		challenge := ""
		for name, values := range w.Header() { // in any spelling of the name
			if strings.EqualFold(name, "WWW-Authenticate") {
				challenge = strings.Join(values, "|")
			}
		}
		if w.Code != tt.status || challenge != tt.challenge {
			t.Errorf("%s %s: %d, challenge %q", tt.method, tt.body, w.Code, challenge)
		}
	}
}

func TestSessionNamesAConfiguredDatabase(t *testing.T) {
	a := sessionAPI(t, config.Values{"chttpd_auth": {"authentication_db": "people"}})
	if w := apitest.Ask(t, a, "GET /_session", ""); !strings.Contains(w.Body.String(), `"authentication_db":"people"`) {
		t.Error(w.Body)
	}
}

func TestSessionLockout(t *testing.T) {
	a := sessionAPI(t, config.Values{"chttpd_auth_lockout": {"threshold": "1"}})
	apitest.Ask(t, a, "POST /_session", `{"name":"adm","password":"wrong"}`, asJSON)
	w := apitest.Ask(t, a, "POST /_session", goodLogin, asJSON)
	want := `{"error":"forbidden","reason":"Account is temporarily locked due to multiple authentication failures"}`
	if got := strings.TrimSpace(w.Body.String()); w.Code != http.StatusForbidden || got != want {
		t.Errorf("%d %s", w.Code, got)
	}
}

func TestSessionBodyIsBounded(t *testing.T) {
	a := sessionAPI(t, nil)
	w := apitest.Ask(t, a, "POST /_session", `{"name":"`+strings.Repeat("x", 64<<10)+`"}`, asJSON)
	if w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestSessionFormWithoutEscapes(t *testing.T) {
	a := sessionAPI(t, nil)
	const form = "Content-Type: application/x-www-form-urlencoded"
	for body, status := range map[string]int{
		"name=adm&password=pass&note=100%":  http.StatusOK,
		"name=adm;password=pass":            http.StatusOK,
		"name=adm&password=pass&password=%": http.StatusOK, // the first one counts
		"name=adm&password=%&password=pass": http.StatusUnauthorized,
		"name=a%64m&password=%70ass":        http.StatusOK,
		"username=adm%&password=pass;x":     http.StatusUnauthorized,
		"user=adm&password=pass%":           http.StatusBadRequest, // no name
	} {
		if w := apitest.Ask(t, a, "POST /_session", body, form); w.Code != status {
			t.Errorf("%q: %d %s", body, w.Code, w.Body)
		}
	}
}

// FuzzParseForm takes any input; a form that is escaped as it should be comes back as it
// was.
