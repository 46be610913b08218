package auth

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"divan/cluster/config"
	"divan/storage/doc"
	"divan/storage/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memStore is a UserStore in memory.
type memStore struct {
	mu       sync.Mutex
	docs     map[string]UserDoc
	gets     int
	err      error          // of Get
	hold     chan struct{}  // Get waits for it when set
	watchers []func(string) // of Watch
	puts     chan UserDoc   // gets what Put has stored, when there is space
	deaf     bool           // Watch fails
}

func newMemStore() *memStore {
	return &memStore{docs: map[string]UserDoc{}, puts: make(chan UserDoc, 16)}
}

func (s *memStore) Get(ctx context.Context, db, name string) (UserDoc, error) {
	s.mu.Lock()
	s.gets++
	u, ok := s.docs[db+"/"+name]
	err, hold := s.err, s.hold
	s.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return UserDoc{}, ctx.Err()
		}
	}
	if err != nil {
		return UserDoc{}, err
	}
	if !ok {
		return UserDoc{}, fault.New(fault.NotFound, "missing")
	}
	return u, nil
}

func (s *memStore) Put(_ context.Context, db string, u UserDoc) error {
	s.mu.Lock()
	if s.docs[db+"/"+u.Name].Rev != u.Rev {
		s.mu.Unlock()
		return fault.New(fault.Conflict, "Document update conflict.")
	}
	s.mu.Unlock()
	s.set(db, u.Name, string(u.Body))
	select {
	case s.puts <- u:
	default:
	}
	return nil
}

func (s *memStore) Watch(ctx context.Context, _ string, ready func(), changed func(string)) error {
	s.mu.Lock()
	if s.deaf {
		s.mu.Unlock()
		return fault.New(fault.NotFound, "Database does not exist.")
	}
	s.watchers = append(s.watchers, changed)
	s.mu.Unlock()
	ready()
	<-ctx.Done()
	return nil
}

// set stores a body as the next revision and tells the watchers.
func (s *memStore) set(db, name, body string) {
	s.mu.Lock()
	u := s.docs[db+"/"+name]
	u.Name, u.Body = name, []byte(body)
	u.Rev = doc.Rev{Pos: u.Rev.Pos + 1, ID: "0123456789abcdef"}
	s.docs[db+"/"+name] = u
	watchers := append([]func(string){}, s.watchers...)
	s.mu.Unlock()
	for _, changed := range watchers {
		changed(name)
	}
}

func (s *memStore) reads() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gets
}

// testValues are settings for tests: cheap hashes, and a secret.
func testValues(more ...string) config.Values {
	v := config.Values{
		"chttpd_auth": {"iterations": "10", "secret": "s3cret"},
		"admins":      {"adm": mustHashAdmin("pass", 10)},
	}
	for i := 0; i+2 < len(more); i += 3 {
		if v[more[i]] == nil {
			v[more[i]] = map[string]string{}
		}
		v[more[i]][more[i+1]] = more[i+2]
	}
	return v
}

func mustHashAdmin(password string, iterations int) string {
	text, err := HashAdmin(context.Background(), password, namePBKDF2, "sha256", iterations)
	if err != nil {
		panic(err)
	}
	return text
}

// newTest returns an Authenticator over an empty store. more are triples of
// section, key and value.
func newTest(tb testing.TB, more ...string) (*Authenticator, *memStore, *config.Holder) {
	tb.Helper()
	h, err := config.New(config.Options{Flags: testValues(more...)})
	if err != nil {
		tb.Fatal(err)
	}
	store := newMemStore()
	return New(Options{Config: h, Users: store, Logger: zap.NewNop()}), store, h
}

// addUser stores a user document as a client's write would.
func addUser(tb testing.TB, a *Authenticator, name, password, members string) {
	tb.Helper()
	body := fmt.Sprintf(`{"name":%q,"type":"user","roles":["readers"],"password":%q%s}`, name, password, members)
	out, err := a.PrepareUser(tb.Context(), UserWrite{ID: UserPrefix + name, Body: []byte(body), Admin: true})
	if err != nil {
		tb.Fatal(err)
	}
	a.users.store.(*memStore).set("_users", name, string(out))
	a.Invalidate(name)
}

// pass lets the virtual time of a bubble pass.
func pass(d time.Duration) { <-time.After(d) }

func request(headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/db", nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

func basic(name, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(name+":"+password))
}

// wantFault fails the test unless err has that kind and text; kind 0 is
// success.
func wantFault(tb testing.TB, err error, kind fault.Kind, reason string) {
	tb.Helper()
	if fault.KindOf(err) != kind || fault.Reason(err) != reason {
		tb.Errorf("got %v (kind %d), want kind %d %q", err, fault.KindOf(err), kind, reason)
	}
}

// start runs a until stop is called.
func start(t *testing.T, a *Authenticator) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- a.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
