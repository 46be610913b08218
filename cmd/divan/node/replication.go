package node

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	httplocal "divan/httpapi/local"
	"divan/replicator"
	"divan/replicator/local"
	"divan/replicator/ownership"
	"divan/replicator/peruser"
	"divan/shard"
	"divan/storage/fault"
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
	owners := ownership.Options{Meta: n.meta, Logger: n.log.Named("ownership")}
	if n.links != nil {
		owners.Alive = n.links.alive
	}
	n.owners = ownership.New(owners)
	options := replicator.Options{
		Coordinator: n.coord, Meta: n.meta, Config: n.config, Owners: n.owners, Identify: n.identify, Listening: n.Addr, Others: n.askOthers, Send: n.sendReplication,
		Local:     local.New(local.Options{Coordinator: n.coord, Access: httplocal.Access{API: n.api.API}}),
		Memory:    memory.ForReplications(n.api.Memory),
		UserAgent: "Divan-Replicator/" + n.cfg.Version, Logger: n.log.Named("replicator"), Dial: n.dial,
	}
	n.replicator = replicator.New(options)
	n.api.Deps.Replicator = n.replicator
	n.perUser = peruser.New(peruser.Options{Coordinator: n.coord, Meta: n.meta, Config: n.config, Owners: n.owners, Logger: n.log.Named("peruser")})
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

// dial connects to the HTTP interface of another server.
func (n *Node) dial(ctx context.Context, _, address string) (net.Conn, error) {
	return n.cfg.network().Dial(ctx, address)
}

// identify tells whose credentials the headers of a replication of an account have.
func (n *Node) identify(ctx context.Context, account string, h http.Header) (shard.User, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody)
	if err != nil {
		return shard.User{}, err
	}
	if header, ok := n.config.Load().Get("chttpd", "peer_header"); ok {
		h.Del(header) // who asks is not for an address to say
	}
	r.Header = h
	who, err := n.auth.AuthenticateJob(r, account)
	return who.User, err
}

// askTimeout is how long other nodes have to tell what they replicate.
const askTimeout = 5 * time.Second

// askOthers asks all other nodes for what they tell administrators.
func (n *Node) askOthers(ctx context.Context, path string) [][]byte {
	return n.api.GetFromOthers(ctx, serverUser(), path, askTimeout)
}

// sendReplication has another node run a continuous replication.
func (n *Node) sendReplication(ctx context.Context, node string, q *replicator.Request) error {
	status, answer, err := n.api.PostTo(ctx, node, "/_replicate", q.User, q.Body)
	switch {
	case err != nil || status == http.StatusAccepted:
		return err
	case status >= 400 && status < 500:
		return fault.Newf(fault.BadRequest, "%s answers %d: %s", node, status, answer)
	default:
		return fmt.Errorf("%s answers %d: %s", node, status, answer)
	}
}
