package search

import (
	"context"
	"time"

	"divan/shard/fairqueue"
)

// turns are the turns that the queries of a node share. A short query needs
// none of them.
type turns struct {
	// work is the processors: a query that has looked at checkEvery documents or terms works
	// in turns with others.
	work *fairqueue.Queue
	// large is the queries that take more than smallBytes at a time; no database and no
	// account has all of them.
	large *fairqueue.Queue
}

// largeQueries is how many queries may take more than smallBytes at a time: together they
// take so many times spaceBytes at most.
const largeQueries = 8

func newTurns(processors int) *turns {
	return &turns{
		work:  fairqueue.New(fairqueue.Options{Capacity: processors}),
		large: fairqueue.New(fairqueue.Options{Capacity: largeQueries, Shares: true}),
	}
}

// turn is the part of the turns that a query has. It belongs to one goroutine.
type turn struct {
	turns   *turns
	ctx     context.Context
	flow    fairqueue.Flow
	work    fairqueue.Turn
	large   fairqueue.Turn
	working bool // it has work
	isLarge bool // it has large
}

// newTurn returns that of a query of a database, by its instance.
func (t *turns) newTurn(ctx context.Context, instance string) *turn {
	return &turn{turns: t, ctx: ctx, flow: fairqueue.Flow{Database: instance, Account: fairqueue.CallerOf(ctx).Account}}
}

// check is called now and then by a query that works: it waits while it is the turn of others.
// The error is that of the context.
func (t *turn) check() error {
	if err := t.ctx.Err(); err != nil {
		return err
	}
	now := time.Now()
	if !t.working {
		err := t.turns.work.Acquire(t.ctx, &t.work, t.flow, now, 0)
		t.working = err == nil
		return err
	}
	if !t.work.Wanted(now) {
		return nil
	}
	_, err := t.work.Yield(t.ctx, now)
	t.working = err == nil
	return err
}

// grow waits until the query may be large. It has no processor meanwhile.
func (t *turn) grow() error {
	if t.isLarge {
		return nil
	}
	t.rest()
	err := t.turns.large.Acquire(t.ctx, &t.large, t.flow, time.Now(), 0)
	t.isLarge = err == nil
	return err
}

// rest gives the processor to others.
func (t *turn) rest() {
	if t.working {
		t.work.Release(time.Now())
		t.working = false
	}
}

// end gives back everything.
func (t *turn) end() {
	t.rest()
	if t.isLarge {
		t.large.Release(time.Now())
		t.isLarge = false
	}
}
