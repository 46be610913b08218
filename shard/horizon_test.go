package shard

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

func TestHorizon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHorizon()
		ctx := t.Context()
		if err := h.waitSeq(ctx, 1000); err != nil {
			t.Fatal(err)
		}
		h.begin(1, 7, true)
		if err := h.waitSeq(ctx, 7); err != nil {
			t.Fatal(err)
		}
		got := make(chan error, 3)
		go func() { got <- h.waitSeq(ctx, 9) }()
		go func() { got <- h.waitLoose(ctx) }()
		ended, cancel := context.WithCancel(ctx)
		go func() { got <- h.waitSeq(ended, 8) }()
		synctest.Wait()
		if len(got) != 0 {
			t.Fatal("somebody did not wait")
		}
		cancel()
		if err := <-got; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		h.begin(2, 8, false)
		h.publish(1, 8)
		if err := <-got; err != nil { // the loose round is durable
			t.Fatal(err)
		}
		synctest.Wait()
		if len(got) != 0 {
			t.Fatal("9 is not durable yet")
		}
		h.publish(2, 9)
		if err := <-got; err != nil {
			t.Fatal(err)
		}
		h.begin(3, 9, false)
		broken := errors.New("broken")
		go func() { got <- h.waitSeq(ctx, 10) }()
		synctest.Wait()
		h.fail(broken)
		if err := <-got; !errors.Is(err, broken) {
			t.Fatal(err)
		}
		if err := h.waitSeq(ctx, 9); err != nil {
			t.Fatal("what is durable stays readable:", err)
		}
		if err := h.waitSeq(ctx, 10); !errors.Is(err, broken) {
			t.Fatal(err)
		}
	})
}
