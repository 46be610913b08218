package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// sessionRefresh is how old a session gets before another one is begun.
const sessionRefresh = 550 * time.Second

// sessionCookie is the cookie that stands for a session.
const sessionCookie = "AuthSession"

// sessionKey names an account of a server.
type sessionKey struct{ root, user, password, proxy string }

// session is an account's session with a server, shared by all databases that
// are opened with that account. A server without sessions, or one that refuses
// one, is asked with the password each time.
type session struct {
	sessionKey
	users int           // databases; guarded by Network.mu
	turn  chan struct{} // holds one token: who has it logs in
	mu    struct {
		sync.Mutex
		basic   bool      // the server has no sessions
		refused string    // why the server refused the last login; empty: it did not
		cookie  string    // of the session; empty: none
		until   time.Time // when another session is begun
	}
}

// openSession returns the session of an account.
func (n *Network) openSession(key sessionKey) *session {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.mu.sessions[key]
	if s == nil {
		s = &session{sessionKey: key, turn: make(chan struct{}, 1)}
		s.turn <- struct{}{}
		n.mu.sessions[key] = s
	}
	s.users++
	return s
}

// closeSession gives a session back.
func (n *Network) closeSession(s *session) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s.users--; s.users == 0 {
		delete(n.mu.sessions, s.sessionKey)
	}
}

// current returns the cookie to use; known is false when the caller has to log in.
func (s *session) current() (cookie string, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.basic {
		return "", true
	}
	return s.mu.cookie, s.mu.cookie != "" && time.Now().Before(s.mu.until)
}

// expire forgets a session that the server does not know any more, and reports
// whether another attempt may help.
func (s *session) expire(cookie string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.cookie == cookie {
		s.mu.cookie = ""
	}
	return cookie != ""
}

// refusal returns why the server refused the account; empty when it did not.
func (s *session) refusal() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.refused
}

// renewed takes the newer cookie that an answer may carry.
func (s *session) renewed(answer *http.Response) {
	if len(answer.Header["Set-Cookie"]) == 0 {
		return
	}
	for _, c := range answer.Cookies() {
		if c.Name == sessionCookie && c.Value != "" {
			s.began(c)
		}
	}
}

// began notes a new cookie.
func (s *session) began(c *http.Cookie) {
	life := sessionRefresh
	if c.MaxAge > 0 {
		life = min(life, time.Duration(c.MaxAge)*time.Second*9/10)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.cookie, s.mu.until, s.mu.refused = c.Value, time.Now().Add(life), ""
}

// login returns the cookie of a session, and begins one where none is; an empty
// one: use the password. send sends a request. An error says that the server
// cannot be reached.
func (s *session) login(ctx context.Context, send func(*http.Request) (*http.Response, error)) (string, error) {
	if cookie, known := s.current(); known {
		return cookie, nil
	}
	select {
	case <-s.turn:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	defer func() { s.turn <- struct{}{} }()
	if cookie, known := s.current(); known {
		return cookie, nil
	}
	form := url.Values{"name": {s.user}, "password": {s.password}}.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.root+"_session", strings.NewReader(form))
	if err != nil {
		return "", fmt.Errorf("log in: %w", err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "application/json")
	answer, err := send(r)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxRefusal))
	if err = errors.Join(err, answer.Body.Close()); err != nil {
		return "", err
	}
	return s.judge(answer, text), nil
}

// judge decides what the answer to a login means.
func (s *session) judge(answer *http.Response, text []byte) string {
	for _, c := range answer.Cookies() {
		if answer.StatusCode == http.StatusOK && c.Name == sessionCookie && c.Value != "" {
			s.began(c)
			return c.Value
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.cookie, s.mu.refused = "", ""
	switch code := answer.StatusCode; {
	case code == http.StatusUnauthorized:
		_, s.mu.refused = errorMembers(text)
		if s.mu.refused == "" {
			s.mu.refused = "Name or password is incorrect."
		}
	case code < http.StatusInternalServerError && code != http.StatusTooManyRequests || code == http.StatusNotImplemented:
		s.mu.basic = true
	}
	return ""
}

// accepted notes that a request was taken; without a cookie, after the server
// had refused a session: it takes only the password.
func (s *session) accepted(cookie string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cookie == "" && s.mu.refused != "" {
		s.mu.basic, s.mu.refused = true, ""
	}
}
