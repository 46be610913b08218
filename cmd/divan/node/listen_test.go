package node

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// set changes the configuration through HTTP.
func (h *testNode) set(section, key, value string) {
	h.t.Helper()
	h.want("PUT", "/_node/_local/_config/"+section+"/"+key, strconv.Quote(value), "200")
}

// free returns a port that is free on every address for now.
func free(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// moves waits until the plain listener is at an address.
func (h *testNode) moves(address string) {
	h.t.Helper()
	eventually(h.t, "the node listens on "+address, func() bool { return h.node.Addr().String() == address })
}

func refusesConnections(address string) bool {
	c, err := net.Dial("tcp", address)
	if err == nil {
		_ = c.Close()
	}
	return err != nil
}

// TestMoves gives the node other addresses while it runs.
func TestMoves(t *testing.T) {
	dir, first, second := t.TempDir(), free(t), free(t)
	cfg := onDisk(dir)
	cfg.Listen = fmt.Sprintf("127.0.0.1:%d", first)
	h := start(t, cfg)
	upload := h.begin("PUT /_users/org.couchdb.user:frog", `{"name":"frog","type":"user","roles":[],"password":"x"}`)
	h.set("chttpd", "port", strconv.Itoa(second))
	h.moves(fmt.Sprintf("127.0.0.1:%d", second))
	eventually(t, "the first port is closed", func() bool { return refusesConnections(cfg.Listen) })
	if got := upload.finish(); !strings.HasPrefix(got, "HTTP/1.1 201") {
		t.Errorf("a request on the first port: %s", got)
	}
	// The same port on all addresses includes the one in use.
	h.want("POST", "/_cluster_setup", `{"action":"enable_single_node","bind_address":"0.0.0.0"}`, `201 {"ok":true}`)
	h.moves(fmt.Sprintf("0.0.0.0:%d", second))
	h.want("GET", "/_up", "", "200")
	h.set("chttpd", "bind_address", "127.0.0.1")
	h.moves(fmt.Sprintf("127.0.0.1:%d", second))
	h.end()
	again := start(t, cfg) // what was set through HTTP is stronger than the flag
	if got := again.node.Addr().String(); got != fmt.Sprintf("127.0.0.1:%d", second) {
		t.Errorf("after a restart the node listens on %s", got)
	}
	again.end()
}

// TestCannotMove wants addresses that are not to be had: the node stays, and
// starts where files, environment and flags say.
func TestCannotMove(t *testing.T) {
	dir, port := t.TempDir(), free(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	// With another listener on the port at another address, all addresses cannot be had, even
	// after our own one is given up.
	neighbour, err := net.Listen("tcp", fmt.Sprintf("127.0.0.2:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = neighbour.Close() }()
	cfg := onDisk(dir)
	cfg.Listen = fmt.Sprintf("127.0.0.1:%d", port)
	h := start(t, cfg)
	for _, tc := range []struct{ key, value, back string }{
		{"bind_address", "0.0.0.0", "127.0.0.1"},
		{"bind_address", "no.such.host.invalid", "127.0.0.1"},
		{"port", strconv.Itoa(taken.Addr().(*net.TCPAddr).Port), strconv.Itoa(port)},
	} {
		before := h.logs.Len()
		h.set("chttpd", tc.key, tc.value)
		eventually(t, "the refusal is in the log", func() bool { return h.logged(before, "cannot listen") })
		eventually(t, "the node is back", func() bool {
			answer, err := h.try("GET", "http://"+cfg.Listen+"/_up", "")
			return err == nil && strings.HasPrefix(answer, "200")
		})
		h.set("chttpd", tc.key, tc.back)
	}
	h.set("chttpd", "port", strconv.Itoa(taken.Addr().(*net.TCPAddr).Port))
	h.end()
	again := start(t, cfg)
	if got := again.node.Addr().String(); got != cfg.Listen {
		t.Errorf("the node listens on %s", got)
	}
	if !again.logged(0, "settings made through HTTP") {
		t.Error("the log does not say why")
	}
	again.end()
}

// TestStaysWithoutAdmin: the last administrator goes, then the address is to be opened to
// every client.
func TestStaysWithoutAdmin(t *testing.T) {
	cfg := Config{DataDir: t.TempDir(), Listen: "127.0.0.1:0", Environ: []string{"DIVAN_CHTTPD_AUTH__ITERATIONS=1"}}
	h := start(t, cfg)
	before := h.logs.Len()
	h.node.Config().SetVolatile("chttpd", "bind_address", "0.0.0.0")
	eventually(t, "the refusal is in the log", func() bool { return h.logged(before, "cannot listen") })
	if got := h.listening("HTTP", before); got != "" {
		t.Errorf("the node listens on %s", got)
	}
	h.end()
}

// TestMetricsPort serves the figures without a password on a port of their
// own.
func TestMetricsPort(t *testing.T) {
	h := start(t, onDisk(t.TempDir(), "DIVAN_PROMETHEUS__ADDITIONAL_PORT=true", "DIVAN_PROMETHEUS__PORT=0"))
	address := h.listening("metrics", 0)
	answer, err := h.try("GET", "http://"+address+"/_node/_local/_prometheus", "")
	if err != nil || !strings.HasPrefix(answer, "200") || !strings.Contains(answer, "couchdb_") {
		t.Errorf("%.200s, %v", answer, err)
	}
	h.set("prometheus", "additional_port", "false")
	eventually(t, "the port is closed", func() bool { return refusesConnections(address) })
	h.end()
}

// authority makes certificates.
type authority struct {
	t      *testing.T
	dir    string
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	serial int64
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir(), serial: 1}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.write("ca.pem", "CERTIFICATE", der)
	return a
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

func (a *authority) write(name, kind string, der []byte) {
	a.t.Helper()
	if err := os.WriteFile(a.file(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// issue writes name.pem and name.key with the next serial number.
func (a *authority) issue(name string) tls.Certificate {
	a.t.Helper()
	a.serial++
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.serial), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(name+".pem", "CERTIFICATE", der)
	der, err = x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(name+".key", "EC PRIVATE KEY", der)
	pair, err := tls.LoadX509KeyPair(a.file(name+".pem"), a.file(name+".key"))
	if err != nil {
		a.t.Fatal(err)
	}
	return pair
}

// get asks over TLS and returns the answer and the serial number of the
// server's certificate.
func (a *authority) get(url string, change func(*tls.Config)) (status int, serial int64, err error) {
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	c := &tls.Config{RootCAs: roots}
	if change != nil {
		change(c)
	}
	transport := &http.Transport{TLSClientConfig: c}
	defer transport.CloseIdleConnections()
	res, err := (&http.Client{Transport: transport}).Get(url)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = res.Body.Close() }()
	return res.StatusCode, res.TLS.PeerCertificates[0].SerialNumber.Int64(), nil
}

// TestTLS switches TLS on while the node runs, then makes it stricter.
func TestTLS(t *testing.T) {
	a := newAuthority(t)
	a.issue("server")
	h := start(t, onDisk(t.TempDir()))
	h.set("ssl", "cert_file", a.file("server.pem"))
	h.set("ssl", "key_file", a.file("server.key"))
	h.set("ssl", "port", "0")
	address := h.tls(func() { h.set("ssl", "enable", "true") })
	if status, serial, err := a.get("https://"+address+"/_up", nil); status != 200 || serial != 2 || err != nil {
		t.Errorf("status %d, certificate %d, %v", status, serial, err)
	}
	// A certificate is renewed in its place.
	a.issue("server")
	h.want("POST", "/_node/_local/_config/_reload", "", "200")
	eventually(t, "the new certificate is shown", func() bool {
		_, serial, err := a.get("https://"+address+"/_up", nil)
		return err == nil && serial == 3
	})
	a.issue("server")
	h.node.Renew()
	eventually(t, "the next certificate is shown", func() bool {
		_, serial, err := a.get("https://"+address+"/_up", nil)
		return err == nil && serial == 4
	})
	address = h.tls(func() { h.set("ssl", "tls_versions", "[tlsv1.3]") })
	if _, _, err := a.get("https://"+address+"/_up", func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }); err == nil {
		t.Error("TLS 1.2 is spoken where only 1.3 should be")
	}
	h.set("ssl", "cacert_file", a.file("ca.pem"))
	h.set("ssl", "fail_if_no_peer_cert", "true")
	address = h.tls(func() { h.set("ssl", "verify_ssl_certificates", "true") })
	if _, _, err := a.get("https://"+address+"/_up", nil); err == nil {
		t.Error("a client without a certificate is let in")
	}
	pair := a.issue("client")
	status, _, err := a.get("https://"+address+"/_up", func(c *tls.Config) { c.Certificates = []tls.Certificate{pair} })
	if status != 200 || err != nil {
		t.Errorf("a client with a certificate: %d, %v", status, err)
	}
	// What cannot be read changes nothing.
	for _, bad := range []string{"cert_file", "cacert_file"} {
		before := h.logs.Len()
		h.set("ssl", bad, a.file("server.key"))
		eventually(t, "the refusal is in the log", func() bool { return h.logged(before, "cannot listen") })
		if refusesConnections(address) {
			t.Errorf("with a bad %s the port is closed", bad)
		}
		h.set("ssl", bad, a.file(map[string]string{"cert_file": "server.pem", "cacert_file": "ca.pem"}[bad]))
	}
	h.set("ssl", "enable", "false")
	eventually(t, "the port is closed", func() bool { return refusesConnections(address) })
	h.end()
}

// tls does something that opens a TLS listener and returns its address.
func (h *testNode) tls(change func()) (address string) {
	h.t.Helper()
	before := h.logs.Len()
	change()
	eventually(h.t, "TLS is spoken", func() bool {
		address = h.listening("HTTPS", before)
		return address != ""
	})
	return address
}
