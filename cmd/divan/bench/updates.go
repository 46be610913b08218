package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
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

func (b *bench) appendOwnID(dst []byte, nr int, i int64) []byte {
	return fmt.Appendf(dst, "u-%d-%d", nr, i)
}

// updates returns clients that write their documents of a database in turn, each as the successor of its revision.
func (b *bench) updates(db string, revs revisions) func(nr int) client {
	return func(nr int) client {
		var path, body []byte
		return func(a *call, i int64) (int64, error) {
			which := i % int64(len(revs[nr]))
			rev := &revs[nr][which]
			path = b.appendOwnID(fmt.Appendf(path[:0], "/%s%s/", b.prefix, db), nr, which)
			body = b.appendDoc(body[:0], nil, *rev, i)
			if err := a.do(fasthttp.MethodPut, path, body, fasthttp.StatusCreated); err != nil {
				return 0, err
			}
			*rev = append((*rev)[:0], bytes.Trim(a.resp.Header.Peek("ETag"), `"`)...)
			return 1, nil
		}
	}
}

// prepare has each client do its work a number of times, before anything is measured.
func (b *bench) prepare(ctx context.Context, times int, newClient func(nr int) client) error {
	return b.parallel(ctx, b.cfg.Clients, newRecorder(workload{}, Config{}), func(nr int) client {
		work := newClient(nr)
		return func(a *call, i int64) (int64, error) {
			if i >= int64(times) {
				return 0, io.EOF
			}
			return work(a, i)
		}
	})
}

// update writes each client's own documents again and again.
func (b *bench) update(ctx context.Context, r *recorder) error {
	if err := b.create("put"); err != nil {
		return err
	}
	const own = 100
	write := b.updates("put", newRevisions(b.cfg.Clients, own))
	if err := b.prepare(ctx, own, write); err != nil {
		return err
	}
	return b.timedRequests(ctx, r, write)
}

// history is how many revisions a document of update_hot has when its clock starts.
const history = 400

// updateHot writes one document for each client again and again, as a counter is written, or a state: its
// history is long. It comes at once, as replication brings it.
func (b *bench) updateHot(ctx context.Context, r *recorder) error {
	if err := b.create("hot"); err != nil {
		return err
	}
	revs := newRevisions(b.cfg.Clients, 1)
	err := b.prepare(ctx, 1, func(nr int) client {
		return func(a *call, _ int64) (int64, error) {
			ids := randomIDs(history)
			revs[nr][0] = fmt.Appendf(nil, "%d-%s", history, ids[0])
			return 1, b.writeHistory(a, b.appendOwnID(nil, nr, 0), revs[nr][0], ids)
		}
	})
	if err != nil {
		return err
	}
	return b.timedRequests(ctx, r, b.updates("hot", revs))
}

// writeHistory writes a document with those revisions, the newest first.
func (b *bench) writeHistory(a *call, id, rev []byte, ids [][]byte) error {
	doc := b.appendDoc(nil, id, rev, 0)
	body := append([]byte(`{"new_edits":false,"docs":[`), doc[:len(doc)-1]...)
	body = fmt.Appendf(body, `,"_revisions":{"start":%d,"ids":["%s"]}}]}`, len(ids), bytes.Join(ids, []byte(`","`)))
	if err := a.do(fasthttp.MethodPost, []byte("/"+b.prefix+"hot/_bulk_docs"), body, fasthttp.StatusCreated); err != nil {
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
