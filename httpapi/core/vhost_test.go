package core

import (
	"testing"

	"divan/cluster/config"
)

func TestVHosts(t *testing.T) {
	for name, tt := range map[string]struct {
		lines map[string]string
		want  map[string]string // host and path → target; empty: as it is
	}{
		"one host": {map[string]string{"example.com": "/db"}, map[string]string{
			"example.com/": "/db/", "example.com": "/db/", "example.com/a//b": "/db/a/b", "example.com:5984/a": "/db/a", "EXAMPLE.com/a": "/db/a",
			"www.example.com/a": "", "com/a": "", "/a": "", "example.com/_utils/x": "", "example.com/_session": "", "example.com/_uuids": "",
			"example.com/_users/_all_docs": "", "example.com/_all_dbs": "/db/_all_dbs", "example.com/a%2Fb": "/db/a%2Fb",
		}},
		"a rewrite": {map[string]string{"example.com": "/db/_design/app/_rewrite"}, map[string]string{
			"example.com/": "/db/_design/app/_rewrite/", "example.com/api/a": "/db/_design/app/_rewrite/api/a",
		}},
		"the root": {map[string]string{"example.com": "/"}, map[string]string{"example.com/": "/", "example.com/a": "/a"}},
		"a star": {map[string]string{"*.example.com": "/*"}, map[string]string{
			"a.example.com/x": "/a/x", "b.a.example.com/x": "/a/b/x", "example.com/x": "",
		}},
		"a star without a place": {map[string]string{"*.example.com": "/db"}, map[string]string{"a.b.example.com/x": "/db/x"}},
		"any host":               {map[string]string{"*": "/db"}, map[string]string{"localhost/x": "/db/x", "/x": ""}},
		"variables": {map[string]string{":ddoc.:db.example.com": "/:db/_design/:ddoc/_rewrite", ":db.example.com": "/:db"}, map[string]string{
			"app.shop.example.com/x": "/shop/_design/app/_rewrite/x", "shop.example.com/": "/shop/", "a.b.c.example.com/": "",
		}},
		"a variable of nothing": {map[string]string{":db.example.com": "/:other"}, map[string]string{"a.example.com/": "/undefined/"}},
		"a path": {map[string]string{"example.com/shop": "/db", "example.com/shop/old": "/old", "example.com": "/rest"}, map[string]string{
			"example.com/shop": "/db/", "example.com/shop/a": "/db/a", "example.com/shop/old/a": "/old/a", "example.com/shops": "/rest/shops", "example.com/": "/rest/",
		}},
		"ports": {map[string]string{"example.com:80": "/eighty", "example.com:81": "/next"}, map[string]string{
			"example.com:80/": "/eighty/", "example.com:81/": "/next/", "example.com/": "", "example.com:82/": "",
		}},
		"any port comes first":             {map[string]string{"example.com:80": "/eighty", "example.com": "/any"}, map[string]string{"example.com:80/": "/any/"}},
		"a name before a variable":         {map[string]string{"a.example.com": "/name", ":x.example.com": "/:x", "*.example.com": "/star"}, map[string]string{"a.example.com/": "/name/", "b.example.com/": "/b/", "c.b.example.com/": "/star/"}},
		"what is no port":                  {map[string]string{"example.com:port": "/db"}, map[string]string{"example.com:port/": "/db/"}},
		"an address":                       {map[string]string{"127.0.0.1:21600": "/db"}, map[string]string{"127.0.0.1:21600/x": "/db/x", "127.0.0.2:21600/x": ""}},
		"nothing":                          {map[string]string{"example.com": ""}, map[string]string{"example.com/": ""}},
		"a path alone, which fits no host": {map[string]string{"/x": "/db"}, map[string]string{"example.com/x": "", "/x": ""}},
	} {
		v := newVHosts(config.FromValues(config.Values{"vhosts": tt.lines}))
		for from, want := range tt.want {
			host, path := from, "/"
			for i := range from {
				if from[i] == '/' {
					host, path = from[:i], from[i:]
					break
				}
			}
			target, below, ok := v.match(host, path)
			if target != want || ok != (want != "") || ok && below == "" {
				t.Errorf("%s: %s: %q %q %v, want %q", name, from, target, below, ok, want)
			}
		}
	}
}

func FuzzVHosts(f *testing.F) {
	f.Add("*.example.com:80/a", "/*/:b", "x.example.com:80", "/a/b")
	f.Fuzz(func(t *testing.T, from, to, host, path string) {
		v := newVHosts(config.FromValues(config.Values{"vhosts": {from: to, "example.com": "/db"}}))
		if target, below, ok := v.match(host, path); ok && (target[0] != '/' || below[0] != '/') {
			t.Fatalf("%q %q", target, below)
		}
	})
}
