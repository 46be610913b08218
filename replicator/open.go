package replicator

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"divan/cluster/meta"
	"divan/replicator/endpoint"
	"divan/replicator/local"
	"divan/replicator/remote"
	"divan/replicator/spec"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
	"divan/storage/memory"
)

// side is a database that can be read and written.
type side interface {
	endpoint.Source
	endpoint.Target
}

// opener opens the sides of replications. It is safe for concurrent use.
//
// LOCKS: mu guards the connections to other servers.
type opener struct {
	config settings
	meta   *meta.Meta
	local  *local.Opener
	memory *memory.Shares
	// The next four are Options of the same names.
	identify  func(ctx context.Context, account string, h http.Header) (shard.User, error)
	listening func() net.Addr
	userAgent string
	dial      func(ctx context.Context, network, address string) (net.Conn, error)
	figures   *remote.Figures

	mu struct {
		sync.Mutex
		tls     remote.TLS
		network *remote.Network // nil: none was needed yet
	}
}

func newOpener(o *Options, figures *remote.Figures) *opener {
	return &opener{
		config: settings{o.Config}, meta: o.Meta, local: o.Local, memory: o.Memory,
		identify: o.Identify, listening: o.Listening, userAgent: o.UserAgent, dial: o.Dial, figures: figures,
	}
}

// open returns one side of a replication. A database of this cluster is worked
// on directly, whether it is asked for by its name or by a URL of this cluster.
func (o *opener) open(s *spec.Spec, a *spec.Address) (side, error) {
	if a.Name != "" {
		return o.local.Open(a.Name, local.Of(s.User)), nil
	}
	if err := o.allowed(a); err != nil {
		return nil, err
	}
	if name, ok := o.own(a); ok {
		return o.local.Open(name, func(ctx context.Context) (shard.User, error) { return o.account(ctx, s.Account(), a) }), nil
	}
	network, err := o.network()
	if err != nil {
		return nil, err
	}
	db, err := remote.New(remote.Options{
		Network: network, Address: *a, Options: s.Options, UserAgent: o.userAgent,
		Memory: o.memory.Owner(s.Account()), MaxDocument: o.config.holder.Load().CouchDB.MaxDocumentSize,
	})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", spec.Mask(a.URL), err)
	}
	return db, nil
}

// allowed refuses addresses that the configuration does not allow.
func (o *opener) allowed(a *spec.Address) error {
	p := &o.config.config().Peers
	for _, use := range []struct {
		address, what string
		schemes       []string
	}{{a.URL, "databases", p.EndpointProtocols}, {a.Proxy, "proxies", p.ProxyProtocols}} {
		scheme, _, _ := strings.Cut(use.address, "://")
		if use.address != "" && !slices.Contains(use.schemes, strings.ToLower(scheme)) {
			return fault.Newf(fault.Forbidden, "The protocol %s is not allowed for %s here.", scheme, use.what)
		}
	}
	return nil
}

// network returns what databases of other servers share. Those that were opened
// before the settings changed go on with what they have.
func (o *opener) network() (*remote.Network, error) {
	p := &o.config.config().Peers
	tls := remote.TLS{
		Verify: p.VerifyTLS, TrustedFile: p.TrustedCAFile, CertFile: p.CertFile, KeyFile: p.KeyFile, Password: p.KeyPassword, Depth: p.TLSMaxDepth,
	}
	c := &o.mu
	c.Lock()
	defer c.Unlock()
	if c.network != nil && c.tls == tls {
		return c.network, nil
	}
	network, err := remote.NewNetwork(remote.NetworkOptions{TLS: tls, Dial: o.dial, Figures: o.figures})
	if err != nil {
		return nil, err
	}
	if c.network != nil {
		c.network.Close()
	}
	c.network, c.tls = network, tls
	return network, nil
}

// hangUp closes the connections to other servers.
func (o *opener) hangUp() {
	c := &o.mu
	c.Lock()
	defer c.Unlock()
	if c.network != nil {
		c.network.Close()
	}
}

// own returns the name of the database that an address means when it is a URL of
// the HTTP interface of this node, or of another node of the cluster, without a
// proxy.
func (o *opener) own(a *spec.Address) (name string, ok bool) {
	u, err := url.Parse(a.URL)
	if err != nil || u.Scheme != "http" || a.Proxy != "" {
		return "", false
	}
	name, err = url.PathUnescape(strings.Trim(u.EscapedPath(), "/"))
	if err != nil || name == "" || strings.Contains(strings.Trim(u.EscapedPath(), "/"), "/") {
		return "", false
	}
	port := u.Port()
	if port == "" {
		port = "80"
	}
	return name, o.listensAt(u.Hostname(), port)
}

// listensAt reports whether a host and port are those of the HTTP interface of
// this node, or what the metadata say of those of another one.
func (o *opener) listensAt(host, port string) bool {
	if at := o.listening(); at != nil {
		bound, boundPort, err := net.SplitHostPort(at.String())
		if err == nil && boundPort == port && reaches(host, bound) {
			return true
		}
	}
	nodes := o.meta.Nodes()
	if len(nodes) < 2 {
		return false
	}
	address := net.JoinHostPort(host, port)
	for i := range nodes {
		if nodes[i].HTTP == address {
			return true
		}
	}
	return false
}

// reaches reports whether a host leads to a listener that is bound to an address
// of this machine, as far as that is known without a look-up of names.
func reaches(host, bound string) bool {
	at := net.ParseIP(bound)
	if at == nil {
		return false
	}
	ip := net.ParseIP(host)
	if strings.EqualFold(host, "localhost") {
		ip = net.IPv4(127, 0, 0, 1)
	}
	if ip == nil {
		return false
	}
	return ip.Equal(at) || at.IsUnspecified() && ip.IsLoopback()
}

// account tells on whose account an address of this cluster is opened.
func (o *opener) account(ctx context.Context, account string, a *spec.Address) (shard.User, error) {
	h := http.Header{}
	for _, header := range a.Headers {
		h.Add(header[0], header[1])
	}
	if a.Username != "" || a.Password != "" {
		h.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(a.Username+":"+a.Password)))
	}
	u, err := o.identify(ctx, account, h)
	if fault.Is(err, fault.Unauthorized) || fault.Is(err, fault.BadAuthorization) {
		return u, endpoint.AuthError(fault.Reason(err))
	}
	return u, err
}

// filterCode returns the text of the function that selects documents; empty when
// there is none, or when it is a built-in one.
func (o *opener) filterCode(ctx context.Context, s *spec.Spec) (string, error) {
	design, name, ok := strings.Cut(s.Filter.Function, "/")
	if !ok {
		return "", nil
	}
	source, err := o.open(s, &s.Source)
	if err != nil {
		return "", err
	}
	defer func() { _ = source.Close() }() // nothing was written
	body, err := source.Design(ctx, doc.DesignPrefix+design)
	if err != nil {
		return "", filterError(s, err)
	}
	code, ok := doc.Unquote(doc.Lookup(doc.Lookup(body, "filters"), name))
	if !ok {
		return "", filterError(s, fault.New(fault.NotFound, "missing json key: "+name))
	}
	return code, nil
}

// filterError says that a filter function cannot be had.
func filterError(s *spec.Spec, err error) error {
	reason := fault.Reason(err)
	if reason == "" {
		reason = err.Error()
	}
	return fault.Wrap(fault.KindOf(err), fmt.Sprintf("Error fetching filter `%s` of %s: %s", s.Filter.Function, spec.Mask(s.Source.URL), reason), err)
}
