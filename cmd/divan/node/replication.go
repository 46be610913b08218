package node

import (
	"context"
	"fmt"
	"net/http"
	"time"

	httplocal "divan/httpapi/local"
	"divan/replicator"
	"divan/replicator/local"
	"divan/replicator/ownership"
	"divan/shard"
	"divan/storage/fault"
	"divan/storage/memory"
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
		Coordinator: n.coord, Meta: n.meta, Config: n.config, Owners: n.owners, Identify: n.identify, Listening: n.Addr, Others: n.askOthers, Send: n.sendReplication,
		Local:     local.New(local.Options{Coordinator: n.coord, Access: httplocal.Access{API: n.api.API}}),
		Memory:    memory.NewShares(n.api.Memory),
		UserAgent: "Divan-Replicator/" + n.cfg.Version, Logger: n.log.Named("replicator"),
	}
	if n.links != nil {
		options.Dial = n.links.dial
	}
	n.replicator = replicator.New(options)
	n.api.Deps.Replicator = n.replicator
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
