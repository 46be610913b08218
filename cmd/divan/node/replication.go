package node

import (
	"context"
	"net/http"

	httplocal "divan/httpapi/local"
	"divan/replicator"
	"divan/replicator/local"
	"divan/replicator/ownership"
	"divan/shard"
)

// replication is what copies databases.
type replication struct {
	owners     *ownership.Table
	replicator *replicator.Replicator
}

// newReplication builds what replicates, and gives it to the HTTP interface.
func (n *Node) newReplication() {
	owners := ownership.Options{Meta: n.meta, Logger: n.log.Named("ownership")}
	if n.links != nil {
		owners.Alive = n.links.alive
	}
	n.owners = ownership.New(owners)
	options := replicator.Options{
		Coordinator: n.coord, Meta: n.meta, Config: n.config, Owners: n.owners, Identify: n.identify, Listening: n.Addr,
		Local:     local.New(local.Options{Coordinator: n.coord, Access: httplocal.Access{API: n.api.API}}),
		UserAgent: "Divan-Replicator/" + n.cfg.Version, Logger: n.log.Named("replicator"),
	}
	if n.links != nil {
		options.Dial = n.links.dial
	}
	n.replicator = replicator.New(options)
	n.api.Deps.Replicator = n.replicator
}

// identify tells whose credentials headers have.
func (n *Node) identify(ctx context.Context, h http.Header) (shard.User, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody)
	if err != nil {
		return shard.User{}, err
	}
	r.Header = h
	who, err := n.auth.Authenticate(r)
	return who.User, err
}
