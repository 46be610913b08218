package wire

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"net"
)

// Every connection of the port runs over TLS 1.3. Certificates that an operator gives are
// verified by both sides. Without them each node makes one of its own when it starts, and no
// side verifies it: TLS then only encrypts and signs, and it is the handshake on top of it
// (handshake.go) that proves who is there. Its keys are made of keying material of the TLS
// connection, which differs on the two sides of a man in the middle.

// bindingLabel names the keying material that ties a handshake to the TLS connection it runs on, so
// that no man in the middle can hold two of them.
const bindingLabel = "EXPORTER-divan-cluster-port"

// ownTLS makes the configuration of a port that is given no certificates, for both sides.
func ownTLS() (*tls.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make key of the cluster port: %w", err)
	}
	// It says nothing: not who shows it, and not since when.
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("make certificate of the cluster port: %w", err)
	}
	return always(&tls.Config{
		Certificates:       []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		InsecureSkipVerify: true, //nolint:gosec // the handshake on top of it proves more, see above
	}), nil
}

// always sets what holds for all connections of the port.
func always(c *tls.Config) *tls.Config {
	c.MinVersion = tls.VersionTLS13
	c.SessionTicketsDisabled = true // each connection proves everything
	c.DynamicRecordSizingDisabled = true
	c.CurvePreferences = []tls.CurveID{tls.X25519MLKEM768, tls.X25519} // a stranger does not choose dearer ones
	return c
}

// listenerTLS makes a configuration one of a listener that wants a certificate of the same
// authority from every dialer.
func listenerTLS(c *tls.Config) *tls.Config {
	c = always(c.Clone())
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
	c = always(c.Clone())
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

// secured is a TLS connection that is closed at once. tls.Conn would say good-bye first, and wait
// for seconds where the other side takes nothing. All that runs over the port knows by itself
// where a message ends.
type secured struct {
	*tls.Conn
	raw net.Conn
}

// Close implements net.Conn.
func (c secured) Close() error { return c.raw.Close() }

// secure runs the TLS handshake and returns what identifies the connection.
func secure(ctx context.Context, c *tls.Conn) (net.Conn, []byte, error) {
	if err := c.HandshakeContext(ctx); err != nil {
		var other tls.RecordHeaderError
		switch begun := c.ConnectionState().Version != 0; {
		case errors.As(err, &other):
			return nil, nil, fmt.Errorf("%w: %w", errNoHello, err)
		case begun && !errors.Is(err, net.ErrClosed):
			return nil, nil, fmt.Errorf("%w: %w", errAbandoned, err)
		}
		return nil, nil, fmt.Errorf("tls: %w", err) // a probe that says nothing, or one that gave way to another
	}
	state := c.ConnectionState()
	binding, err := state.ExportKeyingMaterial(bindingLabel, nil, 32)
	if err != nil {
		return nil, nil, fmt.Errorf("tls: %w", err)
	}
	return secured{c, c.NetConn()}, binding, nil
}
