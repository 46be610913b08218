package reshard

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"divan/cluster"
	"divan/cluster/designdocs"
	"divan/shard/index"
	"divan/shard/view"
	"divan/storage/fault"
)

// Indexes builds the indexes of targets before they are asked.
type Indexes struct {
	DB      func(ctx context.Context, name string) (*cluster.DB, error)
	Designs *designdocs.Cache
	Views   *view.Views
	Logger  *zap.Logger
}

// Build brings the indexes of all views and for Mango of a copy up to date. One that a query
// could not use either, because its design document or one of its functions is at fault, is
// left out: the split does not make that worse.
func (x *Indexes) Build(ctx context.Context, name, copyName string) error {
	db, err := x.DB(ctx, name)
	if err != nil {
		return err
	}
	all, err := x.Designs.All(ctx, db)
	if err != nil {
		return err
	}
	for _, d := range all {
		def, err := d.Definition(db.Meta().Partitioned)
		if err == nil && def != nil {
			err = x.Views.Build(ctx, copyName, def)
		}
		switch {
		case err == nil:
		case ofDesign(err) && ctx.Err() == nil:
			x.Logger.Warn("index is not built for a shard that is made", zap.String("copy", copyName), zap.String("design document", d.ID), zap.Error(err))
		default:
			return fmt.Errorf("build the index of %s: %w", d.ID, err)
		}
	}
	return nil
}

// ofDesign reports whether an error is the fault of a design document or of a document that
// its functions cannot take.
func ofDesign(err error) bool {
	if document := (*index.DocumentError)(nil); errors.As(err, &document) {
		return true
	}
	if f := (*fault.Error)(nil); errors.As(err, &f) && f.Code == "unknown_query_language" {
		return true
	}
	switch fault.KindOf(err) {
	case fault.InvalidDesignDoc, fault.CompilationError, fault.BadFunction, fault.BadRequest, fault.QueryParse:
		return true
	default:
		return false
	}
}
