package conns

import (
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// taker reads size bytes each period until n were read or the connection ends, and returns how
// many there were.
func taker(c net.Conn, n, size int, period time.Duration) <-chan int {
	out := make(chan int, 1)
	go func() {
		total := 0
		for piece := make([]byte, size); total < n; {
			<-time.After(period)
			m, err := io.ReadFull(c, piece[:min(size, n-total)])
			if total += m; err != nil {
				break
			}
		}
		out <- total
	}()
	return out
}

// TestTricklingReader: a client that takes less than is expected of it is cut off, although it
// always takes something; a slow one that is fast enough gets all of its answer.
func TestTricklingReader(t *testing.T) {
	const piece, pieces = 32 << 10, 64
	for _, c := range []struct {
		rate   int64
		period time.Duration // for 4 KB
		whole  bool
	}{
		{0, time.Second, true},
		{1 << 10, time.Second, true},
		{1 << 10, 5 * time.Second, false},
		{100 << 10, time.Second, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			server, client := net.Pipe()
			conn, _ := New(Options{}).Admit(from{server, "10.0.0.2"})
			taken := taker(client, piece*pieces, 4<<10, c.period)
			began, err := time.Now(), error(nil)
			for range pieces {
				conn.Expect(c.rate)
				if _, err = conn.Write(make([]byte, piece)); err != nil {
					break
				}
			}
			switch took := time.Since(began); {
			case c.whole && err != nil:
				t.Errorf("a client that takes 4 KB in %v where %d bytes a second are enough: %v after %v", c.period, c.rate, err, took)
			case !c.whole && (!errors.Is(err, ErrTrickle) || took > 3*readerPatience/2):
				t.Errorf("4 KB in %v where %d bytes a second are expected: %v after %v", c.period, c.rate, err, took)
			}
			_, _ = conn.Close(), client.Close() // it may have been cut
			if n := <-taken; (n == piece*pieces) != c.whole {
				t.Errorf("%d bytes were taken", n)
			}
		})
	}
}

// TestFeedIsNoTrickle: a feed that says little is no fault of its client, however long it goes on.
func TestFeedIsNoTrickle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := net.Pipe()
		conn, _ := New(Options{}).Admit(from{server, "10.0.0.2"})
		const beats = 1000
		taken := taker(client, beats, 1, 0)
		conn.Expect(1 << 20)
		for range beats {
			<-time.After(30 * time.Second)
			if _, err := conn.Write([]byte{'\n'}); err != nil {
				t.Fatal(err)
			}
		}
		if n := <-taken; n != beats {
			t.Errorf("%d of %d heartbeats", n, beats)
		}
		if err := errors.Join(conn.Close(), client.Close()); err != nil {
			t.Error(err)
		}
	})
}
