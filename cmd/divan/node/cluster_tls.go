package node

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"

	"divan/cluster/config"
)

// clusterTLS is the certificates of section [cluster]. Files that are replaced
// count for the next connection.
type clusterTLS struct {
	files config.Cluster
	log   *zap.Logger

	mu     sync.Mutex
	config *tls.Config
	stamp  [3]time.Time // when the files were written that config is made of
}

// newClusterTLS reads the certificates; nil when the section names none.
func newClusterTLS(s config.Cluster, log *zap.Logger) (*clusterTLS, error) {
	if s.TLSCert == "" && s.TLSKey == "" && s.TLSCA == "" {
		return nil, nil
	}
	if s.TLSCert == "" || s.TLSKey == "" || s.TLSCA == "" {
		return nil, errors.New("TLS between nodes needs tls_cert_file, tls_key_file and tls_ca_file in section [cluster]")
	}
	c := &clusterTLS{files: s, log: log, stamp: stamps(s)}
	var err error
	c.config, err = c.read()
	return c, err
}

// stamps returns when the files were written; zero for one that is not there.
func stamps(s config.Cluster) (out [3]time.Time) {
	for i, name := range []string{s.TLSCert, s.TLSKey, s.TLSCA} {
		if info, err := os.Stat(name); err == nil {
			out[i] = info.ModTime()
		}
	}
	return out
}

// read makes a configuration in which both sides of a connection show a
// certificate that the authority signed. The name in it does not matter, since
// the handshake of the port proves the node's.
func (c *clusterTLS) read() (*tls.Config, error) {
	own, err := tls.LoadX509KeyPair(c.files.TLSCert, c.files.TLSKey)
	if err != nil {
		return nil, fmt.Errorf("certificate for other nodes: %w", err)
	}
	pem, err := os.ReadFile(c.files.TLSCA)
	if err != nil {
		return nil, fmt.Errorf("authority of the nodes' certificates: %w", err)
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate in PEM", c.files.TLSCA)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{own}, RootCAs: authorities, ClientCAs: authorities, MinVersion: tls.VersionTLS13,
	}, nil
}

// current returns the configuration for a new connection; nil: no certificates are set.
func (c *clusterTLS) current() *tls.Config {
	if c == nil {
		return nil
	}
	now := stamps(c.files)
	c.mu.Lock()
	have, fresh := c.config, c.stamp == now
	c.stamp = now
	c.mu.Unlock()
	if fresh {
		return have
	}
	next, err := c.read()
	if err != nil {
		c.log.Error("the certificate for other nodes from before stays in use", zap.Error(err))
		return have
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.config = next
	return next
}
