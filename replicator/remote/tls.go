package remote

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"

	"github.com/youmark/pkcs8"
)

// TLS are the settings of [replicator] for connections to other servers.
type TLS struct {
	Verify      bool   // verify_ssl_certificates
	TrustedFile string // ssl_trusted_certificates_file, PEM; empty: those of the system
	CertFile    string // cert_file, PEM: what this node shows
	KeyFile     string // key_file, PEM
	Password    string // of the key
	Depth       int    // ssl_certificate_max_depth: intermediate certificates at most; 0: any number
}

// config returns what connections are made with.
func (t TLS) config() (*tls.Config, error) {
	// CouchDB does not verify certificates unless it is told to, and
	// replications that work with it have to work here.
	c := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: !t.Verify} //nolint:gosec // the setting says so
	if t.TrustedFile != "" {
		text, err := os.ReadFile(t.TrustedFile)
		if err != nil {
			return nil, fmt.Errorf("read trusted certificates: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s holds no certificate", t.TrustedFile)
		}
	}
	if t.CertFile != "" {
		cert, err := t.certificate()
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{cert}
	}
	if t.Verify && t.Depth > 0 {
		c.VerifyConnection = t.checkDepth
	}
	return c, nil
}

// checkDepth refuses peers that are reached by long chains only.
func (t TLS) checkDepth(s tls.ConnectionState) error {
	for _, chain := range s.VerifiedChains {
		if len(chain)-2 <= t.Depth { // the peer's own and the root do not count
			return nil
		}
	}
	return fmt.Errorf("the chain of certificates is longer than %d", t.Depth)
}

// certificate reads what this node shows.
func (t TLS) certificate() (tls.Certificate, error) {
	cert, err := os.ReadFile(t.CertFile)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("read certificate: %w", err)
	}
	key := cert
	if t.KeyFile != "" {
		if key, err = os.ReadFile(t.KeyFile); err != nil {
			return tls.Certificate{}, fmt.Errorf("read key: %w", err)
		}
	}
	if t.Password != "" {
		if key, err = decryptKey(key, t.Password); err != nil {
			return tls.Certificate{}, fmt.Errorf("key %s: %w", t.KeyFile, err)
		}
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("certificate %s: %w", t.CertFile, err)
	}
	return pair, nil
}

// decryptKey returns the keys in a PEM text without encryption.
func decryptKey(text []byte, password string) ([]byte, error) {
	var out []byte
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		plain, err := decryptBlock(block, password)
		if err != nil {
			return nil, fmt.Errorf("decrypt: %w", err)
		}
		out = append(out, pem.EncodeToMemory(plain)...)
	}
	if out == nil {
		return nil, errors.New("no PEM block")
	}
	return out, nil
}

// decryptBlock returns a block without encryption: that of PKCS #8, or the
// older one of PEM itself.
func decryptBlock(block *pem.Block, password string) (*pem.Block, error) {
	if block.Type == "ENCRYPTED PRIVATE KEY" {
		key, err := pkcs8.ParsePKCS8PrivateKey(block.Bytes, []byte(password))
		if err != nil {
			return nil, err
		}
		der, err := x509.MarshalPKCS8PrivateKey(key)
		return &pem.Block{Type: "PRIVATE KEY", Bytes: der}, err
	}
	if !x509.IsEncryptedPEMBlock(block) { //nolint:staticcheck // the format is weak, but the file is the administrator's
		return block, nil
	}
	der, err := x509.DecryptPEMBlock(block, []byte(password)) //nolint:staticcheck // see above
	return &pem.Block{Type: block.Type, Bytes: der}, err
}
