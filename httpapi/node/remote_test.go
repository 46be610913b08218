package node

import (
	"testing"
)

func TestRemoteURL(t *testing.T) {
	for _, tc := range []struct {
		host string
		port int
		want string
	}{
		{"a.example", 0, "http://a.example:5984/_cluster_setup"},
		{"a", 1234, "http://a:1234/_cluster_setup"},
		{"a:1234", 0, "http://a:1234/_cluster_setup"},
		{"a:1234", 1234, "http://a:1234/_cluster_setup"},
		{"a", 6984, "https://a:6984/_cluster_setup"},
		{"http://a", 6984, "http://a:6984/_cluster_setup"},
		{"https://a/", 0, "https://a:6984/_cluster_setup"},
		{"https://a", 443, "https://a:443/_cluster_setup"},
		{"::1", 0, "http://[::1]:5984/_cluster_setup"},
		{"[::1]", 0, "http://[::1]:5984/_cluster_setup"},
		{"[fd00::1]:99", 0, "http://[fd00::1]:99/_cluster_setup"},
		{"", 0, ""},
		{"a:1", 2, ""},
		{"a:x", 0, ""},
		{"user@a", 0, ""},
		{"a/b", 0, ""},
		{"a#b", 0, ""},
		{"x::y", 0, ""},
		{"gopher://a", 0, ""},
		{"a:99999", 0, ""},
	} {
		got := ""
		if u, err := (&remoteCall{host: tc.host, port: tc.port}).url(); err == nil {
			got = u.String()
		}
		if got != tc.want {
			t.Errorf("%q %d: %q, want %q", tc.host, tc.port, got, tc.want)
		}
	}
}
