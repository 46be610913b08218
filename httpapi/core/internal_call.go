package core

import (
	"context"
	"fmt"
	"net/http"

	"divan/cluster"
	"divan/shard"
)

// InternalCall returns a call that no client has sent: a GET on a database that is open
// already, by an account that is known. Work that this node does itself for an account is
// then the same as the work for a request. There is nowhere to write an answer to.
func (a *API) InternalCall(ctx context.Context, db *cluster.DB, u shard.User, target string) (*Call, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+target, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("request %s: %w", target, err)
	}
	r.RequestURI, r.RemoteAddr = target, "127.0.0.1:0"
	c := &Call{Response: &Response{}}
	c.assemble(a, nil, r, &scratch{})
	c.User, c.DB, c.DBName, c.internal = u, db, db.Name(), true
	return c, c.admit()
}
