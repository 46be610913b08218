package bench

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/valyala/fasthttp"
)

// revisions are those of the documents that each client updates.
type revisions [][][]byte

func newRevisions(clients, own int) revisions {
	revs := make(revisions, clients)
	for nr := range revs {
		revs[nr] = make([][]byte, own)
	}
	return revs
}

func appendOwnID(dst []byte, nr int, i int64) []byte {
	return fmt.Appendf(dst, "u-%d-%d", nr, i)
}

// updates returns clients that write their documents of a database in turn, each as the successor of its revision.
func (w *writes) updates(db string, revs revisions) func(nr int) client {
	return func(nr int) client {
		var path, body []byte
		return func(a *call, i int64) (int64, error) {
			which := i % int64(len(revs[nr]))
			rev := &revs[nr][which]
			path = appendOwnID(fmt.Appendf(path[:0], "/%s%s/", w.server.prefix, db), nr, which)
			body = w.docs.appendDoc(body[:0], nil, *rev, i)
			if err := a.do(fasthttp.MethodPut, path, body, fasthttp.StatusCreated); err != nil {
				return 0, err
			}
			*rev = append((*rev)[:0], bytes.Trim(a.resp.Header.Peek("ETag"), `"`)...)
			return 1, nil
		}
	}
}

// update writes each client's own documents again and again.
func (w *writes) update(ctx context.Context, r *recorder) error {
	if err := w.server.create("put"); err != nil {
		return err
	}
	const own = 100
	write := w.updates("put", newRevisions(w.cfg.Clients, own))
	if err := w.clients.prepare(ctx, own, write); err != nil {
		return err
	}
	return w.clients.timedRequests(ctx, r, write)
}

// history is how many revisions a document of update_hot has when its clock starts.
const history = 400

// updateHot writes one document for each client again and again, as a counter is written, or a state: its
// history is long. It comes at once, as replication brings it.
func (w *writes) updateHot(ctx context.Context, r *recorder) error {
	if err := w.server.create("hot"); err != nil {
		return err
	}
	revs := newRevisions(w.cfg.Clients, 1)
	err := w.clients.prepare(ctx, 1, func(nr int) client {
		return func(a *call, _ int64) (int64, error) {
			ids := randomIDs(history)
			revs[nr][0] = fmt.Appendf(nil, "%d-%s", history, ids[0])
			return 1, w.writeHistory(a, appendOwnID(nil, nr, 0), revs[nr][0], ids)
		}
	})
	if err != nil {
		return err
	}
	return w.clients.timedRequests(ctx, r, w.updates("hot", revs))
}

// writeHistory writes a document with those revisions, the newest first.
func (w *writes) writeHistory(a *call, id, rev []byte, ids [][]byte) error {
	doc := w.docs.appendDoc(nil, id, rev, 0)
	body := append([]byte(`{"new_edits":false,"docs":[`), doc[:len(doc)-1]...)
	body = fmt.Appendf(body, `,"_revisions":{"start":%d,"ids":["%s"]}}]}`, len(ids), bytes.Join(ids, []byte(`","`)))
	if err := a.do(fasthttp.MethodPost, []byte("/"+w.server.prefix+"hot/_bulk_docs"), body, fasthttp.StatusCreated); err != nil {
		return err
	}
	if answer := bytes.TrimSpace(a.body.start); !bytes.Equal(answer, []byte("[]")) { // it names what was refused
		return fmt.Errorf("the history was not written: %s", answer)
	}
	return nil
}

// randomIDs are of revisions: 32 hexadecimal digits.
func randomIDs(n int) [][]byte {
	ids := make([][]byte, n)
	for i := range ids {
		ids[i] = appendHex(appendHex(nil, rand.Uint64(), 16), rand.Uint64(), 16)
	}
	return ids
}
