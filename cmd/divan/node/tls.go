package node

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"divan/cluster/config"
)

// secrecy holds the settings of section [ssl] for a listener. It is comparable, so that a
// change of it is seen.
type secrecy struct {
	certFile, keyFile, caFile string
	verify, require           bool
	min, max                  uint16
}

func secrecyOf(s config.SSL) secrecy {
	out := secrecy{certFile: s.CertFile, keyFile: s.KeyFile, min: tls.VersionTLS12}
	if s.VerifyPeer { // else certificates of clients are not looked at
		out.verify, out.caFile, out.require = true, s.CACertFile, s.RequireCert
	}
	for i, name := range s.TLSVersions {
		v := tlsVersion(name)
		if i == 0 || v < out.min {
			out.min = v
		}
		out.max = max(out.max, v)
	}
	return out
}

// tlsVersion knows the names that the configuration lets pass.
func tlsVersion(name string) uint16 {
	switch name {
	case "tlsv1":
		return tls.VersionTLS10
	case "tlsv1.1":
		return tls.VersionTLS11
	case "tlsv1.3":
		return tls.VersionTLS13
	}
	return tls.VersionTLS12
}

// credentials are the certificate of a listener; they may be replaced while it
// serves.
type credentials struct {
	secrecy
	current atomic.Pointer[tls.Certificate]
}

// load reads certificate and key. When that fails the ones from before stay.
func (c *credentials) load() error {
	if c.certFile == "" || c.keyFile == "" {
		return errors.New("TLS needs cert_file and key_file in section [ssl]")
	}
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("read the certificate of section [ssl]: %w", err)
	}
	c.current.Store(&pair)
	return nil
}

// tlsConfig is for a listener on which HTTP/1.1 is spoken.
func (c *credentials) tlsConfig() (*tls.Config, error) {
	out := &tls.Config{
		MinVersion: c.min, MaxVersion: c.max, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current.Load(), nil },
	}
	if !c.verify {
		return out, nil
	}
	pem, err := os.ReadFile(c.caFile)
	if err != nil {
		return nil, fmt.Errorf("read cacert_file of section [ssl], which verify_ssl_certificates needs: %w", err)
	}
	out.ClientCAs = x509.NewCertPool()
	if !out.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("cacert_file of section [ssl]: %s holds no certificate", c.caFile)
	}
	out.ClientAuth = tls.VerifyClientCertIfGiven
	if c.require {
		out.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return out, nil
}
