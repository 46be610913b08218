package index

import (
	"context"

	"divan/storage/fault"
)

// Opener makes the Kind of an index of a copy; sequences says that its Map always needs Doc.Seq.
type Opener func(ctx context.Context, copyName string, d Definition) (kind Kind, sequences bool, err error)

// Register says how indexes of a type are made of their definitions. It is called before the
// manager is used.
func (m *Manager) Register(t Type, open Opener) { m.openers[t] = open }

// spec says how an index is made.
func (m *Manager) spec(copyName string, d Definition) Spec {
	return Spec{Name: d.Name, Design: d.Design, Label: d.Label, Open: func(ctx context.Context) (Kind, bool, error) {
		open := m.openers[d.Type]
		if open == nil {
			return nil, false, fault.Newf(fault.Unavailable, "This node keeps no indexes of the type %q.", d.Type)
		}
		return open(ctx, copyName, d)
	}}
}

// Build returns when an index of a copy holds everything that was durable in the copy when it
// was called.
func (m *Manager) Build(ctx context.Context, copyName string, d Definition) error {
	use, err := m.Acquire(ctx, copyName, m.spec(copyName, d))
	if err != nil {
		return err
	}
	defer use.Release()
	return use.Update(ctx)
}

// Warm starts an update in the background: one index of a database after the other, while
// no query waits for them with half of one processor. What goes wrong is only logged: the
// queries of the index hear of it.
func (m *Manager) Warm(ctx context.Context, copyName string, d Definition) {
	m.warm(ctx, copyName, m.spec(copyName, d))
}
