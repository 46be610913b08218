package auth

import (
	"net"
	"net/http"
	"strings"
)

// Peer returns the address of who sent the request, without the port: the
// socket's, or, when header is not empty ([chttpd] peer_header: there is a
// proxy in front that sets it), the last address in that header. The addresses
// before the last were claimed by somebody further away. A request without the
// header counts as the socket's.
func Peer(r *http.Request, header string) string {
	if header != "" {
		if values := r.Header.Values(header); len(values) > 0 {
			last := values[len(values)-1]
			last = strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:])
			if last != "" {
				return hostOf(last)
			}
		}
	}
	return hostOf(r.RemoteAddr)
}

// hostOf takes the port off an address that has one.
func hostOf(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return strings.Trim(addr, "[]")
	}
	return host
}
