package node

import (
	"context"

	httplocal "divan/httpapi/local"
	"divan/replicator"
	"divan/replicator/local"
	"divan/replicator/ownership"
	"divan/replicator/peruser"
	"divan/storage/memory"
)

// replication holds the parts that copy databases.
type replication struct {
	owners     *ownership.Table
	replicator *replicator.Replicator
	perUser    *peruser.Keeper
}

// newReplication builds what replicates, and gives it to the HTTP interface.
func (n *Node) newReplication() {
	owners := ownership.Options{Meta: n.meta, Logger: n.base.log.Named("ownership")}
	if n.links != nil {
		owners.Alive = n.links.alive
	}
	n.owners = ownership.New(owners)
	jobs := &replicationPeers{api: n.api, auth: n.auth, config: n.base.config}
	options := replicator.Options{
		Coordinator: n.coord, Meta: n.meta, Config: n.base.config, Owners: n.owners, Identify: jobs.identify, Listening: n.Addr, Others: jobs.askOthers, Send: jobs.send,
		Local:     local.New(local.Options{Coordinator: n.coord, Access: httplocal.Access{API: n.api.API}}),
		Memory:    memory.ForReplications(n.api.Memory),
		UserAgent: "Divan-Replicator/" + n.base.cfg.Version, Logger: n.base.log.Named("replicator"), Dial: n.base.dial,
	}
	n.replicator = replicator.New(options)
	n.api.Deps.Replicator = n.replicator
	n.perUser = peruser.New(peruser.Options{Coordinator: n.coord, Meta: n.meta, Config: n.base.config, Owners: n.owners, Logger: n.base.log.Named("peruser")})
}

// runReplicator begins once the node listens. A job that began before would not know the
// URL of its own node, and would reach its databases through HTTP for as long as it runs.
func (n *Node) runReplicator(ctx context.Context) error {
	select {
	case <-n.ready:
		return n.replicator.Run(ctx)
	case <-ctx.Done():
		return nil
	}
}
