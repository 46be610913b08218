package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"

	"divan/cluster/config"
	"divan/cluster/wire"
)

// clusterPlace is where a node listens for others: one TCP and one UDP port of the
// same number. Both are taken when the node is built, so that its address is
// known from then on.
type clusterPlace struct {
	wire.Network // reaches others
	listener     net.Listener
	socket       net.PacketConn
	advertise    string // host:port where others find it

	mu    sync.Mutex
	taken map[string]bool // "tcp", "udp": somebody else closes it now
}

// attemptsForPort is how often another free port is tried whose number is
// taken for UDP.
const attemptsForPort = 20

// takePlace listens at the address of the configuration.
func takePlace(ctx context.Context, network wire.Network, s *config.Snapshot, name string) (*clusterPlace, error) {
	_, nodeHost, _ := strings.Cut(name, "@")
	host := s.Cluster.BindAddress
	if host == "" {
		host = s.Chttpd.BindAddress
		if isLoopback(host) && !isLoopback(nodeHost) {
			host = "" // all: the node is to be found at the host of its name
		}
	}
	address := net.JoinHostPort(host, strconv.Itoa(s.Cluster.Port))
	p := &clusterPlace{Network: network, taken: map[string]bool{}}
	for attempt := 0; ; attempt++ {
		err := p.open(ctx, address)
		if err == nil {
			break
		}
		if s.Cluster.Port != 0 || attempt == attemptsForPort {
			return nil, fmt.Errorf("listen for other nodes: %w", err)
		}
	}
	p.advertise = s.Cluster.Advertise
	if p.advertise == "" {
		_, port, err := net.SplitHostPort(p.listener.Addr().String())
		if err != nil {
			return nil, errors.Join(fmt.Errorf("listen for other nodes: %w", err), p.close())
		}
		p.advertise = net.JoinHostPort(nodeHost, port)
	}
	return p, nil
}

func (p *clusterPlace) open(ctx context.Context, address string) (err error) {
	if p.listener, err = p.Network.Listen(ctx, address); err != nil {
		return err
	}
	if p.socket, err = p.Network.ListenPacket(ctx, p.listener.Addr().String()); err != nil {
		return errors.Join(err, p.listener.Close())
	}
	return nil
}

// Listen implements wire.Network: it hands out the listener that is open.
func (p *clusterPlace) Listen(context.Context, string) (net.Listener, error) {
	if !p.take("tcp") {
		return nil, errors.New("the cluster port is open already")
	}
	return p.listener, nil
}

// ListenPacket implements wire.Network: it hands out the socket that is open.
func (p *clusterPlace) ListenPacket(context.Context, string) (net.PacketConn, error) {
	if !p.take("udp") {
		return nil, errors.New("the cluster port is open already")
	}
	return p.socket, nil
}

func (p *clusterPlace) take(what string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.taken[what]
	p.taken[what] = true
	return !was
}

// close gives back what nobody has taken.
func (p *clusterPlace) close() error {
	var errs []error
	if p.take("tcp") {
		errs = append(errs, p.listener.Close())
	}
	if p.take("udp") {
		errs = append(errs, p.socket.Close())
	}
	return errors.Join(errs...)
}

// clusterTLS reads the certificates of section [cluster]; nil when it names
// none. Both sides of a connection show one that the authority signed; the name
// in it does not matter, since the handshake after it proves the node's.
func clusterTLS(s config.Cluster) (*tls.Config, error) {
	if s.TLSCert == "" && s.TLSKey == "" && s.TLSCA == "" {
		return nil, nil
	}
	if s.TLSCert == "" || s.TLSKey == "" || s.TLSCA == "" {
		return nil, errors.New("TLS between nodes needs tls_cert_file, tls_key_file and tls_ca_file in section [cluster]")
	}
	own, err := tls.LoadX509KeyPair(s.TLSCert, s.TLSKey)
	if err != nil {
		return nil, fmt.Errorf("certificate for other nodes: %w", err)
	}
	pem, err := os.ReadFile(s.TLSCA)
	if err != nil {
		return nil, fmt.Errorf("authority of the nodes' certificates: %w", err)
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate in PEM", s.TLSCA)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{own}, RootCAs: authorities, ClientCAs: authorities, MinVersion: tls.VersionTLS13,
	}, nil
}
