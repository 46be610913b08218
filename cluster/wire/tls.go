package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
)

// bindingLabel names the keying material that ties a handshake to the TLS connection it runs on, so
// that no man in the middle can hold two of them.
const bindingLabel = "EXPORTER-divan-cluster-port"

// listenerTLS makes a configuration one of a listener that wants a certificate of the same
// authority from every dialer.
func listenerTLS(c *tls.Config) *tls.Config {
	c = c.Clone()
	c.MinVersion = tls.VersionTLS13
	c.ClientAuth = tls.RequireAndVerifyClientCert
	if c.ClientCAs == nil {
		c.ClientCAs = c.RootCAs
	}
	return c
}

// dialerTLS makes a configuration one of a dialer. The certificate of the
// other side has to come from the authority; for which host it was made does
// not matter, because the handshake after it proves which node it is.
func dialerTLS(c *tls.Config) *tls.Config {
	c = c.Clone()
	c.MinVersion = tls.VersionTLS13
	roots := c.RootCAs
	if roots == nil {
		roots = c.ClientCAs
	}
	c.InsecureSkipVerify = true // VerifyConnection does it, without the host's name
	c.VerifyConnection = func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) == 0 {
			return errors.New("no certificate")
		}
		between := x509.NewCertPool()
		for _, cert := range s.PeerCertificates[1:] {
			between.AddCert(cert)
		}
		_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{
			Roots: roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
		})
		if err != nil {
			return fmt.Errorf("verify certificate: %w", err)
		}
		return nil
	}
	return c
}

// secure runs the TLS handshake and returns what identifies the connection.
func secure(ctx context.Context, c *tls.Conn) (net.Conn, []byte, error) {
	if err := c.HandshakeContext(ctx); err != nil {
		return nil, nil, fmt.Errorf("tls: %w", err)
	}
	state := c.ConnectionState()
	binding, err := state.ExportKeyingMaterial(bindingLabel, nil, 32)
	if err != nil {
		return nil, nil, fmt.Errorf("tls: %w", err)
	}
	return c, binding, nil
}
