package auth

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"divan/shard"
	"divan/storage/fault"
)

// who authenticates a request with these headers and returns "handler:name
// roles", or "nobody".
func who(tb testing.TB, a *Authenticator, headers ...string) string {
	tb.Helper()
	res, err := a.Authenticate(request(headers...))
	if err != nil {
		return err.Error()
	}
	if res.User.Anonymous {
		return "nobody"
	}
	return strings.TrimSpace(res.Handler + ":" + res.User.Name + " " + strings.Join(res.User.Roles, ","))
}

const refused = "Name or password is incorrect."

func TestBasicAuthentication(t *testing.T) {
	a, store, _ := newTest(t)
	addUser(t, a, store, "alice", "apple", "")
	addUser(t, a, store, "bob", "päß:wörd", "")
	store.set("_users", "plain", `{"name":"plain","type":"user","roles":["old"],"password_scheme":"simple","salt":"0123456789abcdef0123456789abcdef","password_sha":"a46bd4798a459535a54bd684c61f556626357bbb"}`)
	store.set("_users", "hashless", `{"name":"hashless","type":"user","roles":[]}`)
	store.set("_users", "null", `{"name":"null","type":"user","roles":[],"password":null}`)
	for i := range 2 { // the second time from the caches
		for _, tt := range []struct{ header, want string }{
			{"", "nobody"},
			{basic("adm", "pass"), "default:adm _admin"},
			{basic("adm", "word"), refused},
			{basic("alice", "apple"), "default:alice readers"},
			{basic("alice", "pear"), refused},
			{basic("alice", ""), refused},
			{basic("bob", "päß:wörd"), "default:bob readers"},
			{basic("plain", "cherry"), "default:plain old"},
			{basic("hashless", ""), refused},
			{basic("null", "null"), refused},
			{basic("nobody", "pear"), refused},
			{basic("", ""), refused},
			{basic("\xff", "x"), refused},
			{basic("_", "_"), "nobody"},
			{"Basic %", "Authorization header has invalid base64 value"},
			{"Bearer x", "nobody"}, // tokens are opt-in
		} {
			if got := who(t, a, "Authorization", tt.header); got != tt.want {
				t.Errorf("round %d, %s: %s, want %s", i, tt.header, got, tt.want)
			}
		}
	}
}

func TestHandlersAndTheirOrder(t *testing.T) {
	const all = "{chttpd_auth, proxy_authentication_handler}, {chttpd_auth, jwt_authentication_handler}, " +
		"{chttpd_auth, cookie_authentication_handler}, {chttpd_auth, default_authentication_handler}"
	a, store, _ := newTest(t, "chttpd", "authentication_handlers", all, "jwt_keys", "hmac:_default", goldenKey)
	addUser(t, a, store, "alice", "apple", "")
	ses, err := a.Login(t.Context(), Login{Name: "alice", Password: "apple"})
	if err != nil {
		t.Fatal(err)
	}
	cookie, token := "AuthSession="+valueOf(ses.SetCookie), "Bearer "+goldenTokens[0].token
	for _, tt := range []struct {
		headers []string
		want    string
	}{
		{[]string{"X-Auth-CouchDB-UserName", "paula", "Authorization", token, "Cookie", cookie}, "proxy:paula"},
		{[]string{"Authorization", token, "Cookie", cookie}, "jwt:judy readers,writers"},
		{[]string{"Authorization", basic("adm", "pass"), "Cookie", cookie}, "cookie:alice readers"},
		{[]string{"Authorization", basic("adm", "pass"), "Cookie", "AuthSession="}, "default:adm _admin"},
		{[]string{"Authorization", "Bearer nonsense"}, "Malformed token"},
		{[]string{"Cookie", "AuthSession=broken!"}, "Malformed AuthSession cookie. Please clear your cookies."},
	} {
		if got := who(t, a, tt.headers...); got != tt.want {
			t.Errorf("%q: %s, want %s", tt.headers, got, tt.want)
		}
	}
	if got := strings.Join(a.Handlers(), ","); got != "proxy,jwt,cookie,default" {
		t.Errorf("handlers %s", got)
	}
}

func TestSettingsTakeEffectAtOnce(t *testing.T) {
	a, store, h := newTest(t)
	addUser(t, a, store, "alice", "apple", "")
	if got := who(t, a, "X-User", "paula"); got != "nobody" {
		t.Fatal(got)
	}
	h.SetVolatile("chttpd", "authentication_handlers", "{chttpd_auth, proxy_authentication_handler}")
	h.SetVolatile("chttpd_auth", "x_auth_username", "X-User")
	if got := who(t, a, "X-User", "paula"); got != "proxy:paula" {
		t.Error(got)
	}
	h.DropVolatile("chttpd", "authentication_handlers")
	if got := who(t, a, "Authorization", basic("adm", "pass")); got != "default:adm _admin" {
		t.Error(got)
	}
	h.SetVolatile("admins", "adm", mustHashAdmin("other", 10))
	if got := who(t, a, "Authorization", basic("adm", "pass")); got != refused {
		t.Error("the old password of an administrator still counts:", got)
	}
	h.HideVolatile("admins", "adm")
	if got := who(t, a, "Authorization", basic("adm", "other")); got != refused {
		t.Error("a removed administrator still counts:", got)
	}
}

func TestAdministratorsHaveTheRolesOfTheirDocument(t *testing.T) {
	a, store, _ := newTest(t)
	addUser(t, a, store, "adm", "user's", "")
	store.set("_users", "adm", `{"name":"adm","type":"user","roles":["readers","_admin","_metrics","_other"]}`)
	a.Invalidate("adm")
	if got := who(t, a, "Authorization", basic("adm", "pass")); got != "default:adm _admin,readers,_metrics" {
		t.Error(got)
	}
	if got := who(t, a, "Authorization", basic("adm", "user's")); got != refused {
		t.Error("the document's password counts for an administrator:", got)
	}
	store.mu.Lock()
	store.err = fault.New(fault.Unavailable, "no copy")
	store.mu.Unlock()
	a.Invalidate("adm")
	if got := who(t, a, "Authorization", basic("adm", "pass")); got != "default:adm _admin" {
		t.Error("an administrator cannot log in without the database:", got)
	}
	if got := who(t, a, "Authorization", basic("alice", "apple")); got != "no copy" {
		t.Error("a user is told something else than that the database is away:", got)
	}
}

// TestReservedRolesOfDocuments holds I5.
func TestReservedRolesOfDocuments(t *testing.T) {
	a, store, _ := newTest(t)
	addUser(t, a, store, "eve", "elder", "")
	body := strings.Replace(string(store.docs["_users/eve"].Body), `["readers"]`, `["_admin","_metrics","x",5]`, 1)
	store.set("_users", "eve", body)
	a.Invalidate("eve")
	if got := who(t, a, "Authorization", basic("eve", "elder")); got != "default:eve _metrics,x" {
		t.Error(got)
	}
}

func TestSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, store, h := newTest(t)
		addUser(t, a, store, "alice", "apple", "")
		ses, err := a.Login(t.Context(), Login{Name: "alice", Password: "apple"})
		if err != nil || ses.User.Name != "alice" || strings.Join(ses.User.Roles, ",") != "readers" {
			t.Fatal(ses, err)
		}
		cookie := "AuthSession=" + valueOf(ses.SetCookie)
		get := func() Result {
			t.Helper()
			res, err := a.Authenticate(request("Cookie", cookie))
			if err != nil {
				t.Fatal(err)
			}
			return res
		}
		time.Sleep(59 * time.Second)
		if res := get(); res.Handler != "cookie" || res.RefreshCookie != "" {
			t.Errorf("after 59 s: %+v", res)
		}
		time.Sleep(2 * time.Second)
		res := get()
		if res.RefreshCookie == "" || strings.Contains(res.RefreshCookie, "Secure") {
			t.Fatalf("after 61 s: %+v", res)
		}
		time.Sleep(538 * time.Second)
		if res := get(); res.Handler != "cookie" {
			t.Errorf("after 599 s: %+v", res)
		}
		time.Sleep(time.Second)
		if res := get(); !res.User.Anonymous {
			t.Errorf("after 600 s: %+v", res)
		}
		cookie = "AuthSession=" + valueOf(res.RefreshCookie)
		if res := get(); res.User.Name != "alice" {
			t.Errorf("the refreshed session: %+v", res)
		}
		addUser(t, a, store, "alice", "apple", "") // a new salt
		if res := get(); !res.User.Anonymous {
			t.Errorf("a session outlived its password: %+v", res)
		}
		ses, err = a.Login(t.Context(), Login{Name: "alice", Password: "apple", Secure: true})
		if err != nil || !strings.Contains(ses.SetCookie, "; Secure;") {
			t.Fatal(ses, err)
		}
		cookie = "AuthSession=" + valueOf(ses.SetCookie)
		h.SetVolatile("chttpd_auth", "secret", "another")
		if res := get(); !res.User.Anonymous {
			t.Errorf("a session outlived the secret: %+v", res)
		}
		h.SetVolatile("chttpd_auth", "secret", "")
		if _, err := a.Login(t.Context(), Login{Name: "alice", Password: "apple"}); !errors.Is(err, errNoSecret) {
			t.Errorf("a session without secret: %v", err)
		}
	})
}

func TestSecureRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, _ := newTest(t)
		ses, err := a.Login(t.Context(), Login{Name: "adm", Password: "pass"})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		res, err := a.Authenticate(request("Cookie", "AuthSession="+valueOf(ses.SetCookie), "X-Forwarded-Proto", "https"))
		if err != nil || !strings.Contains(res.RefreshCookie, "; Secure;") {
			t.Errorf("%+v, %v", res, err)
		}
	})
}

func TestConflictedUsersCannotLogIn(t *testing.T) {
	const text = "User document conflicts must be resolved before the document is used for authentication purposes."
	a, store, h := newTest(t)
	addUser(t, a, store, "alice", "apple", "")
	ses, err := a.Login(t.Context(), Login{Name: "alice", Password: "apple"})
	if err != nil {
		t.Fatal(err)
	}
	u := store.docs["_users/alice"]
	u.Conflicted = true
	store.docs["_users/alice"] = u
	a.Invalidate("alice")
	if got := who(t, a, "Authorization", basic("alice", "apple")); got != text {
		t.Error(got)
	}
	if got := who(t, a, "Authorization", basic("alice", "pear")); got != refused {
		t.Error("a wrong password learns of the conflict:", got)
	}
	if got := who(t, a, "Cookie", "AuthSession="+valueOf(ses.SetCookie)); got != text {
		t.Error(got)
	}
	h.SetVolatile("chttpd_auth", "allow_conflicted_user_docs", "true")
	if got := who(t, a, "Authorization", basic("alice", "apple")); got != "default:alice readers" {
		t.Error(got)
	}
}

func TestSecondFactor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const key = `{"key":"GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"}`
		a, store, _ := newTest(t)
		addUser(t, a, store, "tom", "thyme", `,"totp":`+key)
		addUser(t, a, store, "tim", "thyme", `,"totp":null`)
		f := parseTOTP([]byte(key))
		login := func(name, password, token string) error {
			_, err := a.Login(t.Context(), Login{Name: name, Password: password, Token: token, Peer: strconv.FormatInt(time.Now().UnixNano(), 10)})
			return err
		}
		now := f.token(f.step(time.Now()))
		if got := who(t, a, "Authorization", basic("tom", "thyme")); got != refused {
			t.Error("Basic without the second factor:", got)
		}
		wantFault(t, login("tom", "thyme", ""), fault.Unauthorized, refused)
		wantFault(t, login("tom", "wrong", now), fault.Unauthorized, refused)
		wantFault(t, login("tim", "thyme", ""), fault.Unauthorized, refused)
		wantFault(t, login("tom", "thyme", now), 0, "")
		wantFault(t, login("tom", "thyme", now), fault.Unauthorized, refused) // used up
		time.Sleep(30 * time.Second)
		wantFault(t, login("tom", "thyme", now), fault.Unauthorized, refused)
		wantFault(t, login("tom", "thyme", f.token(f.step(time.Now()))), 0, "")
	})
}

func TestIterationLimits(t *testing.T) {
	a, store, h := newTest(t)
	addUser(t, a, store, "alice", "apple", "")
	h.SetVolatile("chttpd_auth", "min_iterations", "11")
	if got := who(t, a, "Authorization", basic("alice", "apple")); got != "Iteration count is too low for this server" {
		t.Error(got)
	}
	h.SetVolatile("chttpd_auth", "min_iterations", "1")
	h.SetVolatile("chttpd_auth", "max_iterations", "9")
	_, err := a.Authenticate(request("Authorization", basic("alice", "apple")))
	wantFault(t, err, fault.Forbidden, "Iteration count is too high for this server")
}

func TestLockout(t *testing.T) {
	const locked = "Account is temporarily locked due to multiple authentication failures"
	synctest.Test(t, func(t *testing.T) {
		a, store, h := newTest(t)
		addUser(t, a, store, "alice", "apple", "")
		fail := func(name string, n int) {
			for range n {
				if got := who(t, a, "Authorization", basic(name, "wrong")); got != refused {
					t.Fatalf("%s: %s", name, got)
				}
			}
		}
		for _, name := range []string{"alice", "adm", "nobody"} { // I2: the same for all of them
			fail(name, 5)
			_, err := a.Authenticate(request("Authorization", basic(name, "wrong")))
			wantFault(t, err, fault.Forbidden, locked)
		}
		if got := who(t, a, "Authorization", basic("alice", "apple")); got != locked {
			t.Error("the right password opens a locked account:", got)
		}
		elsewhere := request("Authorization", basic("alice", "apple"))
		elsewhere.RemoteAddr = "198.51.100.7:1"
		if res, err := a.Authenticate(elsewhere); err != nil || res.User.Name != "alice" {
			t.Error("another peer is locked out:", err)
		}
		h.SetVolatile("chttpd_auth_lockout", "mode", "warn")
		if got := who(t, a, "Authorization", basic("alice", "apple")); got != "default:alice readers" {
			t.Error("mode warn:", got)
		}
		h.SetVolatile("chttpd_auth_lockout", "mode", "enforce")
		addUser(t, a, store, "alice", "apricot", "")
		if got := who(t, a, "Authorization", basic("alice", "apricot")); got != "default:alice readers" {
			t.Error("a new password is locked:", got)
		}
		time.Sleep(5 * time.Minute)
		if got := who(t, a, "Authorization", basic("adm", "pass")); got != "default:adm _admin" {
			t.Error("after max_lifetime:", got)
		}
		h.SetVolatile("chttpd_auth_lockout", "mode", "off")
		fail("adm", 7)
		h.SetVolatile("chttpd_auth_lockout", "mode", "enforce")
		if got := who(t, a, "Authorization", basic("adm", "pass")); got != "default:adm _admin" {
			t.Error("failures were counted in mode off:", got)
		}
		h.SetVolatile("chttpd_auth_lockout", "threshold", "2")
		fail("adm", 2)
		if got := who(t, a, "Authorization", basic("adm", "pass")); got != locked {
			t.Error("threshold 2:", got)
		}
	})
}

// TestOneHashForManyRequests holds I3: 64 clients with the same credentials,
// some with a wrong password, while the only slot is taken.
func TestOneHashForManyRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, store, _ := newTest(t)
		a.verifier = newVerifier(1)
		addUser(t, a, store, "alice", "apple", "")
		a.verifier.slots <- struct{}{}
		var wg sync.WaitGroup
		for i := range 64 {
			wg.Go(func() {
				password, want := "apple", "default:alice readers"
				if i%2 == 1 {
					password, want = "pear", refused
				}
				if got := who(t, a, "Authorization", basic("alice", password)); got != want {
					t.Errorf("%s: %s", password, got)
				}
			})
		}
		synctest.Wait()
		if n := a.verifier.waiting.Load(); n != 2 {
			t.Errorf("%d hashes wait for two credentials", n)
		}
		<-a.verifier.slots
		wg.Wait()
	})
}

func TestHashQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, _ := newTest(t)
		a.verifier = newVerifier(1)
		a.verifier.slots <- struct{}{}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i := range hashQueue {
			wg.Go(func() {
				r := request("Authorization", basic("u"+strconv.Itoa(i), "x")).WithContext(ctx)
				if _, err := a.Authenticate(r); !errors.Is(err, context.Canceled) {
					t.Errorf("a request that was given up: %v", err)
				}
			})
		}
		synctest.Wait()
		_, err := a.Authenticate(request("Authorization", basic("late", "x")))
		wantFault(t, err, fault.Unavailable, "Too many logins at this time. Try again later.")
		cancel()
		wg.Wait()
		<-a.verifier.slots
		if got := who(t, a, "Authorization", basic("late", "x")); got != refused {
			t.Error(got)
		}
	})
}

func TestChangesMadeElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, store, h := newTest(t)
		addUser(t, a, store, "alice", "apple", "")
		login := func() string { return who(t, a, "Authorization", basic("alice", "apple")) }

		// Not followed: an account counts for a few seconds.
		if got := login(); got != "default:alice readers" {
			t.Fatal(got)
		}
		store.set("_users", "alice", `{"name":"alice"}`)
		time.Sleep(accountTrust)
		if got := login(); got != refused {
			t.Error("a stale account is believed:", got)
		}

		// Followed: a change counts at once, and nothing is read again without.
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- a.Run(ctx) }()
		synctest.Wait()
		addUser(t, a, store, "alice", "apple", "")
		if got := login(); got != "default:alice readers" {
			t.Fatal(got)
		}
		reads := store.reads()
		time.Sleep(time.Minute)
		login()
		if n := store.reads() - reads; n != 0 {
			t.Errorf("%d reads of an unchanged user", n)
		}
		store.set("_users", "alice", `{"name":"alice"}`)
		if got := login(); got != refused {
			t.Error("a change is not seen:", got)
		}

		// Another database is another set of users.
		store.set("people", "zoe", `{"name":"zoe"}`)
		h.SetVolatile("chttpd_auth", "authentication_db", "people")
		time.Sleep(2 * followRetry)
		store.mu.Lock()
		if n := len(store.watchers); n != 2 {
			t.Errorf("%d databases were followed, want both", n)
		}
		store.mu.Unlock()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestFollowRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, store, _ := newTest(t)
		store.deaf = true
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- a.Run(ctx) }()
		time.Sleep(3 * followRetry)
		if a.users.following.Load() {
			t.Error("changes count as followed without a database")
		}
		store.mu.Lock()
		store.deaf = false
		store.mu.Unlock()
		time.Sleep(2 * followRetry)
		if !a.users.following.Load() {
			t.Error("changes are not followed")
		}
		cancel()
		<-done
		if a.users.following.Load() {
			t.Error("changes count as followed after the end")
		}
	})
}

// TestAnswersFromBeforeAChangeAreNotKept: a read that began before a write
// must not fill the cache after it.
func TestAnswersFromBeforeAChangeAreNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, store, _ := newTest(t)
		addUser(t, a, store, "alice", "apple", "")
		store.hold = make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() { who(t, a, "Authorization", basic("alice", "apple")) })
		synctest.Wait() // the old document is on its way
		store.mu.Lock()
		hold := store.hold
		store.hold = nil
		store.mu.Unlock()
		addUser(t, a, store, "alice", "apricot", "")
		if got := who(t, a, "Authorization", basic("alice", "apricot")); got != "default:alice readers" {
			t.Error("read your own write:", got)
		}
		close(hold)
		wg.Wait()
		if got := who(t, a, "Authorization", basic("alice", "apple")); got != refused {
			t.Error("the old password is back:", got)
		}
	})
}

func TestUpgrade(t *testing.T) {
	const simple = `{"name":"bob","type":"user","roles":["old"],"password_scheme":"simple","salt":"0123456789abcdef0123456789abcdef","password_sha":"a46bd4798a459535a54bd684c61f556626357bbb"}`
	synctest.Test(t, func(t *testing.T) {
		a, store, h := newTest(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- a.Run(ctx) }()
		defer func() { cancel(); <-done }()
		store.set("_users", "bob", simple)
		h.SetVolatile("chttpd_auth", "upgrade_hash_on_auth", "false")
		who(t, a, "Authorization", basic("bob", "cherry"))
		synctest.Wait()
		if len(store.puts) != 0 {
			t.Fatal("upgraded although it is switched off")
		}
		h.SetVolatile("chttpd_auth", "upgrade_hash_on_auth", "true")
		a.verifier.verified.clear()
		who(t, a, "Authorization", basic("bob", "wrong"))
		synctest.Wait()
		if len(store.puts) != 0 {
			t.Fatal("a wrong password became the right one")
		}
		ses, err := a.Login(t.Context(), Login{Name: "bob", Password: "cherry"})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		u := <-store.puts
		acc, err := parseAccount(u)
		if err != nil || acc.hash.scheme != schemePBKDF2 || acc.hash.cost() != 10 || strings.Contains(string(u.Body), "password_sha") {
			t.Fatalf("%s, %v", u.Body, err)
		}
		if got := who(t, a, "Authorization", basic("bob", "cherry")); got != "default:bob old" {
			t.Error("after the upgrade:", got)
		}
		if got := who(t, a, "Cookie", "AuthSession="+valueOf(ses.SetCookie)); got != "cookie:bob old" {
			t.Error("the session did not outlive the upgrade:", got)
		}
		synctest.Wait()
		if len(store.puts) != 0 {
			t.Error("upgraded twice")
		}
		h.SetVolatile("chttpd_auth", "iterations", "12")
		who(t, a, "Authorization", basic("bob", "cherry"))
		synctest.Wait()
		if len(store.puts) != 1 {
			t.Error("more iterations are no reason")
		}
	})
}

func TestUpgradeLeavesAChangedDocumentAlone(t *testing.T) {
	a, store, _ := newTest(t)
	store.set("_users", "bob", `{"name":"bob"}`)
	u := upgrade{db: "_users", name: "bob", password: "x", rev: store.docs["_users/bob"].Rev}
	store.set("_users", "bob", `{"name":"bob","note":1}`)
	if err := a.upgrade(t.Context(), u); err != nil || len(store.puts) != 0 {
		t.Errorf("%v, %d writes", err, len(store.puts))
	}
	u.name = "gone"
	if err := a.upgrade(t.Context(), u); err != nil {
		t.Error(err)
	}
}

func TestLogout(t *testing.T) {
	a, _, _ := newTest(t)
	if got := a.Logout(false); !strings.HasPrefix(got, "AuthSession=; Version=1; Expires=") {
		t.Error(got)
	}
}

// TestManyAtOnce is for the race detector.
func TestManyAtOnce(t *testing.T) {
	a, store, h := newTest(t)
	for i := range 8 {
		addUser(t, a, store, "u"+strconv.Itoa(i), "p", "")
	}
	ctx, cancel := context.WithCancel(t.Context())
	var run, wg sync.WaitGroup
	run.Go(func() { _ = a.Run(ctx) })
	for i := range 8 {
		name := "u" + strconv.Itoa(i)
		wg.Go(func() {
			for n := range 50 {
				res, err := a.Authenticate(request("Authorization", basic(name, "p")))
				if err != nil || res.User.Name != name {
					t.Errorf("%+v, %v", res, err)
				}
				switch n % 10 {
				case 3:
					a.Invalidate(name)
				case 7:
					h.SetVolatile("chttpd_auth", "timeout", strconv.Itoa(100+n))
				}
			}
		})
	}
	wg.Wait()
	cancel()
	run.Wait()
}

func BenchmarkBasic(b *testing.B) {
	a, store, _ := newTest(b)
	addUser(b, a, store, "alice", "apple", "")
	benchmark(b, a, request("Authorization", basic("alice", "apple")))
}

func BenchmarkBasicAdmin(b *testing.B) {
	a, _, _ := newTest(b)
	benchmark(b, a, request("Authorization", basic("adm", "pass")))
}

func BenchmarkCookie(b *testing.B) {
	a, _, _ := newTest(b)
	ses, err := a.Login(b.Context(), Login{Name: "adm", Password: "pass"})
	if err != nil {
		b.Fatal(err)
	}
	benchmark(b, a, request("Cookie", "AuthSession="+valueOf(ses.SetCookie)))
}

func BenchmarkNobody(b *testing.B) {
	a, _, _ := newTest(b)
	benchmark(b, a, request())
}

func benchmark(b *testing.B, a *Authenticator, r *http.Request) {
	b.Helper()
	a.users.forget(true)
	b.ReportAllocs()
	var res Result
	for b.Loop() {
		var err error
		if res, err = a.Authenticate(r); err != nil {
			b.Fatal(err)
		}
	}
	sink = res.User
}

var sink shard.User
