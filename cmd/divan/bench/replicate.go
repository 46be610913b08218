package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"
)

// replicateHTTP is the workload that needs Config.Peer.
const replicateHTTP = "replicate_http"

// errNoPeer is the error of that workload without a peer.
var errNoPeer = errors.New(replicateHTTP + " needs the URL of a second server (--peer)")

// replicateLocal copies the bulk database to another one of the server. Both are
// named by the URL that the clients use. Divan reaches what is its own without
// HTTP; CouchDB asks itself.
func (b *bench) replicateLocal(ctx context.Context, r *recorder) error {
	if err := b.load(ctx); err != nil {
		return err
	}
	err := b.replicate(ctx, r, b, `"create_target":true`)
	b.copied = err == nil
	return err
}

// replicatePeer copies the bulk database to the second server.
func (b *bench) replicatePeer(ctx context.Context, r *recorder) error {
	if err := b.load(ctx); err != nil {
		return err
	}
	return b.replicate(ctx, r, b.peer, `"create_target":true`)
}

// replicateIdle looks at all changes of the bulk database again, when its copy
// has them all.
func (b *bench) replicateIdle(ctx context.Context, r *recorder) error {
	if !b.copied {
		if err := b.replicateLocal(ctx, newRecorder(workload{}, Config{})); err != nil {
			return err
		}
	}
	return b.replicate(ctx, r, b, `"use_checkpoints":false,"since_seq":0`)
}

// replicate has the server copy the bulk database to the database rep of a
// server. Its processor time is told for each document.
func (b *bench) replicate(ctx context.Context, r *recorder, to *bench, options string) error {
	source, err := json.Marshal(strings.TrimRight(b.cfg.URL, "/") + "/" + b.prefix + "bulk")
	if err != nil {
		return err
	}
	target, err := json.Marshal(strings.TrimRight(to.cfg.URL, "/") + "/" + b.prefix + "rep")
	if err != nil {
		return err
	}
	r.perItem = true
	err = b.once(ctx, r, func(a *call) error {
		if err := a.do(fasthttp.MethodPost, []byte("/_replicate"), fmt.Appendf(nil, `{"source":%s,"target":%s,%s}`, source, target, options), fasthttp.StatusOK); err != nil {
			return err
		}
		return a.want(`"ok":true`)
	})
	if err != nil {
		return err
	}
	return to.holds(b.prefix+"rep", b.cfg.Docs)
}

// holds fails when a database does not have so many documents.
func (b *bench) holds(db string, docs int) error {
	a := b.newCall()
	defer a.release()
	if err := a.do(fasthttp.MethodGet, []byte("/"+db+"/_all_docs?limit=0"), nil, fasthttp.StatusOK); err != nil {
		return err
	}
	_, text, _ := bytes.Cut(a.body.start, []byte(`"total_rows":`))
	text, _, _ = bytes.Cut(text, []byte(`,`))
	if n, err := strconv.Atoi(string(text)); err != nil || n < docs {
		return fmt.Errorf("the copy has %s of %d documents", text, docs)
	}
	return nil
}
