package indexes

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"divan/shard/index"
	"divan/storage/fault"
)

// Build brings all indexes of a copy of this node up to date that the design documents of its
// database want. One that a query could not use either, because its design document or one of
// its functions is at fault, is left out.
func (x *Indexes) Build(ctx context.Context, name, copyName string) error {
	db, err := x.o.Coordinator.DB(ctx, name)
	if err != nil {
		return err
	}
	wanted, err := x.Wanted(ctx, db)
	if err != nil {
		return err
	}
	for _, d := range wanted {
		err := x.o.Manager.Build(ctx, copyName, d)
		switch {
		case err == nil:
		case ofDesign(err) && ctx.Err() == nil:
			x.o.Logger.Warn("index is not built for a shard that is made", zap.String("copy", copyName), zap.String("design document", d.Design), zap.Error(err))
		default:
			return fmt.Errorf("build the index of %s: %w", d.Design, err)
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
	return fault.OfDesign(err)
}
