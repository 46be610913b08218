package search

import (
	"context"

	"divan/shard"
)

// Batched is an Indexer for which many documents at once are less work than each alone.
type Batched interface {
	Indexer
	// Begin returns what makes fields of a batch of documents, which takes nothing before
	// the first of them.
	Begin() Batch
}

// Batch makes fields of documents. It is for one goroutine at a time.
type Batch interface {
	// Index is that of Indexer.
	Index(ctx context.Context, dst []Field, d *shard.Doc) ([]Field, error)
	// End gives back what the batch has taken.
	End()
}

// beginBatch begins a batch of any Indexer.
func beginBatch(x Indexer) Batch {
	if b, ok := x.(Batched); ok {
		return b.Begin()
	}
	return single{x}
}

// single is a batch of an Indexer that takes each document alone.
type single struct{ Indexer }

// End implements Batch.
func (single) End() {}
