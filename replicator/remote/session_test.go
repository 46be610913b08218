package remote

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"divan/replicator/endpoint"
	"divan/replicator/spec"
	"divan/storage/fault"
	"divan/storage/pause"
)

// accounts is a server with sessions, one of which is valid at a time.
type accounts struct {
	status int    // of /_session; 0: sessions work
	basic  string // password that Basic takes; empty: none
	valid  int    // number of the session that is taken
	logins int
	rotate bool // each answer brings another cookie
}

func (a *accounts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	cookie := func() {
		a.valid++
		http.SetCookie(w, &http.Cookie{Name: "AuthSession", Value: fmt.Sprint("s", a.valid), Path: "/", HttpOnly: true})
	}
	if r.URL.Path == "/_session" {
		a.logins++
		switch {
		case a.status != 0:
			answerWith(w, a.status, `{"error":"no","reason":"not that way"}`)
		case r.PostFormValue("name") != "j&n" || r.PostFormValue("password") != "p=s+ s":
			answerWith(w, 401, `{"error":"unauthorized","reason":"Name or password is incorrect."}`)
		default:
			cookie()
			answerWith(w, 200, `{"ok":true}`)
		}
		return
	}
	_, password, _ := r.BasicAuth()
	c, err := r.Cookie("AuthSession")
	switch {
	case err == nil && c.Value == fmt.Sprint("s", a.valid):
		if a.rotate {
			cookie()
		}
		answerWith(w, 200, infoText)
	case err != nil && a.basic != "" && password == a.basic:
		answerWith(w, 200, infoText)
	default:
		answerWith(w, 401, `{"error":"unauthorized","reason":"You are not authorized to access this db."}`)
	}
}

func TestSession(t *testing.T) {
	a := &accounts{basic: "none"}
	with(t, a.ServeHTTP, func(t *testing.T, p *peer) {
		t.Helper()
		d := p.open(spec.Address{Username: "j&n", Password: "p=s+ s"})
		info := func(logins int) {
			t.Helper()
			if _, err := d.Info(t.Context()); err != nil || a.logins != logins {
				t.Errorf("%d logins, want %d: %v", a.logins, logins, err)
			}
		}
		info(1)
		info(1)
		a.valid++ // the server forgets the session
		info(2)
		_ = pause.For(t.Context(), sessionRefresh)
		info(3)
		again, err := New(Options{
			Network: d.client.net, Address: spec.Address{URL: "http://" + serverIP + ":5984/other/", Username: "j&n", Password: "p=s+ s"},
			Options: spec.Options{ConnectionTimeout: time.Second},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := again.Info(t.Context()); err != nil || a.logins != 3 {
			t.Errorf("another database: %d logins, %v", a.logins, err)
		}
		if err := again.Close(); err != nil || len(d.client.net.mu.sessions) != 1 {
			t.Error("the session of two databases ends with the first")
		}
		a.rotate = true
		_ = pause.For(t.Context(), sessionRefresh-time.Second)
		info(3)
		_ = pause.For(t.Context(), sessionRefresh-time.Second)
		info(3)
	})
}

// Servers without sessions, or that refuse one, are asked with the password.
func TestSessionFallback(t *testing.T) {
	for _, status := range []int{200, 301, 400, 401, 403, 404, 405, 500, 501} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			a := &accounts{status: status, basic: "p=s+ s"}
			with(t, a.ServeHTTP, func(t *testing.T, p *peer) {
				t.Helper()
				d := p.open(spec.Address{Username: "j&n", Password: "p=s+ s"})
				for range 3 {
					if _, err := d.Info(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if a.logins > 1 && status != 500 {
					t.Errorf("%d logins", a.logins)
				}
			})
		})
	}
}

func TestWrongAccount(t *testing.T) {
	for _, status := range []int{0, 404} {
		a := &accounts{status: status, basic: "other"}
		with(t, a.ServeHTTP, func(t *testing.T, p *peer) {
			t.Helper()
			d := p.open(spec.Address{Username: "j&n", Password: "wrong"})
			_, err := d.Info(t.Context())
			want := "unauthorized to access or create database " + peerURL
			if status == 0 {
				want = "session of j&n at http://" + serverIP + ":5984/_session: Name or password is incorrect."
			}
			if !fault.Is(err, fault.Unauthorized) || fault.Reason(err) != want || strings.Contains(fmt.Sprint(err), "wrong") {
				t.Errorf("%v, want %s", err, want)
			}
			if err := d.Create(t.Context(), endpoint.CreateOptions{}); fault.Reason(err) != want {
				t.Errorf("create: %v", err)
			}
			if got := p.requests(); !slices.Contains(got, "PUT /db/") {
				t.Errorf("%v", got)
			}
		})
	}
}

// Headers are sent as given, and without an account there is no session.
func TestHeaders(t *testing.T) {
	with(t, func(w http.ResponseWriter, r *http.Request) {
		answerWith(w, 200, fmt.Sprintf(`{"db_name":%q}`, r.Header.Get("Authorization")+r.Header.Get("X-A")+r.Header.Get("User-Agent")))
	}, func(t *testing.T, p *peer) {
		t.Helper()
		d := p.open(spec.Address{Headers: [][2]string{{"authorization", "Bearer x"}, {"x-a", "1"}}})
		if info, err := d.Info(t.Context()); err != nil || info.Name != "Bearer x1test" {
			t.Errorf("%+v %v", info, err)
		}
		if got := p.requests(); !slices.Equal(got, []string{"GET /db/"}) {
			t.Error(got)
		}
	})
}
