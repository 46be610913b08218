package httpapi

import "testing"

// A security object says one thing to everybody.
func TestSecurityNamesOnce(t *testing.T) {
	a := nodeAPI(t, nil)
	twice := func(name string) string {
		return `{"error":"bad_request","reason":"The security object has the member \"` + name + `\" twice."}`
	}
	const object = "{\"error\":\"bad_request\",\"reason\":\"Request body must be a JSON object\"}"
	follow(t, a, []visit{
		{"adm", "PUT", "/db", "", 201, ""},
		{"adm", "PUT", "/db/_security", `{"members":{"names":["a"]},"x":{"y":1,"y":2},"x":1}`, 400, twice("x")},
		{"adm", "PUT", "/db/_security", `{"members":{"names":["a"]},"m\u0065mbers":{}}`, 400, twice("members")},
		{"adm", "PUT", "/db/_security", `{"admins":{"names":["a"],"names":[]}}`, 400, twice("names")},
		{"adm", "PUT", "/db/_security", `{"members":{"roles":[],"roles":[]}}`, 400, twice("roles")},
		{"adm", "PUT", "/db/_security", `{"readers":{"roles":[],"roles":[]}}`, 400, twice("roles")},
		{"adm", "PUT", "/db/_security", `[]`, 400, object},
		{"adm", "PUT", "/db/_security", `{"members":[1]}`, 400, ""},
		{"adm", "PUT", "/db/_security", `{"members":{"names":["a"]},"x":{"y":1,"y":2}}`, 200, ""},
		{"adm", "GET", "/db/_security", "", 200, `{"members":{"names":["a"]},"x":{"y":1,"y":2}}`},
	})
}
