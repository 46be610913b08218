package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/valyala/fasthttp"
)

// replicateHTTP is the workload that needs Config.Peer.
const replicateHTTP = "replicate_http"

// errNoPeer is the error of that workload without a peer.
var errNoPeer = errors.New(replicateHTTP + " needs the URL of a second server (--peer)")

// replications are the workloads that copy the bulk database.
type replications struct {
	rig
	writes *writes
	peer   *server // the second server; nil: none
	copied bool    // the database rep is a copy of the bulk database
}

// local copies the bulk database to another one of the server. Both are
// named by the URL that the clients use. Divan reaches what is its own without
// HTTP; CouchDB asks itself.
func (p *replications) local(ctx context.Context, r *recorder) error {
	if err := p.writes.load(ctx); err != nil {
		return err
	}
	err := p.replicate(ctx, r, p.server, `"create_target":true`)
	p.copied = err == nil
	return err
}

// toPeer copies the bulk database to the second server.
func (p *replications) toPeer(ctx context.Context, r *recorder) error {
	if err := p.writes.load(ctx); err != nil {
		return err
	}
	return p.replicate(ctx, r, p.peer, `"create_target":true`)
}

// idle looks at all changes of the bulk database again, when its copy
// has them all.
func (p *replications) idle(ctx context.Context, r *recorder) error {
	if !p.copied {
		if err := p.local(ctx, newRecorder(workload{}, Config{})); err != nil {
			return err
		}
	}
	return p.replicate(ctx, r, p.server, `"use_checkpoints":false,"since_seq":0`)
}

// replicate has the server copy the bulk database to the database rep of a
// server. Its processor time is told for each document.
func (p *replications) replicate(ctx context.Context, r *recorder, to *server, options string) error {
	source, err := json.Marshal(strings.TrimRight(p.server.url, "/") + "/" + p.server.prefix + "bulk")
	if err != nil {
		return err
	}
	target, err := json.Marshal(strings.TrimRight(to.url, "/") + "/" + p.server.prefix + "rep")
	if err != nil {
		return err
	}
	r.perItem = true
	err = p.clients.once(ctx, r, p.cfg.Docs, func(a *call) error {
		if err := a.do(fasthttp.MethodPost, []byte("/_replicate"), fmt.Appendf(nil, `{"source":%s,"target":%s,%s}`, source, target, options), fasthttp.StatusOK); err != nil {
			return err
		}
		return a.want(`"ok":true`)
	})
	if err != nil {
		return err
	}
	return to.holds(p.server.prefix+"rep", p.cfg.Docs)
}
