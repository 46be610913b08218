package simnet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"divan/cluster/wire"
)

var _ wire.Network = (*Host)(nil)

const (
	one = "10.0.0.1"
	two = "10.0.0.2"
)

func boot(t *testing.T, n *Network, ip string) *Host {
	t.Helper()
	h, err := n.Boot(ip)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func listen(t *testing.T, h *Host, address string) net.Listener {
	t.Helper()
	l, err := h.Listen(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// connected returns both ends of a connection from one to two.
func connected(t *testing.T, a, b *Host) (near, far net.Conn) {
	t.Helper()
	l := listen(t, b, ":0")
	defer func() { _ = l.Close() }()
	near, err := a.Dial(t.Context(), l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if far, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return near, far
}

// start boots two hosts and looks at the end that nothing stays open.
func start(t *testing.T) (n *Network, a, b *Host) {
	t.Helper()
	n = New(1)
	t.Cleanup(func() {
		if open := n.Open(); open > 0 {
			t.Errorf("%d ends of connections are still open", open)
		}
	})
	return n, boot(t, n, one), boot(t, n, two)
}

func closeAll(t *testing.T, cs ...io.Closer) {
	t.Helper()
	for _, c := range cs {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

func send(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

// receive reads one text of that length and returns it with how long it took.
func receive(t *testing.T, c net.Conn, n int) (string, time.Duration) {
	t.Helper()
	start := time.Now()
	b := make([]byte, n)
	if _, err := io.ReadFull(c, b); err != nil {
		t.Fatal(err)
	}
	return string(b), time.Since(start)
}

func TestLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b := start(t)
		n.SetStandard(Link{Latency: 10 * time.Millisecond})
		start := time.Now()
		near, far := connected(t, a, b)
		if took := time.Since(start); took != 20*time.Millisecond {
			t.Errorf("connecting took %v", took)
		}
		send(t, near, "hello ")
		send(t, near, "world")
		if text, took := receive(t, far, 11); text != "hello world" || took != 10*time.Millisecond {
			t.Errorf("%q after %v", text, took)
		}
		if got := far.RemoteAddr().(*net.TCPAddr).IP.String(); got != one {
			t.Errorf("the other end is %s", got)
		}
		closeAll(t, near, far)
	})
}

func TestOrderOfStreamsIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b := start(t)
		n.SetStandard(Link{Latency: time.Millisecond, Jitter: 50 * time.Millisecond, Loss: 0.2})
		near, far := connected(t, a, b)
		var want strings.Builder
		for i := range 1000 {
			text := fmt.Sprintf("%d,", i)
			want.WriteString(text)
			send(t, near, text)
		}
		if text, _ := receive(t, far, want.Len()); text != want.String() {
			t.Error("the bytes came in another order")
		}
		closeAll(t, near, far)
	})
}

func TestCutStallsAndHeals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b := start(t)
		n.SetStandard(Link{Latency: time.Second})
		near, far := connected(t, a, b)
		send(t, near, "early")
		<-time.After(2 * time.Second)
		send(t, near, "late")
		n.SetLink(one, two, Link{Cut: true})
		if text, took := receive(t, far, 5); text != "early" || took != 0 {
			t.Errorf("%q after %v: what was there before the cut can be read", text, took)
		}
		if err := far.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := far.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read through a cut: %v", err)
		}
		if err := far.SetReadDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		n.Heal()
		if text, took := receive(t, far, 4); text != "late" || took != time.Second {
			t.Errorf("%q after %v", text, took)
		}
		closeAll(t, near, far)
	})
}

func TestOneWayCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b := start(t)
		near, far := connected(t, a, b)
		n.SetLink(two, one, Link{Cut: true})
		send(t, near, "question")
		if text, _ := receive(t, far, 8); text != "question" {
			t.Errorf("%q", text)
		}
		send(t, far, "answer")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := a.Dial(ctx, two+":1"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("dial: %v", err)
		}
		n.Heal()
		if text, _ := receive(t, near, 6); text != "answer" {
			t.Errorf("%q", text)
		}
		closeAll(t, near, far)
	})
}

func TestDialWaitsForHealing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b := start(t)
		l := listen(t, b, ":5986")
		n.SetLink(one, two, Link{Cut: true})
		time.AfterFunc(time.Minute, n.Heal)
		start := time.Now()
		near, err := a.Dial(t.Context(), two+":5986")
		if err != nil || time.Since(start) != time.Minute {
			t.Fatalf("%v after %v", err, time.Since(start))
		}
		far, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		closeAll(t, near, far, l)
		n.SetLink(one, two, Link{Cut: true})
		if _, err := a.Dial(t.Context(), two+":5986"); !errors.Is(err, syscall.ETIMEDOUT) {
			t.Errorf("dial without end: %v", err)
		}
	})
}

func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b := start(t)
		if _, err := a.Dial(t.Context(), two+":1"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("nobody listens: %v", err)
		}
		l := listen(t, b, "127.0.0.1:7")
		if _, err := a.Dial(t.Context(), two+":7"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a listener for the machine itself: %v", err)
		}
		near, err := b.Dial(t.Context(), "localhost:7")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Listen(t.Context(), ":7"); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("listen twice: %v", err)
		}
		closeAll(t, near, l)
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("accept: %v", err)
		}
	})
}

func TestKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b := start(t)
		near, far := connected(t, a, b)
		idle := listen(t, b, ":80")
		send(t, far, "last words")
		b.Kill()
		if _, err := near.Read(make([]byte, 20)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the survivor reads: %v", err)
		}
		if _, err := near.Write([]byte("x")); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the survivor writes: %v", err)
		}
		for _, err := range []error{
			func() error { _, err := far.Read(make([]byte, 1)); return err }(),
			func() error { _, err := far.Write([]byte("x")); return err }(),
			func() error { _, err := b.Dial(t.Context(), one+":1"); return err }(),
			func() error { _, err := b.Listen(t.Context(), ":1"); return err }(),
			func() error { _, err := idle.Accept(); return err }(),
		} {
			if err == nil {
				t.Error("what ran on the host still does")
			}
		}
		if _, err := a.Dial(t.Context(), two+":80"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dial: %v", err)
		}
		if _, err := n.Boot(one); err == nil {
			t.Error("an address of two hosts")
		}
		again := boot(t, n, two)
		x, y := connected(t, a, again)
		closeAll(t, x, y, near)
	})
}

func TestPowerOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b := start(t)
		near, far := connected(t, a, b)
		b.PowerOff()
		closeAll(t, far) // what runs there ends too, unheard
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := a.Dial(ctx, two+":1"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("dial: %v", err)
		}
		if err := near.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if n, err := near.Write(make([]byte, window+1)); n != window || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("wrote %d: %v", n, err)
		}
		boot(t, n, two)
		if err := near.SetDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		if _, err := near.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("read after the return: %v", err)
		}
		closeAll(t, near)
	})
}

func TestBackPressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b := start(t)
		near, far := connected(t, a, b)
		wrote := make(chan int)
		go func() {
			n, err := near.Write(make([]byte, 3*window))
			if err != nil {
				t.Error(err)
			}
			wrote <- n
		}()
		synctest.Wait()
		select {
		case <-wrote:
			t.Error("more was written than anybody can hold")
		default:
		}
		receive(t, far, 3*window)
		if n := <-wrote; n != 3*window {
			t.Errorf("wrote %d", n)
		}
		closeAll(t, near, far)
	})
}

func TestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b := start(t)
		near, far := connected(t, a, b)
		send(t, near, "bye")
		if err := near.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(far); string(text) != "bye" || err != nil {
			t.Errorf("%q, %v", text, err)
		}
		if _, err := near.Write([]byte("more")); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("write after the end: %v", err)
		}
		send(t, far, "you too")
		if text, _ := receive(t, near, 7); text != "you too" {
			t.Errorf("%q", text)
		}
		reading := make(chan error)
		go func() { _, err := near.Read(make([]byte, 1)); reading <- err }()
		synctest.Wait()
		closeAll(t, near)
		if err := <-reading; !errors.Is(err, net.ErrClosed) {
			t.Errorf("a read during close: %v", err)
		}
		if _, err := far.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("nobody reads: %v", err)
		}
		closeAll(t, far)
	})
}

// TestBrokenBothWays: an end that is told by a write that the other end is gone is told so by a
// read at once, not when the end of the stream has come.
func TestBrokenBothWays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b := start(t)
		near, far := connected(t, a, b)
		n.SetStandard(Link{Latency: time.Second})
		reading := make(chan error)
		go func() { _, err := far.Read(make([]byte, 1)); reading <- err }()
		synctest.Wait()
		closeAll(t, near)
		begin := time.Now()
		if _, err := far.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("nobody reads: %v", err)
		}
		if err := <-reading; !errors.Is(err, syscall.ECONNRESET) || time.Since(begin) != 0 {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		closeAll(t, far)
	})
}

func TestHTTP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b := start(t)
		n.SetStandard(Link{Latency: time.Millisecond, Jitter: time.Millisecond})
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err == nil {
				_, err = w.Write(body)
			}
			if err != nil {
				t.Error(err)
			}
		})}
		done := make(chan error)
		go func() { done <- server.Serve(listen(t, b, ":80")) }()
		synctest.Wait()
		client := &http.Client{Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, address string) (net.Conn, error) { return a.Dial(ctx, address) },
		}}
		text := strings.Repeat("0123456789", 1e5)
		for range 5 {
			res, err := client.Post("http://"+two, "text/plain", strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(res.Body)
			if err != nil || string(got) != text {
				t.Errorf("%d bytes came back, %v", len(got), err)
			}
			closeAll(t, res.Body)
		}
		client.CloseIdleConnections()
		closeAll(t, server)
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
		synctest.Wait()
	})
}
