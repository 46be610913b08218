package indexer

import (
	"context"

	"divan/shard/script"
	"divan/shard/search"
)

// New returns what opens the indexers of a node. The errors of that are *fault.Error: a
// function that does not compile is CompilationError, a definition of Mango that cannot be
// read InvalidDesignDoc.
func New(scripts *script.Engine) search.OpenIndexer {
	return func(ctx context.Context, instance string, d *search.Definition) (search.Indexer, error) {
		if d.Mango() {
			return newMango(d)
		}
		return newFunction(ctx, scripts, instance, d)
	}
}
