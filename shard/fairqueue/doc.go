// Package fairqueue gives out turns at a scarce resource, so that no caller waits
// longer because others ask for more.
//
// A schedule decides, without clock and goroutines: start-time fair queueing (Goyal,
// Vin and Cheng) over databases, and over the accounts within each. What counts is the
// time that turns took, not how many there were. A Queue does what a schedule decides.
//
// Goroutines: none of its own. A timer runs while a caller waits and a holder is away.
package fairqueue

import "context"

// Flow is on whose behalf something is done. Databases share equally, and within a
// database the accounts that use it.
type Flow struct {
	Database string // the instance, as a name may come back with other content
	Account  string
	// Background is for work that no caller waits for. It counts as a database of its
	// own, and gets an eighth of what others get.
	Background bool
}

// Caller names the party that the work of a context is done for.
type Caller struct {
	Account string // empty: the server itself, or a client that is not logged in
	// Background reports whether no client waits for the work at the moment; nil: a
	// client does.
	Background func() bool
	Patient    bool // it waits for its turns as long as it takes
}

type callerKey struct{}

// With tells who the work of ctx is done for.
func With(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf returns whom With has told.
func CallerOf(ctx interface{ Value(key any) any }) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}
