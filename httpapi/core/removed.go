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
func (c *Call) refuseRemoved() error {
	if !c.API.Deps.Meta.Removed() || c.aboutProcess(c.API.Deps.Meta.Self()) {
		return nil
	}
	return fault.New(fault.Unavailable, meta.TextRemoved)
}
