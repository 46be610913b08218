package shard

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

func TestHorizon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDurableSequence()
		ctx := t.Context()
		if err := d.waitSeq(ctx, 1000); err != nil {
			t.Fatal(err)
		}
		d.begin(1, 7, true)
		if err := d.waitSeq(ctx, 7); err != nil {
			t.Fatal(err)
		}
		got := make(chan error, 3)
		go func() { got <- d.waitSeq(ctx, 9) }()
		go func() { got <- d.waitUnsequenced(ctx) }()
		ended, cancel := context.WithCancel(ctx)
		go func() { got <- d.waitSeq(ended, 8) }()
		synctest.Wait()
		if len(got) != 0 {
			t.Fatal("somebody did not wait")
		}
		cancel()
		if err := <-got; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		d.begin(2, 8, false)
		d.publish(1, 8)
		if err := <-got; err != nil { // the unsequenced group is durable
			t.Fatal(err)
		}
		synctest.Wait()
		if len(got) != 0 {
			t.Fatal("9 is not durable yet")
		}
		d.publish(2, 9)
		if err := <-got; err != nil {
			t.Fatal(err)
		}
		d.begin(3, 9, false)
		broken := errors.New("broken")
		go func() { got <- d.waitSeq(ctx, 10) }()
		synctest.Wait()
		d.fail(broken)
		if err := <-got; !errors.Is(err, broken) {
			t.Fatal(err)
		}
		if err := d.waitSeq(ctx, 9); err != nil {
			t.Fatal("what is durable stays readable:", err)
		}
		if err := d.waitSeq(ctx, 10); !errors.Is(err, broken) {
			t.Fatal(err)
		}
	})
}
