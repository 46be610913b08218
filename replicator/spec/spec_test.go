package spec

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"divan/replicator/endpoint"
	"divan/shard"
	"divan/storage/fault"
)

// ends is a body with both sides and more members.
func ends(more string) string {
	return `{"source":"http://adm:pass@h:5984/a","target":"http://adm:pass@h:5984/b"` + more + `}`
}

func TestParse(t *testing.T) {
	d := Defaults{
		Options: Options{UseCheckpoints: true, UseBulkGet: true, Workers: 4, BatchSize: 500, CheckpointInterval: 30 * time.Second},
		User:    shard.User{Name: "rita"},
	}
	got, err := Parse([]byte(`{
		"source": {"url": "https://u%40:p@example.org/a%2Fb", "headers": {"X-One": "1"}, "auth": {"basic": {"username": "ann", "password": "secret"}}},
		"target": "plain", "continuous": true, "create_target": true, "create_target_params": {"q": "1", "n": 3},
		"filter": "d/f", "query_params": {"k": "v", "n": 1}, "winning_revs_only": true, "since_seq": "3-x", "use_checkpoints": false,
		"checkpoint_interval": 1000, "worker_processes": "2", "worker_batch_size": 10, "http_connections": 3, "connection_timeout": 7,
		"retries_per_request": 0, "use_bulk_get": null, "source_proxy": "socks5://u:p@127.0.0.1:9", "doc_ids": null, "colour": "blue",
		"user_ctx": {"name": "root", "roles": ["_admin"]}
	}`), d)
	if err != nil {
		t.Fatal(err)
	}
	want := &Spec{
		Source: Address{
			URL: "https://example.org/a%2Fb/", Username: "ann", Password: "secret",
			Headers: [][2]string{{"X-One", "1"}}, Proxy: "socks5://u:p@127.0.0.1:9",
		},
		Target: Address{URL: "plain", Name: "plain"},
		Options: Options{
			UseBulkGet: true, Workers: 2, BatchSize: 10, CheckpointInterval: time.Second, Connections: 3,
			ConnectionTimeout: 7 * time.Millisecond,
		},
		Filter:       endpoint.Filter{Function: "d/f", Query: [][2]string{{"k", "v"}, {"n", "1"}}},
		CreateTarget: true, CreateParams: endpoint.CreateOptions{Query: [][2]string{{"q", "1"}, {"n", "3"}}},
		Continuous: true, WinnerOnly: true, Since: `"3-x"`, User: shard.User{Name: "rita"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	d.User.Roles = []string{shard.AdminRole}
	if s, err := Parse([]byte(ends(`,"user_ctx":{"name":"bob","roles":["x"]},"doc_ids":["d%2Fe","a","a","50%"],"since_seq":0`)), d); err != nil ||
		s.User.Name != "bob" || s.User.Admin() || strings.Join(s.Filter.DocIDs, " ") != "50% a d/e" || s.Since != "0" {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestParseRefuses(t *testing.T) {
	for body, want := range map[string]string{
		``:                         "invalid UTF-8 JSON",
		`{"source": `:              "invalid UTF-8 JSON",
		`["a", "b"]`:               "Request body must be a JSON object",
		`{"target": "http://h/b"}`: "parameter `source` is missing",
		`{"source": "http://h/b"}`: "parameter `target` is missing",
		`{"source": {"uri": "http://h/a"}, "target": "b"}`:                                       "endpoint has an invalid url",
		`{"source": "http://", "target": "b"}`:                                                   "endpoint has an invalid url",
		`{"source": "http://h/", "target": "b"}`:                                                 "endpoint has an invalid url",
		`{"source": {"url": "http://localhost:x/a"}, "target": "b"}`:                             "endpoint has an invalid url",
		`{"source": "ftp://127.0.0.1/a", "target": "b"}`:                                         "endpoint has an invalid url",
		`{"source": 1, "target": "b"}`:                                                           "endpoint has an invalid url",
		`{"source": "", "target": "b"}`:                                                          "endpoint has an invalid url",
		`{"source": {"url": "http://h/a", "auth": {"basic": {"username": "u"}}}, "target": "b"}`: "`auth.basic` must have a `username` and a `password`",
		ends(`,"continuous":"yes"`):                                                              "parameter `continuous` must be a boolean",
		ends(`,"winning_revs_only":1`):                                                           "parameter `winning_revs_only` must be a boolean",
		ends(`,"use_bulk_get":1`):                                                                "parameter `use_bulk_get` must be a boolean",
		ends(`,"create_target":"true"`):                                                          "parameter `create_target` must be a boolean",
		ends(`,"create_target_params":"q=1"`):                                                    "parameter `create_target_params` must be a JSON object",
		ends(`,"doc_ids":"a"`):                                                                   "parameter `doc_ids` must be an array",
		ends(`,"doc_ids":[1]`):                                                                   "parameter `doc_ids` must be an array of strings",
		ends(`,"selector":["n"]`):                                                                "parameter `selector` must be a JSON object",
		ends(`,"filter":"f/kind","query_params":"kind=leaf"`):                                    "parameter `query_params` must be an object",
		ends(`,"filter":"f/odd","doc_ids":["a"]`):                                                "`doc_ids`,`filter`,`selector` are mutually exclusive",
		ends(`,"filter":"f/odd","selector":{"n":1}`):                                             "`doc_ids`,`filter`,`selector` are mutually exclusive",
		ends(`,"doc_ids":[],"selector":{"n":1}`):                                                 "`doc_ids`,`filter`,`selector` are mutually exclusive",
		ends(`,"proxy":"http://p:1","source_proxy":"http://p:2"`):                                "`proxy` is mutually exclusive with `source_proxy`",
		ends(`,"proxy":"http://p:1","target_proxy":"http://p:2"`):                                "`proxy` is mutually exclusive with `target_proxy`",
		ends(`,"proxy":"gopher://127.0.0.1:1"`):                                                  "proxy has an invalid url",
		ends(`,"worker_processes":0`):                                                            "parameter `worker_processes` must be an integer of at least 1",
		ends(`,"filter":"odd"`):                                                                  "`filter` must be of the form `designname/filtername`",
		ends(`,"filter":1`):                                                                      "parameter `filter` must be a string",
	} {
		_, err := Parse([]byte(body), Defaults{})
		if !fault.Is(err, fault.BadRequest) || fault.Reason(err) != want {
			t.Errorf("%s: %v, not %s", body, err, want)
		}
	}
	_, err := Parse([]byte(`{"source": "http://", "target": "b"}`), Defaults{})
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != "invalid_replication" {
		t.Errorf("the name of the error: %+v", err)
	}
}

func TestParseDocument(t *testing.T) {
	for body, want := range map[string]string{
		`{"target": "http://h/b"}`:                      "Missing replicator database",
		`{"source": "http://h/b"}`:                      "Missing replicator database",
		`{"source": "a", "target": "http://h/b"}`:       "local_endpoints_not_supported",
		`{"source": "http://h/a", "target": "b"}`:       "local_endpoints_not_supported",
		`{"source": "http://", "target": "http://h/b"}`: "endpoint has an invalid url",
		ends(`,"continuous":"yes"`):                     "parameter `continuous` must be a boolean",
		ends(`,"filter":"odd"`):                         "`filter` must be of the form `designname/filtername`",
	} {
		if _, err := ParseDocument([]byte(body), "_replicator", "x", Defaults{}); !fault.Is(err, fault.Forbidden) || fault.Reason(err) != want {
			t.Errorf("%s: %v, not %s", body, err, want)
		}
	}
	s, err := ParseDocument([]byte(ends(`,"proxy":"http://p:1","_id":"x"`)), "_replicator", "x", Defaults{})
	if err != nil || s.Database != "_replicator" || s.DocID != "x" || s.Source.Proxy != "http://p:1" || s.Target.Proxy != "http://p:1" {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestParseCancel(t *testing.T) {
	for _, c := range []struct {
		body   string
		cancel bool
		id     string
		reason string
	}{
		{ends(""), false, "", ""},
		{ends(`,"cancel":true`), true, "", ""},
		{`{"cancel":true,"replication_id":"x+continuous"}`, true, "x+continuous", ""},
		{`{"_local_id":"x","cancel":true}`, true, "x", ""},
		{`{"id":"x","cancel":true}`, true, "x", ""},
		{ends(`,"cancel":"true"`), false, "", "parameter `cancel` must be a boolean"},
	} {
		cancel, id, err := ParseCancel([]byte(c.body))
		if cancel != c.cancel || id != c.id || fault.Reason(err) != c.reason {
			t.Errorf("%s: %v, %q, %v", c.body, cancel, id, err)
		}
	}
}

// id returns the id of a body's replication.
func id(t *testing.T, body, code string) ID {
	t.Helper()
	s, err := Parse([]byte(body), Defaults{User: shard.User{Name: "rita"}})
	if err != nil {
		t.Fatal(err)
	}
	return s.ID("uuid", code)
}

func TestID(t *testing.T) {
	base := id(t, ends(""), "")
	if len(base.Base) != 32 || base.String() != base.Base {
		t.Errorf("%q", base)
	}
	if got := id(t, ends(`,"continuous":true,"create_target":true`), ""); got.String() != base.Base+"+continuous+create_target" {
		t.Errorf("%s", got)
	}
	for _, equal := range []string{
		`{"source":"http://adm:other@h:5984/a/","target":"http://adm:pass@H:5984/b"}`,
		`{"source":{"url":"http://h:5984/a","auth":{"basic":{"username":"adm","password":"x"}}},"target":"http://adm:pass@h:5984/b"}`,
		`{"source":{"url":"http://h:5984/a","headers":{"Authorization":"Basic YWRtOnBhc3M="}},"target":"http://adm:pass@h:5984/b"}`,
		ends(`,"worker_processes":7,"since_seq":null`),
	} {
		if got := id(t, equal, ""); got != base {
			t.Errorf("%s has another id", equal)
		}
	}
	seen := map[ID]string{base: ends("")}
	for _, other := range []struct{ body, code string }{
		{`{"source":"http://eve:pass@h:5984/a","target":"http://adm:pass@h:5984/b"}`, ""},
		{`{"source":"http://adm:pass@h/a","target":"http://adm:pass@h:5984/b"}`, ""},
		{`{"source":"http://adm:pass@h:5984/b","target":"http://adm:pass@h:5984/a"}`, ""},
		{`{"source":"a","target":"http://adm:pass@h:5984/b"}`, ""},
		{`{"source":{"url":"http://adm:p@h:5984/a","headers":{"X":"1"}},"target":"http://adm:pass@h:5984/b"}`, ""},
		{ends(`,"winning_revs_only":true`), ""},
		{ends(`,"since_seq":"3-x"`), ""},
		{ends(`,"since_seq":"4-x"`), ""},
		{ends(`,"since_seq":3`), ""},
		{ends(`,"since_seq":0`), ""},
		{ends(`,"since_seq":"3-x","doc_ids":["a","b"]`), ""},
		{ends(`,"since_seq":"3-x","selector":{"a":1}`), ""},
		{ends(`,"doc_ids":[]`), ""},
		{ends(`,"doc_ids":["a","b"]`), ""},
		{ends(`,"doc_ids":["ab"]`), ""},
		{ends(`,"selector":{"a":1}`), ""},
		{ends(`,"filter":"d/f"`), "function () { return true; }"},
		{ends(`,"filter":"d/f"`), "function () { return false; }"},
		{ends(`,"filter":"d/f","query_params":{"a":"b"}`), "function () { return true; }"},
		{ends(`,"filter":"_design"`), ""},
	} {
		got := id(t, other.body, other.code)
		if twin, ok := seen[got]; ok {
			t.Errorf("%s has the id of %s", other.body, twin)
		}
		seen[got] = other.body
	}
	if id(t, ends(`,"doc_ids":["b","a","a"]`), "") != id(t, ends(`,"doc_ids":["a","b"]`), "") {
		t.Error("the order of ids counts")
	}
	if id(t, ends(`,"selector":{"a":1,"b":[{"d":1.50,"c":"x"}]}`), "") != id(t, ends(`,"selector":{"b":[{"c":"x","d":1.50}], "a":1}`), "") {
		t.Error("the order of a selector's members counts")
	}
	if id(t, ends(`,"selector":{"a":[1,2]}`), "") == id(t, ends(`,"selector":{"a":[2,1]}`), "") {
		t.Error("the order of a selector's elements does not count")
	}
	if id(t, ends(`,"filter":"d/f"`), "code") != id(t, ends(`,"filter":"e/g"`), " code\n") {
		t.Error("the name of a filter counts")
	}
	s := Spec{}
	if s.ID("one", "") == s.ID("other", "") {
		t.Error("servers share ids")
	}
}

// TestMaskProxy: the password of a proxy is shown as asterisks, the rest as it is.
func TestMaskProxy(t *testing.T) {
	for in, want := range map[string]string{
		"http://you:secret@proxy:3128": "http://you:*****@proxy:3128", "socks5://you:@proxy:1/": "socks5://you:*****@proxy:1/",
		"http://you@proxy:3128": "http://you@proxy:3128", "https://proxy": "https://proxy",
		"http://a%40b:c%40d@proxy:1": "http://a%40b:*****@proxy:1", "http://you:se%ret@proxy": "proxy",
	} {
		if got := MaskProxy(in); got != want {
			t.Errorf("%s is shown as %s, want %s", in, got, want)
		}
	}
}

func TestMask(t *testing.T) {
	for in, want := range map[string]string{
		"http://adm:pass@h:5984/a":  "http://h:5984/a/",
		"https://h/a%2Fb/":          "https://h/a%2Fb/",
		"socks5://u:p@127.0.0.1:9":  "socks5://127.0.0.1:9/",
		"plain":                     "plain",
		"http://u:se%cret@h:5984/a": "h:5984/a",
		"http://u:12/s3cr@h/db":     "http://h/db/",
		"http://u:12/s3cr@h:1":      "http://h:1/",
	} {
		if got := Mask(in); got != want {
			t.Errorf("%s: %s, not %s", in, got, want)
		}
	}
}

// TestSlashesInPasswords: they need not be escaped, and no URL that has an account, or a
// host without one, is read in another way.
func TestSlashesInPasswords(t *testing.T) {
	for in, want := range map[string][3]string{
		"http://u:12/s3cr@h/db":            {"u", "12/s3cr", "http://h/db/"},
		"https://u:a/b/c@h:6984/p/db":      {"u", "a/b/c", "https://h:6984/p/db/"},
		"http://u:/@h/db":                  {"u", "/", "http://h/db/"},
		"http://u:a/b@c@h/db":              {"u", "a/b@c", "http://h/db/"},
		"http://u:%2F/%40@h/a%2Fb":         {"u", "//@", "http://h/a%2Fb/"},
		"http://u%40x:1/2@h/db":            {"u@x", "1/2", "http://h/db/"},
		"http://u:pass@h/db":               {"u", "pass", "http://h/db/"},
		"http://u:pass@h/at@home/db":       {"u", "pass", "http://h/at@home/db/"},
		"http://h/at@home/db":              {"", "", "http://h/at@home/db/"},
		"http://h:5984/db":                 {"", "", "http://h:5984/db/"},
		"http://h:5984/at%40home/db":       {"", "", "http://h:5984/at%40home/db/"},
		"http://[fe80::1]/at@home/db":      {"", "", "http://[fe80::1]/at@home/db/"},
		"http://[fe80::1]:5984/at@home/db": {"", "", "http://[fe80::1]:5984/at@home/db/"},
	} {
		s, err := Parse([]byte(`{"source":"`+in+`","target":"http://h/b","proxy":"http://p:w/o@proxy:3128"}`), Defaults{})
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if got := [3]string{s.Source.Username, s.Source.Password, s.Source.URL}; got != want {
			t.Errorf("%s: %q, not %q", in, got, want)
		}
		if s.Source.Proxy != "http://p:w%2Fo@proxy:3128" {
			t.Errorf("the proxy: %s", s.Source.Proxy)
		}
	}
	for _, in := range []string{"http://u:12/s3cr@", "http://u:12/s3cr@h", "http://u:12/s3cr@/db", "http://u:pa/ss", "http://:/@"} {
		if _, err := Parse([]byte(`{"source":"`+in+`","target":"http://h/b"}`), Defaults{}); !fault.Is(err, fault.BadRequest) {
			t.Errorf("%s: %v", in, err)
		}
	}
}

// FuzzParse holds that no body makes the parser fail in another way than by a
// refusal, and that what may be shown of an address holds no password.
func FuzzParse(f *testing.F) {
	f.Add([]byte(ends(`,"filter":"d/f","query_params":{"a":1}`)))
	f.Add([]byte(`{"source":{"url":"http://u:s3cret@h/a","auth":{"basic":{"username":"u","password":"s3cret"}}},"target":"b"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		s, err := Parse(body, Defaults{})
		if err != nil {
			if !fault.Is(err, fault.BadRequest) {
				t.Errorf("%v", err)
			}
			return
		}
		if id := s.ID("uuid", ""); len(id.Base) != 32 {
			t.Errorf("%v", id)
		}
		for _, a := range []Address{s.Source, s.Target} {
			if word := a.Password; len(word) > 3 && strings.Contains(Mask(a.URL), word+"@") {
				t.Errorf("%s shows %s", Mask(a.URL), word)
			}
		}
	})
}

// What a request or the configuration may ask for costs memory of the node.
func TestOptionsAreBounded(t *testing.T) {
	most := Options{Workers: mostWorkers, BatchSize: mostBatch, Connections: mostConnections}
	s, err := Parse([]byte(`{"source":"a","target":"b","worker_batch_size":2147483647,"worker_processes":2147483647,"http_connections":2147483647}`), Defaults{})
	if err != nil || s.Options != most {
		t.Errorf("%+v, %v", s, err)
	}
	s, err = Parse([]byte(`{"source":"a","target":"b"}`), Defaults{Options: Options{Workers: math.MaxInt, BatchSize: math.MaxInt, Connections: math.MaxInt}})
	if err != nil || s.Options != most {
		t.Errorf("%+v, %v", s, err)
	}
}
