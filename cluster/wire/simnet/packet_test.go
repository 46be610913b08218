package simnet

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func bind(t *testing.T, h *Host, address string) net.PacketConn {
	t.Helper()
	s, err := h.ListenPacket(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// collect reads packets until none comes for a minute.
func collect(t *testing.T, s net.PacketConn) []string {
	t.Helper()
	var out []string
	for b := make([]byte, 100); ; {
		if err := s.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		n, from, err := s.ReadFrom(b)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return out
		}
		if err != nil || from.(*net.UDPAddr).IP.String() != one {
			t.Fatalf("from %v: %v", from, err)
		}
		out = append(out, string(b[:n]))
	}
}

func shoot(t *testing.T, from, to net.PacketConn, text string) {
	t.Helper()
	if _, err := from.WriteTo([]byte(text), to.LocalAddr()); err != nil {
		t.Fatal(err)
	}
}

func TestPackets(t *testing.T) {
	for _, tc := range []struct {
		name     string
		link     Link
		min, max int
		ordered  bool
	}{
		{"perfect", Link{}, 100, 100, true},
		{"late", Link{Latency: time.Second}, 100, 100, true},
		{"jitter", Link{Jitter: time.Second}, 100, 100, false},
		{"loss", Link{Loss: 0.5}, 20, 80, true},
		{"cut", Link{Cut: true}, 0, 0, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, a, b := start(t)
				n.SetLink(one, two, tc.link)
				from, to := bind(t, a, ":1"), bind(t, b, "0.0.0.0:0")
				for i := range 100 {
					shoot(t, from, to, fmt.Sprintf("%03d", i))
				}
				got := collect(t, to)
				if len(got) < tc.min || len(got) > tc.max || slices.IsSorted(got) != tc.ordered {
					t.Errorf("%d came, sorted: %v", len(got), slices.IsSorted(got))
				}
				closeAll(t, from, to)
			})
		})
	}
}

func TestPacketsAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b := start(t)
		from, to := bind(t, a, ":1"), bind(t, b, ":2")
		for i := range 2 * maxWaiting {
			shoot(t, from, to, fmt.Sprint(i))
		}
		if got := collect(t, to); len(got) != maxWaiting {
			t.Errorf("%d came through a full buffer", len(got))
		}
		n.SetLink(one, two, Link{Latency: time.Second})
		shoot(t, from, to, "under way")
		n.SetLink(one, two, Link{Cut: true})
		if got := collect(t, to); len(got) > 0 {
			t.Errorf("%v came through a cut", got)
		}
		n.Heal()
		closeAll(t, to)
		if _, _, err := to.ReadFrom(nil); !errors.Is(err, net.ErrClosed) {
			t.Errorf("read: %v", err)
		}
		shoot(t, from, to, "nobody listens")
		b.Kill()
		shoot(t, from, to, "nobody is there")
		if _, err := from.WriteTo(make([]byte, maxPacket+1), to.LocalAddr()); err == nil {
			t.Error("a packet that is too long")
		}
		closeAll(t, from)
	})
}
