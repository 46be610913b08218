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

// who authenticates a request with these headers and returns "handler:name roles", or a
// fixed word for an anonymous request.
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
	addUser(t, a, "alice", "apple", "")
	addUser(t, a, "bob", "päß:wörd", "")
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
	a, _, _ := newTest(t, "chttpd", "authentication_handlers", all, "jwt_keys", "hmac:_default", goldenKey)
	addUser(t, a, "alice", "apple", "")
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
		{[]string{"Authorization", "Bearer nonsense"}, "Malformed authentication token"},
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
	a, _, h := newTest(t)
	addUser(t, a, "alice", "apple", "")
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
	addUser(t, a, "adm", "user's", "")
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

// TestCacheFigures: an account that is gone is a miss each time that it is asked for, as with
// CouchDB, and a server administrator without a document is neither a hit nor a miss.
func TestCacheFigures(t *testing.T) {
	a, store, _ := newTest(t)
	addUser(t, a, "zoe", "pear", "")
	step := func(what, name, password string, hits, misses uint64) {
		t.Helper()
		before := a.Figures()
		who(t, a, "Authorization", basic(name, password))
		if now := a.Figures(); now.Hits-before.Hits != hits || now.Misses-before.Misses != misses {
			t.Errorf("%s: %d hits and %d misses, want %d and %d", what, now.Hits-before.Hits, now.Misses-before.Misses, hits, misses)
		}
	}
	step("first", "zoe", "pear", 0, 1)
	step("again", "zoe", "pear", 1, 0)
	step("wrong", "zoe", "plum", 1, 0)
	store.mu.Lock()
	delete(store.docs, "_users/zoe")
	store.mu.Unlock()
	a.Invalidate("zoe")
	step("deleted", "zoe", "pear", 0, 1)
	step("still deleted", "zoe", "pear", 0, 1)
	step("administrator", "adm", "pass", 0, 0)
	step("administrator again", "adm", "pass", 0, 0)
	step("wrong administrator", "adm", "past", 0, 0)
}

// TestReservedRolesOfDocuments holds I5.
func TestReservedRolesOfDocuments(t *testing.T) {
	a, store, _ := newTest(t)
	addUser(t, a, "eve", "elder", "")
	body := strings.Replace(string(store.docs["_users/eve"].Body), `["readers"]`, `["_admin","_metrics","x",5]`, 1)
	store.set("_users", "eve", body)
	a.Invalidate("eve")
	if got := who(t, a, "Authorization", basic("eve", "elder")); got != "default:eve _metrics,x" {
		t.Error(got)
	}
}

func TestSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, h := newTest(t)
		addUser(t, a, "alice", "apple", "")
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
		pass(59 * time.Second)
		if res := get(); res.Handler != "cookie" || res.RefreshCookie != "" {
			t.Errorf("after 59 s: %+v", res)
		}
		pass(2 * time.Second)
		res := get()
		if res.RefreshCookie == "" || strings.Contains(res.RefreshCookie, "Secure") {
			t.Fatalf("after 61 s: %+v", res)
		}
		pass(538 * time.Second)
		if res := get(); res.Handler != "cookie" {
			t.Errorf("after 599 s: %+v", res)
		}
		pass(time.Second)
		if res := get(); !res.User.Anonymous {
			t.Errorf("after 600 s: %+v", res)
		}
		cookie = "AuthSession=" + valueOf(res.RefreshCookie)
		if res := get(); res.User.Name != "alice" {
			t.Errorf("the refreshed session: %+v", res)
		}
		addUser(t, a, "alice", "apple", "") // a new salt
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
		pass(2 * time.Minute)
		res, err := a.Authenticate(request("Cookie", "AuthSession="+valueOf(ses.SetCookie), "X-Forwarded-Proto", "https"))
		if err != nil || !strings.Contains(res.RefreshCookie, "; Secure;") {
			t.Errorf("%+v, %v", res, err)
		}
	})
}

func TestConflictedUsersCannotLogIn(t *testing.T) {
	const text = "User document conflicts must be resolved before the document is used for authentication purposes."
	a, store, h := newTest(t)
	addUser(t, a, "alice", "apple", "")
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
		a, _, _ := newTest(t)
		addUser(t, a, "tom", "thyme", `,"totp":`+key)
		addUser(t, a, "tim", "thyme", `,"totp":null`)
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
		pass(30 * time.Second)
		wantFault(t, login("tom", "thyme", now), fault.Unauthorized, refused)
		wantFault(t, login("tom", "thyme", f.token(f.step(time.Now()))), 0, "")
	})
}

func TestIterationLimits(t *testing.T) {
	a, _, h := newTest(t)
	addUser(t, a, "alice", "apple", "")
	h.SetVolatile("chttpd_auth", "min_iterations", "11")
	if got := who(t, a, "Authorization", basic("alice", "apple")); got != "Iteration count is too low for this server" {
		t.Error(got)
	}
	h.SetVolatile("chttpd_auth", "min_iterations", "1")
	h.SetVolatile("chttpd_auth", "max_iterations", "9")
	_, err := a.Authenticate(request("Authorization", basic("alice", "apple")))
	wantFault(t, err, fault.Forbidden, "Iteration count is too high for this server")
}

func TestLogout(t *testing.T) {
	a, _, _ := newTest(t)
	if got := a.Logout(false); !strings.HasPrefix(got, "AuthSession=; Version=1; Expires=") {
		t.Error(got)
	}
}

// TestManyAtOnce is for the race detector.
func TestManyAtOnce(t *testing.T) {
	a, _, h := newTest(t)
	for i := range 8 {
		addUser(t, a, "u"+strconv.Itoa(i), "p", "")
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
	a, _, _ := newTest(b)
	addUser(b, a, "alice", "apple", "")
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
