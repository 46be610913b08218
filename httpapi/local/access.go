// Package local lets replications that run on this node do with databases what
// their accounts may do over HTTP. It implements what package replicator/local
// asks for.
package local

import (
	"context"
	"net/url"

	"divan/cluster"
	"divan/httpapi/changes"
	"divan/httpapi/core"
	"divan/httpapi/db"
	"divan/httpapi/guard"
	"divan/replicator/endpoint"
	"divan/replicator/local"
	"divan/shard"
)

// Access implements local.Access.
type Access struct{ API *core.API }

// Rights implements local.Access.
func (a Access) Rights(d *cluster.DB, u shard.User) local.Rights {
	return guard.Rights{Guard: a.API.Guard, Config: a.API.Deps.Config.Load(), User: u, DB: d.Meta()}
}

// Create implements local.Access.
func (a Access) Create(u shard.User, name string, query [][2]string) (cluster.CreateOptions, error) {
	if err := guard.RequireAdmin(u); err != nil {
		return cluster.CreateOptions{}, err
	}
	params := make(core.Params, len(query))
	for i, q := range query {
		params[i] = core.Param{Name: q[0], Value: q[1]}
	}
	return db.ParseCreate(name, params)
}

// Filter implements local.Access.
func (a Access) Filter(ctx context.Context, d *cluster.DB, u shard.User, f endpoint.Filter) (shard.Filter, error) {
	switch {
	case f.HasIDs || len(f.DocIDs) > 0:
		return shard.Filter{Kind: shard.FilterDocIDs, IDs: f.DocIDs}, nil
	case f.Selector != nil:
		return shard.Filter{Kind: shard.FilterSelector, Selector: f.Selector}, nil
	case f.Function == "":
		return shard.Filter{}, nil
	}
	target := "/" + url.PathEscape(d.Name()) + "/_changes?filter=" + url.QueryEscape(f.Function)
	for _, q := range f.Query {
		target += "&" + url.QueryEscape(q[0]) + "=" + url.QueryEscape(q[1])
	}
	c, err := a.API.InternalCall(ctx, d, u, target)
	if err != nil {
		return shard.Filter{}, err
	}
	return changes.Filter(c) //nolint:contextcheck // the call carries the context
}
