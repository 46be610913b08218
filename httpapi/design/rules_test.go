package design

import (
	"testing"

	"divan/httpapi/core"
	"divan/storage/fault"
)

func TestRewriteByRules(t *testing.T) {
	const rules = `[
		{"from":"","to":"_show/root"},
		{"from":"doc/:id","to":"../../:id","method":"GET"},
		{"from":"one/:n","to":"_view/n","query":{"key":":n","limit":1},"formats":{"n":"int"}},
		{"from":"flag/:b","to":"x","query":{"b":":b","list":[":b","c"]},"formats":{"b":"bool"}},
		{"from":"keys/:a/:b","to":"_view/n","query":{"startkey":[":a"],"endkey":[":a",{}],"keys":"*"}},
		{"from":"rest/*","to":"_show/*"},
		{"from":"first/*","to":"x","query":{"first":"*"}},
		{"from":"none","to":":gone/:q"}]`
	for _, tt := range []struct {
		method, name string
		path         []string
		query        []core.Param
		want         string // path and query, or the refusal
	}{
		{"GET", "nothing", nil, nil, "_show/root"},
		{"GET", "a variable", []string{"doc", "a b/c"}, nil, "../../a%20b%2Fc?id=a%20b%2Fc"},
		{"PUT", "another method", []string{"doc", "a"}, nil, "missing"},
		{"GET", "too long", []string{"doc", "a", "b"}, nil, "missing"},
		{"GET", "too short", []string{"doc"}, nil, "missing"},
		{"GET", "a number", []string{"one", "2"}, nil, "_view/n?n=2&key=2&limit=1"},
		{"GET", "no number", []string{"one", "x"}, nil, "_view/n?n=x&key=%22x%22&limit=1"},
		{"GET", "a boolean", []string{"flag", "TRUE"}, nil, "x?b=true&list=%5Btrue%2C%22c%22%5D"},
		{"GET", "arrays", []string{"keys", "1", "2"}, nil, "_view/n?a=1&b=2&startkey=%5B%221%22%5D&endkey=%5B%221%22%2C%7B%7D%5D&keys=%22%2A%22"},
		{"GET", "the rest", []string{"rest", "a", "..", "b"}, nil, "_show/a/../b"},
		{"GET", "no rest", []string{"rest"}, nil, "_show"},
		{"GET", "the first of the rest", []string{"first", "a", "b"}, nil, "x?first=a"},
		{"GET", "what is not bound", []string{"none"}, []core.Param{{Name: "q", Value: "v"}}, "undefined/v?q=v"},
		{"GET", "the rule's query stands", []string{"one", "2"}, []core.Param{{Name: "limit", Value: "9"}, {Name: "key", Value: "7"}, {Name: "x", Value: "&"}}, "_view/n?n=2&x=%26&key=2&limit=1"},
		{"GET", "a key that is no JSON", []string{"doc", "a"}, []core.Param{{Name: "key", Value: "{"}}, "invalid UTF-8 JSON"},
	} {
		to, err := rewriteByRules([]byte(rules), tt.method, tt.path, tt.query, true)
		got := to.path + to.query
		if err != nil {
			got = fault.Reason(err)
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestMalformedRules(t *testing.T) {
	for rules, want := range map[string]string{
		`[{"to":"a"}]`:          "",
		`[{"from":"x"}]`:        "invalid_rewrite_target",
		`[{"from":"x","to":5}]`: "invalid_rewrite_target",
		`[{"to":"a"},{"from":"x","to":"../../../b"}]`: "too many ../.. segments",
		`[{"from":"../../../x","to":"b"}]`:            "too many ../.. segments",
		`[]`:                                          "missing",
	} {
		if _, err := rewriteByRules([]byte(rules), "GET", []string{"p"}, nil, true); fault.Reason(err) != want {
			t.Errorf("%s: %v, want %s", rules, err, want)
		}
	}
	to, err := rewriteByRules([]byte(`[{"to":"../../../b"}]`), "GET", nil, nil, false)
	if err != nil || normalized("/db/_design/d/"+to.path) != "/b" {
		t.Errorf("rules that may lead anywhere: %v, %v", to, err)
	}
}

func TestNormalized(t *testing.T) {
	for path, want := range map[string]string{
		"": "/", "//a//b/": "/a/b", "/a/./b": "/a/b", "/a/../b": "/b", "/../../a": "/a", "/a/b/../../../c": "/c",
	} {
		if got := normalized(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

func TestParseAnswer(t *testing.T) {
	for object, want := range map[string]string{
		`{}`:                          "",
		`{"code":302,"body":"x"}`:     "",
		`{"base64":"aGk="}`:           "",
		`{"stop":true,"json":[1]}`:    "",
		`{"headers":{"A":"b","C":5}}`: "",
		`{"code":"x"}`:                `Invalid data from external server: {<<"code">>,<<"x">>}`,
		`{"code":99}`:                 `Invalid data from external server: {<<"code">>,99}`,
		`{"base64":"?"}`:              `Invalid data from external server: {<<"base64">>,<<"?">>}`,
		`{"headers":[]}`:              `Invalid data from external server: {<<"headers">>,[]}`,
		`{"foo":1}`:                   `Invalid data from external server: {<<"foo">>,1}`,
	} {
		if _, err := parseAnswer([]byte(object)); fault.Reason(err) != want {
			t.Errorf("%s: %v, want %s", object, err, want)
		}
	}
}

// What a function makes of what a client sent must not become a header of its own, nor
// take the framing of the answer from the server.
func TestHeadersOfFunctions(t *testing.T) {
	for header, want := range map[core.Param]bool{
		{Name: "X-Own", Value: "a\tb"}: true, {Name: "Location", Value: "/x"}: true, {Name: "X-Own", Value: "ü"}: true,
		{Name: "X-Own", Value: "a\r\nSet-Cookie: x"}: false, {Name: "X Own", Value: "a"}: false, {Name: "X:", Value: "a"}: false,
		{Name: "", Value: "a"}: false, {Name: "Content-Length", Value: "1"}: false, {Name: "Transfer-Encoding", Value: "chunked"}: false,
	} {
		if got := valid(header.Name, header.Value); got != want {
			t.Errorf("%q: %t", header, got)
		}
	}
}

func TestParseProposal(t *testing.T) {
	for made, want := range map[string]string{
		`"x"`: "", `{"path":"x","foo":1}`: "", `{"code":200,"body":"x","headers":{}}`: "",
		`5`: "bad rewrite", `["a"]`: "bad rewrite", `{"path":5}`: "bad path", `{"method":1}`: "bad method", `{"body":{}}`: "bad body",
		`{"code":"x"}`: "bad code", `{"code":600}`: "bad code", `{"query":"a=1"}`: "bad query", `{"headers":[]}`: "bad headers",
		`{"query":{"a":1}}`: `object key/value must be strings <<"a">>=1`,
	} {
		if _, err := parseProposal([]byte(made)); fault.Reason(err) != want {
			t.Errorf("%s: %v, want %s", made, err, want)
		}
	}
}
