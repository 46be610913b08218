package wire

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/mem"
	"pgregory.net/rapid"

	"divan/cluster/wire/wirepb"
)

// copyOf takes a frame apart as the other side sees it.
func copyOf(t *rapid.T, f *wirepb.Frame) *received {
	b, err := marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var in received
	if err := in.take(mem.BufferSlice{mem.NewBuffer(b, buffers{})}); err != nil {
		t.Fatal(err)
	}
	return &in
}

// Messages that are put on a frame writer in any order come out whole, frames stay small, and no
// message waits while another sends two pieces.
func TestLane(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.OneOf(rapid.IntRange(0, 2000), rapid.IntRange(0, 3*frameSize)), 1, 30).Draw(t, "sizes")
		l := newFrameWriter()
		want := map[uint64][]byte{}
		out := frameBuilder{frame: &wirepb.Frame{}}
		var parts reassembly
		got, ended := map[uint64][]byte{}, 0
		slot := make(chan struct{}, len(sizes))
		step := func() bool {
			if !l.fill(&out) {
				return false
			}
			in := copyOf(t, out.frame)
			size := 0
			seen := map[uint64]bool{}
			for _, p := range in.Pieces {
				size += len(p.Data)
				if seen[p.Call] {
					t.Fatal("two pieces of one call in a frame")
				}
				seen[p.Call] = true
				w, err := parts.add(p)
				if err != nil {
					t.Fatal(err)
				}
				if w != nil {
					if got[w.call] != nil || w.op != wirepb.Op_OPEN || !w.repair || w.timeout <= 0 {
						t.Fatalf("got %+v", w)
					}
					got[w.call] = w.body
				}
			}
			in.release()
			if size > frameSize+pieceSize {
				t.Fatalf("a frame of %d bytes", size)
			}
			out.done()
			ended = len(sizes) - len(slot)
			return true
		}
		for i, size := range sizes {
			b := buffers{}.Get(size)
			for j := range *b {
				(*b)[j] = byte(i + j>>8)
			}
			call := uint64(i + 1)
			want[call] = bytes.Clone(*b)
			slot <- struct{}{}
			l.put(&outMessage{call: call, op: wirepb.Op_OPEN, repair: true, deadline: time.Now().Add(time.Hour), body: b, slot: slot})
			if rapid.Bool().Draw(t, "send") {
				step()
			}
		}
		for step() {
		}
		for call, b := range want {
			if !bytes.Equal(got[call], b) {
				t.Fatalf("call %d: %d bytes came out as %d", call, len(b), len(got[call]))
			}
		}
		if len(got) != len(want) || len(slot) != 0 || len(parts.open) != 0 || len(parts.need) != 0 {
			t.Fatalf("left over: %d slots, %d ended", len(slot), ended)
		}
	})
}

func TestLaneWithdraw(t *testing.T) {
	l := newFrameWriter()
	large := buffers{}.Get(5 * pieceSize)
	l.put(&outMessage{call: 1, body: large})
	l.put(&outMessage{call: 2, body: buffers{}.Get(10)})
	out := frameBuilder{frame: &wirepb.Frame{}}
	if !l.withdraw(2) {
		t.Fatal("nothing of it has been sent")
	}
	if !l.fill(&out) || len(out.frame.Pieces) != 1 || out.frame.Pieces[0].Size != 5*pieceSize {
		t.Fatalf("got %v", out.frame)
	}
	out.done()
	if l.withdraw(1) {
		t.Fatal("a piece has been sent")
	}
	if l.fill(&out) {
		t.Fatal("sent what was withdrawn")
	}
	l.close()
	slot := make(chan struct{}, 1)
	slot <- struct{}{}
	l.put(&outMessage{call: 3, slot: slot})
	if len(slot) != 0 {
		t.Fatal("a closed frames keeps the slot")
	}
}

func TestLaneEndsWithItsStream(t *testing.T) {
	l := newFrameWriter()
	slot := make(chan struct{}, 2)
	slot <- struct{}{}
	slot <- struct{}{}
	l.put(&outMessage{call: 1, slot: slot})
	l.put(&outMessage{call: 2, slot: slot, body: buffers{}.Get(9 * frameSize)})
	broken := errors.New("broken")
	if err := l.run(context.Background(), func(*wirepb.Frame) error { return broken }); !errors.Is(err, broken) {
		t.Fatalf("got %v", err)
	}
	if len(slot) != 0 {
		t.Fatal("slots are kept")
	}
}

func TestBuffers(t *testing.T) {
	for _, n := range []int{0, 1, 255, 256, 257, 4096, 4097, 1 << largestBuffer, 1<<largestBuffer + 1} {
		b := buffers{}.Get(n)
		if len(*b) != n || n > 1<<largestBuffer && cap(*b) != n {
			t.Fatalf("%d bytes: %d of %d", n, len(*b), cap(*b))
		}
		buffers{}.Put(b)
	}
	odd := make([]byte, 300)
	buffers{}.Put(&odd) // not one of ours: not kept
}

// The result of any frame is an error or pieces, and takes no more memory than the frame has bytes,
// nearly.
func FuzzFrame(f *testing.F) {
	for _, p := range []*wirepb.Piece{
		{Call: 1, Op: wirepb.Op_OPEN, Data: []byte("x"), Timeout: 5},
		{Call: 2, Size: 100, Data: []byte("x")},
		{Call: 3, Size: bodySize + 1},
		{Call: 4, Fault: EncodeFault(context.Canceled)},
		{Call: 5, Cancel: true},
	} {
		b, err := marshal(&wirepb.Frame{Pieces: []*wirepb.Piece{p, p}})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(slices.Clone(*b))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var in received
		if in.take(mem.BufferSlice{mem.SliceBuffer(b)}) != nil {
			return
		}
		var parts reassembly
		for _, p := range in.Pieces {
			w, err := parts.add(p)
			if err != nil {
				return
			}
			if w != nil && len(w.body) > len(b) {
				t.Fatalf("%d bytes out of %d", len(w.body), len(b))
			}
		}
		in.release()
	})
}
