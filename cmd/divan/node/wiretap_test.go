package node

import (
	"bytes"
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"divan/cluster/wire"
)

// wiretap records all that nodes send to each other.
type wiretap struct {
	mu      sync.Mutex
	streams bytes.Buffer
	packets bytes.Buffer
}

// on returns the network of a node whose sending side is recorded.
func (w *wiretap) on(n wire.Network) wire.Network { return tappedNetwork{n, w} }

// shows reports whether a text was sent as it is.
func (w *wiretap) shows(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Contains(w.streams.Bytes(), []byte(text)) || bytes.Contains(w.packets.Bytes(), []byte(text))
}

type tappedNetwork struct {
	wire.Network
	tap *wiretap
}

func (n tappedNetwork) Listen(ctx context.Context, address string) (net.Listener, error) {
	l, err := n.Network.Listen(ctx, address)
	return tappedListener{l, n.tap}, err
}

func (n tappedNetwork) Dial(ctx context.Context, address string) (net.Conn, error) {
	c, err := n.Network.Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	return tappedConn{c, n.tap}, nil
}

func (n tappedNetwork) ListenPacket(ctx context.Context, address string) (net.PacketConn, error) {
	c, err := n.Network.ListenPacket(ctx, address)
	return tappedPackets{c, n.tap}, err
}

type tappedListener struct {
	net.Listener
	tap *wiretap
}

func (l tappedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return tappedConn{c, l.tap}, nil
}

type tappedConn struct {
	net.Conn
	tap *wiretap
}

func (c tappedConn) Write(b []byte) (int, error) {
	c.tap.mu.Lock()
	c.tap.streams.Write(b)
	c.tap.mu.Unlock()
	return c.Conn.Write(b)
}

type tappedPackets struct {
	net.PacketConn
	tap *wiretap
}

func (p tappedPackets) WriteTo(b []byte, to net.Addr) (int, error) {
	p.tap.mu.Lock()
	p.tap.packets.Write(b)
	p.tap.mu.Unlock()
	return p.PacketConn.WriteTo(b, to)
}

// TestNetworkShowsNothing: without any setting, what nodes say to each other is encrypted, whether
// it is of Raft, of gossip, or a call. (What a node with another secret hears is a test of cluster/wire.)
func TestNetworkShowsNothing(t *testing.T) {
	inTown(t, func(w *town) {
		list := "DIVAN_CLUSTER__SEEDLIST=divan@10.0.0.1,divan@10.0.0.2,divan@10.0.0.3"
		a, b, c := w.build(1, list, secret0), w.build(2, list, secret0), w.build(3, list, secret0)
		stranger := w.build(4, list, "COUCHDB_ERLANG_COOKIE=another-secret-than-theirs")
		var tap wiretap
		for _, h := range []*home{a, b, c, stranger} {
			h.tap = &tap
		}
		w.start(a, b, c, stranger)
		for _, h := range []*home{a, b, c} {
			h.soon("GET", "/_up", "", "200")
		}
		a.want("PUT", "/very-secret-pond", "", "201")
		b.want("PUT", "/very-secret-pond/hidden-frog", `{"where":"below-the-stone","skin":"`+strings.Repeat("green-and-wet ", 20_000)+`"}`, "201")
		b.want("PUT", "/very-secret-pond/hidden-frog/picture-of-it?rev="+b.revOf("/very-secret-pond/hidden-frog"), "in a frame", "201")
		b.want("PUT", "/_node/_local/_config/mine/motto", `"beware-of-herons"`, "200")
		c.want("GET", "/very-secret-pond/hidden-frog?attachments=true", "", "200")
		c.want("GET", "/very-secret-pond/_all_docs?include_docs=true", "", "200")
		stranger.want("GET", "/_up", "", "404")
		<-time.After(10 * time.Second) // of gossip
		tap.mu.Lock()
		streams, packets := tap.streams.Len(), tap.packets.Len()
		tap.mu.Unlock()
		if streams < 1<<20 || packets == 0 {
			w.t.Errorf("%d and %d bytes were recorded", streams, packets)
		}
		for _, text := range []string{"very-secret", "hidden-frog", "below-the-stone", "picture-of", "green-and-wet", "beware-of", "divan@10.0.0", "monsters"} {
			if tap.shows(text) {
				w.t.Errorf("the network shows %q", text)
			}
		}
	})
}
