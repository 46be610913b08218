package core

import (
	"divan/cluster/meta"
	"divan/storage/fault"
)

// refuseRemoved refuses what a node that was taken out of its cluster must not
// answer. What it knows of databases, users and settings is what held when it
// left: an administrator who was dropped since would still be one, and a write
// would be acknowledged that nobody else ever sees. So nobody is asked who they
// are either, except for the few things that are about the process itself.
func (c *Call) refuseRemoved() error {
	if !c.API.Deps.Meta.Removed() || c.aboutProcess(c.API.Deps.Meta.Self()) {
		return nil
	}
	return fault.New(fault.Unavailable, meta.TextRemoved)
}
