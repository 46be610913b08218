package core

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"divan/cluster"
	"divan/shard"
)

// InternalCall returns a call that nobody has sent: a GET on a database that is open
// already, by an account that is known. What this node does itself for an account
// is the same then as what a request would have had done. There is nowhere to
// write an answer to.
func (a *API) InternalCall(ctx context.Context, db *cluster.DB, u shard.User, target string) (*Call, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+target, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("request %s: %w", target, err)
	}
	r.RequestURI, r.RemoteAddr = target, "127.0.0.1:0"
	c := &Call{
		API: a, Request: r, Config: a.Deps.Config.Load(), Log: a.Deps.Logger, User: u, Method: r.Method,
		DB: db, Start: time.Now(), scratch: &scratch{},
	}
	c.Response = &Response{c: c}
	c.set = a.settings(c.Config)
	c.DBName = db.Name()
	return c, c.admit()
}
