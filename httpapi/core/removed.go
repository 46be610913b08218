package core

import (
	"divan/cluster/meta"
	"divan/storage/fault"
)

// refuseRemoved refuses the requests that a node that was taken out of its cluster must
// not answer. Its databases, users and settings are those from when it left: an
// administrator who was dropped since would still be one, and it would acknowledge writes
// that no other node ever sees. So it does not authenticate clients either, and answers
// only the few requests about the process itself.
func (a *API) refuseRemoved(t *Target) error {
	if !a.Deps.Meta.Removed() || t.aboutProcess(a.Deps.Meta.Self()) {
		return nil
	}
	return fault.New(fault.Unavailable, meta.TextRemoved)
}
