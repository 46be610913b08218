package indexes

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"divan/cluster"
	"divan/cluster/designdocs"
	"divan/shard/index"
)

// Options configures Indexes. All are required.
type Options struct {
	Coordinator *cluster.Coordinator
	Designs     *designdocs.Cache
	Manager     *index.Manager // of this node
	Logger      *zap.Logger
}

// Indexes are those of all databases. It is safe for concurrent use.
type Indexes struct {
	o       Options
	written written
}

// New starts nothing; Run has indexes brought up to date after writes.
func New(o Options) (*Indexes, error) {
	if o.Coordinator == nil || o.Designs == nil || o.Manager == nil || o.Logger == nil {
		return nil, errors.New("cluster/indexes: an option is missing")
	}
	return &Indexes{o: o, written: written{wake: make(chan struct{}, 1), set: map[string]struct{}{}}}, nil
}

// Wanted returns the indexes that the design documents of a database want, in their order. One
// that several want comes several times. A document that cannot be read wants none.
func (x *Indexes) Wanted(ctx context.Context, db *cluster.DB) (out []index.Definition, err error) {
	designs, err := x.o.Designs.All(ctx, db)
	if err != nil {
		return nil, err
	}
	for _, d := range designs {
		out = append(out, d.Wanted(db.Meta().Partitioned)...)
	}
	return out, nil
}
