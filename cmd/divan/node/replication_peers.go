package node

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"divan/cluster/config"
	"divan/httpapi"
	"divan/httpapi/auth"
	"divan/replicator"
	"divan/shard"
	"divan/storage/fault"
)

// replicationPeers is how replications of this node reach those of other nodes, and the
// databases of its own cluster that they name by URL.
type replicationPeers struct {
	api    *httpapi.API
	auth   *auth.Authenticator
	config *config.Holder
}

// identify tells whose credentials the headers of a replication of an account have.
func (p *replicationPeers) identify(ctx context.Context, account string, h http.Header) (shard.User, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody)
	if err != nil {
		return shard.User{}, err
	}
	if header, ok := p.config.Load().Get("chttpd", "peer_header"); ok {
		h.Del(header) // who asks is not for an address to say
	}
	r.Header = h
	who, err := p.auth.AuthenticateJob(r, account)
	return who.User, err
}

// askTimeout is how long other nodes have to tell what they replicate.
const askTimeout = 5 * time.Second

// askOthers asks all other nodes for what they tell administrators.
func (p *replicationPeers) askOthers(ctx context.Context, path string) [][]byte {
	return p.api.GetFromOthers(ctx, serverUser(), path, askTimeout)
}

// send has another node run a continuous replication.
func (p *replicationPeers) send(ctx context.Context, node string, q *replicator.Request) error {
	status, answer, err := p.api.PostTo(ctx, node, "/_replicate", q.User, q.Body)
	switch {
	case err != nil || status == http.StatusAccepted:
		return err
	case status >= 400 && status < 500:
		return fault.Newf(fault.BadRequest, "%s answers %d: %s", node, status, answer)
	default:
		return fmt.Errorf("%s answers %d: %s", node, status, answer)
	}
}
