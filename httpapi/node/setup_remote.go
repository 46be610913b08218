package node

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"divan/cluster/config"
	"divan/httpapi/core"
	"divan/storage/fault"
)

// This file asks the HTTP port of a node that does not belong to the cluster yet: the only
// way to reach one. The administrator's password, and the cluster's secret, travel as they
// do in CouchDB; over plain HTTP any listener on the network can read them.

const (
	remoteTimeout = 20 * time.Second // for the answer of a node that is being set up
	maxRemote     = 64 << 10         // bytes of its answer that are read
	defaultPort   = 5984
	securePort    = 6984 // [ssl] port: HTTPS without being told
)

// remoteCall is one request to the set-up endpoint of a node.
type remoteCall struct {
	host           string // host name or address, perhaps behind "http://" or "https://"
	port           int    // 0: the default one
	user, password string
	body           map[string]any
}

// remoteAnswer is the answer of the node.
type remoteAnswer struct {
	status  int
	Reason  string `json:"reason"`
	Name    string `json:"name"`
	Address string `json:"address"`
}

// errNoRemote says that no server at the address answers as a node would.
var errNoRemote = errors.New("no node answers there")

// url returns where the request goes.
func (r *remoteCall) url() (*url.URL, error) {
	scheme, host, told := strings.Cut(r.host, "://")
	if !told {
		scheme, host = "http", r.host
	}
	host = strings.TrimSuffix(host, "/")
	port := r.port
	if h, p, err := net.SplitHostPort(host); err == nil {
		n, err := strconv.Atoi(p)
		if err != nil || port != 0 && port != n {
			return nil, errNoRemote
		}
		host, port = h, n
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	switch {
	case host == "" || strings.ContainsAny(host, "/?#@ \t\r\n%[]\\\"'<>") || port > maxPort:
		return nil, errNoRemote
	case strings.Contains(host, ":") && net.ParseIP(host) == nil:
		return nil, errNoRemote
	case scheme != "http" && scheme != "https":
		return nil, errNoRemote
	case port == 0 && scheme == "https":
		port = securePort
	case port == 0:
		port = defaultPort
	case port == securePort && !told:
		scheme = "https"
	}
	return &url.URL{Scheme: scheme, Host: net.JoinHostPort(host, strconv.Itoa(port)), Path: "/_cluster_setup"}, nil
}

// askRemote sends a request to the set-up endpoint of another node. The error
// says that no node answered.
func askRemote(ctx context.Context, a *core.API, cfg *config.Snapshot, r remoteCall) (*remoteAnswer, error) {
	to, err := r.url()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(r.body)
	if err != nil {
		return nil, fmt.Errorf("encode a request to a node: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, remoteTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("request to a node: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	if r.user != "" {
		req.SetBasicAuth(r.user, r.password)
	}
	client, err := remoteClient(a, cfg)
	if err != nil {
		return nil, err
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	answer := &remoteAnswer{status: res.StatusCode}
	text, err = io.ReadAll(io.LimitReader(res.Body, maxRemote))
	_ = res.Body.Close() // what matters has been read
	if err != nil {
		return nil, err
	}
	if json.Unmarshal(text, answer) != nil {
		return nil, errNoRemote // something that is no node
	}
	return answer, nil
}

// remoteClient returns a client that follows no redirects and keeps no connection.
func remoteClient(a *core.API, cfg *config.Snapshot) (*http.Client, error) {
	dial := a.Deps.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: remoteTimeout / 2}).DialContext
	}
	secret := &tls.Config{MinVersion: tls.VersionTLS12}
	if file := cfg.SSL.CACertFile; file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read [ssl] cacert_file: %w", err)
		}
		if secret.RootCAs, err = x509.SystemCertPool(); err != nil {
			secret.RootCAs = x509.NewCertPool()
		}
		secret.RootCAs.AppendCertsFromPEM(text)
	}
	return &http.Client{
		Transport: &http.Transport{
			DialContext: dial, TLSClientConfig: secret, TLSHandshakeTimeout: remoteTimeout / 2, DisableKeepAlives: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// refused turns the answer of a node into a refusal; what names the action,
// for the text.
func (r *remoteAnswer) refused(what string) error {
	switch {
	case r.status == http.StatusOK || r.status == http.StatusCreated:
		return nil
	case r.status == http.StatusUnauthorized || r.status == http.StatusForbidden:
		return fault.New(fault.BadRequest, what+" failed. Invalid admin credentials,") // CouchDB's text, comma included
	case r.status >= http.StatusInternalServerError:
		return fault.New(fault.Unavailable, what+" failed. The node there says: "+r.Reason)
	case r.Reason == "":
		return fault.New(fault.BadRequest, what+" failed. Invalid Host and/or Port.")
	}
	return fault.New(fault.BadRequest, r.Reason)
}

// unreachable is the refusal when no node answers, or none that is trusted.
func unreachable(what string, err error) error {
	text := what + " failed. Invalid Host and/or Port."
	var untrusted *tls.CertificateVerificationError
	if errors.As(err, &untrusted) {
		text += " The certificate there is not accepted (" + untrusted.Err.Error() + "); [ssl] cacert_file says who signs."
	}
	return fault.Wrap(fault.BadRequest, text, err)
}
