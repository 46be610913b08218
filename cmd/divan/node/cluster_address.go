package node

import (
	"context"
	"errors"
	"fmt"
	"net"
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
	taken map[string]bool // "tcp", "udp": handed out, to be closed by its new owner
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

// close gives back the ports that were not handed out.
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
