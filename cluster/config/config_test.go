package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"pgregory.net/rapid"

	"divan/storage/fault"
)

func newHolder(t *testing.T, o Options) *Holder {
	t.Helper()
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// What an unconfigured node answers to GET …/_config (golden server/08).
func TestShownDefaults(t *testing.T) {
	s := Default()
	for _, c := range []struct{ section, key, want string }{
		{"cluster", "q", "2"}, {"cluster", "n", "3"}, {"couchdb_engines", "couch", "couch_bt_engine"}, {"indexers", "couch_mrview", "true"},
	} {
		if got, ok := s.Get(c.section, c.key); !ok || got != c.want {
			t.Errorf("[%s] %s is %q, %v", c.section, c.key, got, ok)
		}
	}
	for _, c := range [][2]string{
		{"couchdb", "maintenance_mode"},
		{"uuids", "max_count"},
		{"couchdb", "max_document_size"},
		{"chttpd", "max_http_request_size"},
		{"chttpd", "require_valid_user"},
		{"cors", "origins"},
		{"none", "none"},
		{"chttpd", "max_db_number_for_dbs_info_req"},
	} {
		if got, ok := s.Get(c[0], c[1]); ok {
			t.Errorf("[%s] %s is shown as %q although CouchDB has it in code only", c[0], c[1], got)
		}
	}
	if got := s.Section("indexers"); !maps.Equal(got, map[string]string{"couch_mrview": "true"}) {
		t.Errorf("indexers %v", got)
	}
	if got := s.Section("none"); got == nil || len(got) != 0 {
		t.Errorf("an unknown section is %v", got)
	}
	s.All()["cluster"]["q"] = "9"
	s.Section("cluster")["q"] = "9"
	if got, _ := s.Get("cluster", "q"); got != "2" {
		t.Error("a copy that was handed out changes the snapshot")
	}
}

// The defaults of semantics.md 19.
func TestTypedDefaults(t *testing.T) {
	s := Default()
	for _, c := range []struct{ got, want any }{
		{s.CouchDB.MaxDocumentSize, int64(8_000_000)},
		{s.CouchDB.MaxAttachmentSize, int64(1073741824)},
		{s.CouchDB.MaxDocumentIDLength, int64(64 << 10)},
		{s.CouchDB.MaxPartitionSize, int64(10737418240)},
		{s.CouchDB.MaxDBsOpen, 500},
		{s.CouchDB.OSProcessTimeout, 5 * time.Second},
		{s.CouchDB.DefaultSecurity, "admin_only"},
		{s.CouchDB.MaintenanceMode, ""},
		{s.CouchDB.StemInteractiveUpdates, true},
		{s.CouchDB.ChangesDocIDsThreshold, 1000},
		{s.CouchDB.AttachmentWriterTimeout, 5 * time.Minute},
		{s.Cluster.ReconnectInterval, 37 * time.Second},
		{s.Chttpd.Port, 5984},
		{s.Chttpd.BindAddress, "127.0.0.1"},
		{s.Chttpd.AdminOnlyAllDBs, true},
		{s.Chttpd.ChangesTimeout, time.Minute},
		{s.Chttpd.MaxHTTPRequestSize, int64(4294967296)},
		{s.Chttpd.MaxDBsInfo, 100},
		{s.Chttpd.DisconnectCheck, 30 * time.Second},
		{s.Chttpd.AuthHandlers, []string{"cookie", "default"}},
		{s.SSL.Port, 6984},
		{s.ChttpdAuth.AuthenticationDB, "_users"},
		{s.ChttpdAuth.AuthenticationRedirect, "/_utils/session.html"},
		{s.ChttpdAuth.Timeout, 10 * time.Minute},
		{s.ChttpdAuth.AllowPersistentCookies, true},
		{s.ChttpdAuth.PBKDF2PRF, "sha256"},
		{s.ChttpdAuth.Iterations, 600000},
		{s.ChttpdAuth.MaxIterations, 1000000000},
		{s.ChttpdAuth.HashAlgorithms, []string{"sha256", "sha"}},
		{s.ChttpdAuth.AuthCacheSize, 50},
		{s.Lockout, Lockout{Mode: "enforce", Threshold: 5, MaxLifetime: 5 * time.Minute, MaxObjects: 10000}},
		{s.Fabric.RequestTimeout, time.Minute},
		{s.Fabric.AllDocsTimeout, 10 * time.Second},
		{s.Fabric.AttachmentsTimeout, 10 * time.Minute},
		{s.Fabric.ViewTimeout, time.Duration(0)},
		{s.Limits.ReduceLimit, "true"},
		{s.Limits.QueryLimit, int64(Infinity)},
		{s.Limits.PurgeMaxRevisions, int64(Infinity)},
		{s.Mango, Mango{DefaultLimit: 25, IndexScanWarningThreshold: 10}},
		{s.UUIDs, UUIDs{Algorithm: "sequential", MaxCount: 1000}},
		{s.Attachments.CompressionLevel, 8},
		{s.Log, Log{Level: "info", Writer: "stderr", File: "./couch.log", Format: "console"}},
		{s.Prometheus, Prometheus{BindAddress: "127.0.0.1", Port: 17986, Interval: 5 * time.Second}},
		{s.CSP.Utils.Enable, true},
		{s.CORS.MaxAge, 10 * time.Minute},
		{s.JWT.RequiredClaims, []Claim{{Name: "exp"}}},
		{s.Proxy.TokenHeader, "X-Auth-CouchDB-Token"},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("got %v, want %v", c.got, c.want)
		}
	}
}

func TestParsing(t *testing.T) {
	s := FromValues(Values{
		"couchdb":     {"max_document_size": "infinity", "maintenance_mode": "nolb", "os_process_timeout": "250"},
		"chttpd":      {"bind_address": "any", "authentication_handlers": "{chttpd_auth, jwt_authentication_handler}, {chttpd_auth, cookie_authentication_handler}, {chttpd_auth, default_authentication_handler}"},
		"httpd":       {"enable_cors": "true", "port": "5986", "changes_timeout": "5"},
		"chttpd_auth": {"timeout": "5", "public_fields": "name, roles", "password_regexp": `[{".{4,}", "Too short."}, "[A-Z]+", {"[\\d]"}]`, "same_site": "Lax"},
		"couch_httpd_auth": {
			"timeout": "7", "iterations": "10",
		},
		"fabric":         {"request_timeout": "infinity", "view_timeout": "1500"},
		"cluster":        {"placement": "a:2,b:1", "seedlist": "a@a, b@b,"},
		"jwt_auth":       {"required_claims": `exp, {iss, "https://issuer.example/"}`},
		"jwt_keys":       {"hmac:_default": "aGVsbG8="},
		"cors":           {"origins": "http://A.example, *", "methods": "get, PUT"},
		"cors:A.example": {"origins": "http://b.example", "credentials": "true"},
		"log":            {"level": "warn"},
		"ssl":            {"tls_versions": "[tlsv1, 'tlsv1.1', 'tlsv1.2']"},
	})
	for _, c := range []struct{ got, want any }{
		{s.CouchDB.MaxDocumentSize, int64(Infinity)},
		{s.CouchDB.MaintenanceMode, "nolb"},
		{s.CouchDB.OSProcessTimeout, 250 * time.Millisecond},
		{s.Chttpd.BindAddress, "0.0.0.0"},
		{s.Chttpd.AuthHandlers, []string{"jwt", "cookie", "default"}},
		{s.Chttpd.EnableCORS, true},
		{s.Chttpd.Port, 5984},
		{s.Chttpd.ChangesTimeout, 5 * time.Millisecond},
		{s.ChttpdAuth.Timeout, 5 * time.Second},
		{s.ChttpdAuth.Iterations, 10},
		{s.ChttpdAuth.PublicFields, []string{"name", "roles"}},
		{s.ChttpdAuth.SameSite, "lax"},
		{s.Fabric.RequestTimeout, time.Duration(0)},
		{s.Fabric.ViewTimeout, 1500 * time.Millisecond},
		{s.Cluster.Placement.String(), "a:2,b:1"},
		{s.Cluster.SeedList, []string{"a@a", "b@b"}},
		{s.JWT.RequiredClaims, []Claim{{Name: "exp"}, {Name: "iss", Value: "https://issuer.example/", HasValue: true}}},
		{s.JWT.Keys["hmac:_default"], "aGVsbG8="},
		{s.CORS.Origins, []string{"http://a.example", "*"}},
		{s.CORS.Methods, []string{"GET", "PUT"}},
		{s.CORS.Hosts["a.example"].Credentials, true},
		{s.Log.Level, "warning"},
		{s.SSL.TLSVersions, []string{"tlsv1", "tlsv1.1", "tlsv1.2"}},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("got %v, want %v", c.got, c.want)
		}
	}
	rules := s.ChttpdAuth.PasswordRules
	if len(rules) != 3 || rules[0].Reason != "Too short." || !rules[1].Pattern.MatchString("A") || rules[2].Pattern.String() != `[\d]` {
		t.Errorf("password rules %v", rules)
	}
}

// A value that does not parse leaves the default in force, is logged once
// without the value, and is refused over HTTP.
func TestBadValues(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	h := newHolder(t, Options{Logger: zap.New(core), Environ: []string{"DIVAN_CLUSTER__Q=hidden"}})
	for range 3 {
		h.SetVolatile("x", "y", "z")
	}
	if h.Load().Cluster.Q != 2 {
		t.Errorf("q is %d", h.Load().Cluster.Q)
	}
	if logs.Len() != 1 || strings.Contains(fmt.Sprint(logs.All()), "hidden") {
		t.Errorf("logged %v", logs.All())
	}
	for _, c := range []struct{ section, key, value string }{
		{"couchdb", "max_document_size", "8MB"},
		{"couchdb", "max_document_size", "-1"},
		{"couchdb", "default_security", "nobody"},
		{"couchdb", "maintenance_mode", "on"},
		{"chttpd", "port", "65536"},
		{"chttpd", "require_valid_user", "True"},
		{"chttpd", "authentication_handlers", "{chttpd_auth, magic_authentication_handler}"},
		{"chttpd_auth", "hash_algorithms", "sha256, md5"},
		{"chttpd_auth", "timeout", "infinity"},
		{"chttpd_auth", "password_regexp", `["("]`},
		{"chttpd_auth", "password_regexp", `[{"a", "b", "c"}]`},
		{"cluster", "placement", "a"},
		{"cluster", "n", "0"},
		{"cors:a", "credentials", "maybe"},
		{"fabric", "request_timeout", "99999999999999999999"},
		{"fabric", "request_timeout", "9223372036854775807"},
		{"query_server_config", "reduce_limit_ratio", "NaN"},
		{"ssl", "tls_versions", "sslv3"},
		{"uuids", "algorithm", "magic"},
		{"log", "level", "loud"},
		{"x", "y", "two\nlines"},
		{"x", "y", "\xff"},
		{"x\n", "y", ""},
		{"", "y", ""},
		{"x", "", ""},
		{"x", "[y", ""},
	} {
		if err := Check(c.section, c.key, c.value); !fault.Is(err, fault.BadRequest) {
			t.Errorf("[%s] %s = %q: %v", c.section, c.key, c.value, err)
		}
		FromValues(Values{c.section: {c.key: c.value}}) // no panic
	}
	for _, c := range []struct{ section, key, value string }{
		{"couchdb", "max_document_size", ""},
		{"couchdb", "max_document_size", "100"},
		{"jwt_auth", "required_claims", "{iss"},
		{"jwt_auth", "required_claims", "[]"},
		{"chttpd_auth", "same_site", "sometimes"},
		{"chttpd_auth", "same_site", "STRICT"},
		{"x", "y", "anything [goes] {here}; ü"},
		{"cors:http://a", "credentials", "true"},
	} {
		if err := Check(c.section, c.key, c.value); err != nil {
			t.Errorf("[%s] %s = %q: %v", c.section, c.key, c.value, err)
		}
	}
	err := Check("feature_flags", "x", "y")
	if !fault.Is(err, fault.Forbidden) || fault.Reason(err) != "Config section blacklisted for modification over HTTP API." {
		t.Error(err)
	}
}

func TestValueFromJSON(t *testing.T) {
	for body, want := range map[string]string{
		`"one"`: "one", `"  five  "`: "five", `5`: "5", `true`: "true", `null`: "null", ` {"a": "b"} `: `{"a":"b"}`,
		`["a", 1]`: `["a",1]`, `"\u00fc"`: "ü", `1.50`: "1.50", `""`: "",
	} {
		if got, err := ValueFromJSON([]byte(body)); err != nil || got != want {
			t.Errorf("%s: %q, %v", body, got, err)
		}
	}
	for _, body := range []string{"", "plain", `"open`, "\xff", `"a" "b"`, `{`, "\"\xff\""} {
		_, err := ValueFromJSON([]byte(body))
		if !fault.Is(err, fault.BadRequest) || fault.Reason(err) != "invalid UTF-8 JSON" {
			t.Errorf("%q: %v", body, err)
		}
	}
}

func FuzzTerms(f *testing.F) {
	f.Add(`[{".{10,}", "at least \"10\""}, "[A-Z]+", exp]`)
	f.Add(`exp, {iss, "x"}`)
	f.Fuzz(func(t *testing.T, s string) {
		terms, ok := parseErlangTerms(s)
		for _, term := range terms {
			if ok && len(term) == 0 {
				t.Fatalf("%q has an empty term", s)
			}
		}
	})
}

func TestTerms(t *testing.T) {
	for s, want := range map[string][][]string{
		"": nil, "[]": nil, "exp": {{"exp"}}, " a , {b, \"c d\"} ": {{"a"}, {"b", "c d"}}, `["a\"b\\", {x}]`: {{`a"b\`}, {"x"}},
	} {
		if got, ok := parseErlangTerms(s); !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q, %v", s, got, ok)
		}
	}
	for _, s := range []string{"[", "a,", "{", "{a", "{a,}", `"a`, `"a\`, "a]", "[a", "[a]]", `{"a" b}`, "[] a", "a{b}"} {
		if got, ok := parseErlangTerms(s); ok {
			t.Errorf("%q: %q", s, got)
		}
	}
}

func TestCompressible(t *testing.T) {
	a := Default().Attachments
	for media, want := range map[string]bool{
		"text/plain": true, "text/plain; charset=utf-8": true, "TEXT/HTML": true, "application/json": true, "application/json2": false,
		"image/png": false, "": false, "text": false,
	} {
		if a.Compressible(media) != want {
			t.Errorf("%q: %v", media, !want)
		}
	}
	a.CompressionLevel = 0
	if a.Compressible("text/plain") {
		t.Error("compressed at level 0")
	}
	for _, c := range []struct {
		glob, text string
		want       bool
	}{{"*", "a", true}, {"*/xml", "a/xml", true}, {"a*b*c", "axxbyyc", true}, {"a*b*c", "axxc", false}, {"a*a", "a", false}, {"**", "", true}} {
		if matchGlob(c.glob, c.text) != c.want {
			t.Errorf("%s against %s: %v", c.glob, c.text, !c.want)
		}
	}
}

func TestLayers(t *testing.T) {
	dir := writeFiles(t, map[string]string{"a.ini": "[s]\nfile=f\nall=f\nenv=f\n[cluster]\nn=\n"})
	h := newHolder(t, Options{
		Files: []string{dir},
		Environ: []string{
			"DIVAN_S__ENV=e", "DIVAN_S__ALL=e", "COUCHDB_SECRET=top", "NODENAME=host.example", "PATH=/bin", "DIVAN_X=1", "DIVAN___Y=1", "DIVAN_Z__=1",
			"COUCHDB_USER=root",
		},
		Flags: Values{"s": {"all": "flag", "flag": "1"}},
	})
	s := h.Load()
	if want := map[string]string{"file": "f", "all": "flag", "env": "e", "flag": "1"}; !maps.Equal(s.Section("s"), want) {
		t.Errorf("%v", s.Section("s"))
	}
	if s.ChttpdAuth.Secret != "top" || s.Cluster.NodeName != "couchdb@host.example" || len(s.Admins) != 0 {
		t.Errorf("secret %q, node %q, admins %v", s.ChttpdAuth.Secret, s.Cluster.NodeName, s.Admins)
	}
	if _, ok := s.Get("cluster", "n"); ok {
		t.Error("an empty value in a file does not hide the default")
	}
	var generated, wide, node Layer
	generated.Put("chttpd_auth", "secret", "made up")
	generated.Put("couchdb", "uuid", "1234")
	wide.Put("s", "all", "wide")
	wide.Put("s", "wide", "1")
	node.Put("s", "wide", "2")
	node.Hide("s", "flag")
	h.SetReplicated(generated, wide, node)
	if got := h.Load(); got.ChttpdAuth.Secret != "top" || got.CouchDB.UUID != "1234" {
		t.Errorf("secret %q, uuid %q", got.ChttpdAuth.Secret, got.CouchDB.UUID)
	}
	if want := map[string]string{"file": "f", "all": "wide", "env": "e", "wide": "2"}; !maps.Equal(h.Load().Section("s"), want) {
		t.Errorf("%v", h.Load().Section("s"))
	}
	if got := h.Layer(Node); got.Set["s"]["wide"] != "2" || !got.Hidden["s"]["flag"] || len(got.Set) != 1 {
		t.Errorf("the layer of the node: %+v", got)
	}
	h.HideVolatile("s", "all")
	h.SetVolatile("s", "flag", "3")
	if want := map[string]string{"file": "f", "env": "e", "wide": "2", "flag": "3"}; !maps.Equal(h.Load().Section("s"), want) {
		t.Errorf("%v", h.Load().Section("s"))
	}
	for level, want := range map[Level]bool{Files: false, Environment: true, Node: true} {
		if got := h.SetBelow(level, "s", "file"); got != want {
			t.Errorf("set below %d: %v", level, got)
		}
	}
}

// What the cluster made up steps in for what is hidden or empty.
func TestMadeUpIsNeverMissing(t *testing.T) {
	dir := writeFiles(t, map[string]string{"a.ini": "[couchdb]\nuuid=\n"})
	h := newHolder(t, Options{Files: []string{dir}})
	var generated, wide Layer
	generated.Put("chttpd_auth", "secret", "made up")
	generated.Put("couchdb", "uuid", "1234")
	wide.Hide("chttpd_auth", "secret")
	h.SetReplicated(generated, wide, Layer{})
	if got := h.Load(); got.ChttpdAuth.Secret != "made up" || got.CouchDB.UUID != "1234" {
		t.Errorf("secret %q, uuid %q", got.ChttpdAuth.Secret, got.CouchDB.UUID)
	}
	h.SetVolatile("couchdb", "uuid", "")
	h.SetVolatile("chttpd_auth", "secret", "mine")
	if got := h.Load(); got.ChttpdAuth.Secret != "mine" || got.CouchDB.UUID != "1234" {
		t.Errorf("secret %q, uuid %q", got.ChttpdAuth.Secret, got.CouchDB.UUID)
	}
}

func TestSingleNodeHasOneCopy(t *testing.T) {
	h := newHolder(t, Options{Environ: []string{"DIVAN_COUCHDB__SINGLE_NODE=true"}})
	if got, _ := h.Load().Get("cluster", "n"); got != "1" || h.Load().Cluster.N != 1 {
		t.Errorf("n is %q", got)
	}
	h = newHolder(t, Options{Environ: []string{"DIVAN_COUCHDB__SINGLE_NODE=true", "DIVAN_CLUSTER__N=2"}})
	if h.Load().Cluster.N != 2 {
		t.Error("a configured n is overridden")
	}
}

// Merging is what looking a key up from the strongest layer down says.
func TestMergeAgainstLookup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		layers := make([]Layer, rapid.IntRange(1, 5).Draw(t, "layers"))
		for i := range layers {
			for range rapid.IntRange(0, 8).Draw(t, "changes") {
				s := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "section")
				k := rapid.SampledFrom([]string{"k", "l"}).Draw(t, "key")
				switch rapid.IntRange(0, 2).Draw(t, "op") {
				case 0:
					layers[i].Put(s, k, fmt.Sprint(i))
				case 1:
					layers[i].Hide(s, k)
				case 2:
					layers[i].Drop(s, k)
				}
			}
		}
		got := merge(layers...)
		for _, s := range []string{"a", "b"} {
			for _, k := range []string{"k", "l"} {
				want, set := "", false
				for _, l := range slices.Backward(layers) {
					if want, set = l.Set[s][k]; set || l.Hidden[s][k] {
						break
					}
				}
				if v, ok := got[s][k]; ok != set || v != want {
					t.Fatalf("%s/%s: %q %v, want %q %v", s, k, v, ok, want, set)
				}
			}
			if keys, ok := got[s]; ok && len(keys) == 0 {
				t.Fatal("an empty section")
			}
		}
	})
}

func TestSubscribe(t *testing.T) {
	h := newHolder(t, Options{})
	var seen []string
	cancel := h.Subscribe(func(old, now *Snapshot) {
		was, _ := old.Get("s", "k")
		is, _ := now.Get("s", "k")
		if now != h.Load() {
			t.Error("told before it is published")
		}
		seen = append(seen, was+">"+is)
	})
	h.SetVolatile("s", "k", "1")
	h.SetVolatile("s", "k", "1") // changes nothing
	h.DropVolatile("s", "other")
	h.SetVolatile("s", "k", "2")
	cancel()
	h.SetVolatile("s", "k", "3")
	if want := []string{">1", "1>2"}; !slices.Equal(seen, want) {
		t.Errorf("%v", seen)
	}
}

func TestConcurrentReaders(t *testing.T) {
	h := newHolder(t, Options{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				h.SetVolatile("cluster", "q", "4")
				if q := h.Load().Cluster.Q; q != 2 && q != 4 {
					t.Errorf("q is %d", q)
				}
				h.DropVolatile("cluster", "q")
			}
		})
	}
	wg.Wait()
	if h.Load().Cluster.Q != 2 {
		t.Error("a dropped value is in force")
	}
}

func TestHashAdmins(t *testing.T) {
	hash := func(p string) (string, error) {
		if p == "bad" {
			return "", errors.New("no entropy")
		}
		return "-pbkdf2:sha256-" + p, nil
	}
	verify := func(stored, p string) bool { return stored == "-pbkdf2:sha256-"+p || stored == "-pbkdf2-old"+p }
	environ := []string{"COUCHDB_USER=root", "COUCHDB_PASSWORD=apple", "DIVAN_ADMINS__ANNA=-hashed-abc,def"}
	h := newHolder(t, Options{Environ: environ, Hash: hash, Verify: verify})
	if got := h.Load().Admins; len(got) != 1 || got["anna"] != "-hashed-abc,def" {
		t.Errorf("before hashing %v", got)
	}
	if _, ok := h.Load().Get("admins", "root"); ok {
		t.Error("plain text is shown")
	}
	fresh, err := h.HashAdmins(map[string]string{"root": "-pbkdf2-oldapple", "x": "y"})
	if err != nil || len(fresh) != 0 || h.Load().Admins["root"] != "-pbkdf2-oldapple" {
		t.Errorf("known: %v, %v, %v", fresh, err, h.Load().Admins)
	}
	h = newHolder(t, Options{Environ: environ, Hash: hash, Verify: verify})
	fresh, err = h.HashAdmins(map[string]string{"root": "-pbkdf2-oldpear"})
	if err != nil || fresh["root"] != "-pbkdf2:sha256-apple" || h.Load().Admins["root"] != fresh["root"] {
		t.Errorf("changed: %v, %v", fresh, err)
	}
	if again, err := h.HashAdmins(nil); err != nil || !maps.Equal(again, fresh) {
		t.Errorf("not kept yet: %v, %v", again, err)
	}
	if again, err := h.HashAdmins(fresh); err != nil || len(again) != 0 {
		t.Errorf("again: %v, %v", again, err)
	}
	h = newHolder(t, Options{Environ: []string{"DIVAN_ADMINS__ROOT=bad"}, Hash: hash, Verify: verify})
	if _, err := h.HashAdmins(nil); err == nil || strings.Contains(err.Error(), "bad") {
		t.Errorf("a hash that fails: %v", err)
	}
	if len(h.Load().Admins) != 0 {
		t.Error("an administrator without a hash is in force")
	}
	h = newHolder(t, Options{Environ: environ})
	if _, err := h.HashAdmins(nil); err == nil {
		t.Error("hashed without a function")
	}
	if _, err := h.StoredForm("admins", "plain"); err == nil {
		t.Error("stored without a function")
	}
}

func TestReload(t *testing.T) {
	dir := writeFiles(t, map[string]string{"local.ini": "[s]\nk=1\n"})
	h := newHolder(t, Options{Files: []string{dir}})
	h.SetVolatile("s", "v", "1")
	h.HideVolatile("s", "k")
	if err := h.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := h.Load().Section("s"); !maps.Equal(got, map[string]string{"k": "1"}) {
		t.Errorf("%v", got)
	}
}

// Clients look for the directories, and see those that there are.
func TestDirectoriesAreShown(t *testing.T) {
	h := newHolder(t, Options{DataDir: "/srv/data", Flags: Values{"couchdb": {"database_dir": "/elsewhere"}}})
	h.SetVolatile("couchdb", "view_index_dir", "/elsewhere")
	for _, key := range []string{"database_dir", "view_index_dir"} {
		if got, _ := h.Load().Get("couchdb", key); got != "/srv/data" {
			t.Errorf("%s is shown as %q", key, got)
		}
	}
}
