// Package attachment brings the content of attachments to the copies of a range
// and back: an upload writes all of them at once, a [Reader] goes on from
// another copy when one breaks off.
package attachment

import (
	"context"

	"divan/cluster/fanout"
)

// Database is the one whose copies hold the content.
type Database interface {
	fanout.Database
	// Explain turns what the copies said into what the client is told.
	Explain(ctx context.Context, err error) error
	// WhenBorn does part of a request, and again while the database is so new
	// that no copy is there yet.
	WhenBorn(ctx context.Context, part func() error) error
}
