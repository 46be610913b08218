package remote

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/youmark/pkcs8"

	"divan/replicator/endpoint"
	"divan/replicator/spec"
)

// tunnel joins two connections until one of them ends.
func tunnel(a, b net.Conn) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(a, b)
		_ = a.Close()
	}()
	_, _ = io.Copy(b, a)
	_ = b.Close()
	<-done
}

// proxies runs a server that is a proxy of both kinds on one port, and notes
// who used it.
func (p *peer) proxies(seen *[]string) {
	p.t.Helper()
	host := p.boot("10.0.0.3")
	l, err := host.Listen(p.t.Context(), "0.0.0.0:3128")
	if err != nil {
		p.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r := bufio.NewReader(c)
			if first, _ := r.Peek(1); len(first) == 1 && first[0] == 5 {
				*seen = append(*seen, socks5(host.Dial, c, r))
			} else {
				*seen = append(*seen, plainProxy(host.Dial, c, r))
			}
		}
	}()
	p.t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
}

type dial func(context.Context, string) (net.Conn, error)

// plainProxy serves one connection to an HTTP proxy.
func plainProxy(to dial, c net.Conn, r *bufio.Reader) string {
	req, err := http.ReadRequest(r)
	if err != nil {
		return err.Error()
	}
	user, _, _ := strings.Cut(req.Header.Get("Proxy-Authorization"), "\n")
	up, err := to(req.Context(), req.Host)
	if err != nil {
		return err.Error()
	}
	if req.Method == http.MethodConnect {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
	} else {
		req.Header.Del("Proxy-Authorization")
		req.Close = true
		_ = req.Write(up)
	}
	go tunnel(c, up)
	return req.Method + " " + req.Host + " " + user
}

// socks5 serves one connection to a SOCKS5 proxy.
func socks5(to dial, c net.Conn, r *bufio.Reader) string {
	read := func(n int) []byte {
		b := make([]byte, n)
		_, _ = io.ReadFull(r, b)
		return b
	}
	read(int(read(2)[1]))
	_, _ = c.Write([]byte{5, 2})
	user := read(int(read(2)[1]))
	password := read(int(read(1)[0]))
	_, _ = c.Write([]byte{1, 0})
	var host string
	if head := read(4); head[3] == 3 {
		host = string(read(int(read(1)[0])))
	} else {
		host = net.IP(read(4)).String()
	}
	address := fmt.Sprintf("%s:%d", host, binary.BigEndian.Uint16(read(2)))
	up, err := to(context.Background(), address)
	if err != nil {
		return err.Error()
	}
	_, _ = c.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
	go tunnel(c, up)
	return fmt.Sprintf("socks5 %s %s:%s", address, user, password)
}

// Proxies of all kinds are gone through, with their credentials, which the
// server does not see.
func TestProxies(t *testing.T) {
	for scheme, want := range map[string]string{
		"http":   "GET " + serverIP + ":5984 Basic dTpw",
		"socks5": "socks5 " + serverIP + ":5984 u:p",
	} {
		with(t, func(w http.ResponseWriter, r *http.Request) {
			answerWith(w, 200, fmt.Sprintf(`{"db_name":%q}`, r.Header.Get("Proxy-Authorization")+r.URL.RequestURI()))
		}, func(t *testing.T, p *peer) {
			t.Helper()
			var seen []string
			p.proxies(&seen)
			d := p.open(spec.Address{Proxy: scheme + "://u:p@10.0.0.3:3128"})
			info, err := d.Info(t.Context())
			synctest.Wait()
			if err != nil || info.Name != "/db/" || !slices.Equal(seen, []string{want}) {
				t.Errorf("%s: %+v %v, seen %q", scheme, info, err, seen)
			}
			d.client.net.Close()
		})
	}
}

// chain makes certificates: a root, depth intermediate ones, and one for the
// server. It returns what the server shows, and the root as PEM.
func chain(t *testing.T, depth int) (tls.Certificate, []byte) {
	t.Helper()
	var parent *x509.Certificate
	var parentKey *ecdsa.PrivateKey
	var out tls.Certificate
	var root []byte
	for i := range depth + 2 {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		c := &x509.Certificate{
			SerialNumber: big.NewInt(int64(i + 1)), Subject: pkix.Name{CommonName: fmt.Sprint("c", i)},
			NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0),
			IsCA: i <= depth, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		}
		if i > depth {
			c.IPAddresses = []net.IP{net.ParseIP(serverIP)}
		}
		signer, signerKey := parent, parentKey
		if i == 0 {
			signer, signerKey = c, key
		}
		der, err := x509.CreateCertificate(rand.Reader, c, signer, &key.PublicKey, signerKey)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			root = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
		} else {
			out.Certificate = append([][]byte{der}, out.Certificate...)
		}
		out.PrivateKey = key
		if parent, err = x509.ParseCertificate(der); err != nil {
			t.Fatal(err)
		}
		parentKey = key
	}
	return out, root
}

// file writes a file and returns its name.
func file(t *testing.T, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Certificates are checked when that is asked for, and this node shows its own.
func TestTLS(t *testing.T) {
	shown, root := chain(t, 2)
	_, other := chain(t, 0)
	mine, mineRoot := chain(t, 0)
	key, err := x509.MarshalECPrivateKey(mine.PrivateKey.(*ecdsa.PrivateKey)) //nolint:forcetypeassert // chain makes no other
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.EncryptPEMBlock(rand.Reader, "EC PRIVATE KEY", key, []byte("word"), x509.PEMCipherAES256) //nolint:staticcheck // what old files hold
	if err != nil {
		t.Fatal(err)
	}
	modern, err := pkcs8.MarshalPrivateKey(mine.PrivateKey, []byte("word"), nil)
	if err != nil {
		t.Fatal(err)
	}
	modernFile := file(t, "key8.pem", pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: modern}))
	trusted, foreign := file(t, "root.pem", root), file(t, "other.pem", other)
	cert := file(t, "cert.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: mine.Certificate[0]}))
	keyFile := file(t, "key.pem", pem.EncodeToMemory(secret))
	callers := x509.NewCertPool()
	callers.AppendCertsFromPEM(mineRoot)
	for _, tc := range []struct {
		name string
		tls  TLS
		want string
		ok   bool
	}{
		{"unchecked", TLS{}, "nobody", true},
		{"trusted", TLS{Verify: true, TrustedFile: trusted, Depth: 2}, "nobody", true},
		{"chain too long", TLS{Verify: true, TrustedFile: trusted, Depth: 1}, "", false},
		{"not trusted", TLS{Verify: true, TrustedFile: foreign}, "", false},
		{"system", TLS{Verify: true}, "", false},
		{"with a certificate", TLS{CertFile: cert, KeyFile: keyFile, Password: "word"}, "c1", true},
		{"with a key as of today", TLS{CertFile: cert, KeyFile: modernFile, Password: "word"}, "c1", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			with(t, nil, func(t *testing.T, p *peer) {
				t.Helper()
				l, err := p.server.Listen(t.Context(), "0.0.0.0:6984")
				if err != nil {
					t.Fatal(err)
				}
				server := &http.Server{ReadHeaderTimeout: time.Hour, ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					who := "nobody"
					if len(r.TLS.PeerCertificates) > 0 {
						who = r.TLS.PeerCertificates[0].Subject.CommonName
					}
					if strings.HasSuffix(r.URL.Path, "plain") {
						http.Redirect(w, r, "http://"+serverIP+":5984/db/", http.StatusFound)
						return
					}
					answerWith(w, 200, fmt.Sprintf(`{"db_name":%q}`, who))
				})}
				done := make(chan struct{})
				go func() {
					defer close(done)
					_ = server.Serve(tls.NewListener(l, &tls.Config{
						MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{shown}, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: callers,
					}))
				}()
				t.Cleanup(func() {
					_ = server.Close()
					<-done
				})
				d, err := New(Options{
					Network: p.network(tc.tls), Address: spec.Address{URL: "https://" + serverIP + ":6984/db/"},
					Options: spec.Options{ConnectionTimeout: time.Minute},
				})
				if err != nil {
					t.Fatal(err)
				}
				info, err := d.Info(t.Context())
				if (err == nil) != tc.ok || info.Name != tc.want || err != nil && !endpoint.Retryable(err) {
					t.Errorf("%+v %v", info, err)
				}
				if _, _, err := d.Local(t.Context(), "plain"); tc.ok && (err == nil || !strings.Contains(err.Error(), "without TLS")) {
					t.Errorf("a redirection to an address without TLS: %v", err)
				}
			})
		})
	}
}

// Files that cannot be used are told at once.
func TestTLSFiles(t *testing.T) {
	_, root := chain(t, 0)
	good, empty := file(t, "root.pem", root), file(t, "empty.pem", nil)
	for _, o := range []TLS{
		{TrustedFile: "none.pem"},
		{TrustedFile: empty},
		{CertFile: "none.pem"},
		{CertFile: good},
		{CertFile: good, KeyFile: "none.pem"},
		{CertFile: good, KeyFile: empty, Password: "x"},
	} {
		if _, err := NewNetwork(NetworkOptions{TLS: o}); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
}

func TestNew(t *testing.T) {
	n, err := NewNetwork(NetworkOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []spec.Address{{URL: ""}, {URL: "db"}, {URL: "ftp://x/db"}, {URL: "http://"}, {URL: "http://x:y/db"}, {URL: "http://x/db", Proxy: "::"}} {
		if _, err := New(Options{Network: n, Address: a}); err == nil {
			t.Errorf("%+v: no error", a)
		}
	}
}
