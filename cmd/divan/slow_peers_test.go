package main

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

// TestSlowPeers has three times as many unauthenticated clients as requests may be under
// way: each begins a body and does not go on. Known clients are served meanwhile, logins
// are, and /_up.
func TestSlowPeers(t *testing.T) {
	t.Parallel()
	const most, attackers = 100, 300
	p := startServer(t, append(adminEnviron(), fmt.Sprintf("DIVAN_CHTTPD__MAX_CONNECTIONS=%d", most), "DIVAN_LOG__LEVEL=warn"), "--data", t.TempDir())
	c := newClient(t, p.address)
	c.want(t, "PUT", "/pond0", "", 201)
	clients := map[string]func() error{
		"a client": innocent(t, p.address, 1, false), "a new client": innocent(t, p.address, 1, true),
		"/_up": asking(c, "GET", "/_up", ""), "a login": asking(c, "POST", "/_session", `{"name":"adm","password":"pass"}`),
	}
	for name, beginning := range map[string]string{
		"login": "POST /_session HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{",
		"document that is refused": "PUT /pond0/x HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" +
			"Content-Length: 50\r\n\r\n{",
		"sign-up": "PUT /_users/org.couchdb.user:x HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{",
	} {
		t.Run(name, func(t *testing.T) {
			release := hold(t, p.address, attackers, beginning)
			defer release()
			for what, do := range clients {
				if worst := slowest(t, time.Second, do); worst > 2*time.Second {
					t.Errorf("%s waited for %v", what, worst)
				}
			}
		})
	}
	p.stop()
}

// asking returns a request that has to be answered with 200.
func asking(c *client, method, path, body string) func() error {
	return func() error {
		status, answer, err := c.do(method, path, "application/json", []byte(body))
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("%s %s: %d %s", method, path, status, answer)
		}
		return err
	}
}
