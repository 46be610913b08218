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
}
