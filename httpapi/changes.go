package httpapi

import (
	"context"
	"crypto/md5"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"

	"divan/cluster"
	"divan/shard"
	"divan/storage/doc"
)

// changes serves GET and POST /{db}/_changes (api.md section 13).
func changes(c *call) error {
	body, err := c.changesBody()
	if err != nil {
		return err
	}
	p, err := c.parseChanges()
	if err != nil {
		return err
	}
	filter, fields, err := c.changesFilter(p, body)
	if err != nil {
		return err
	}
	p.query.Filter = filter
	if p.feed == feedNormal {
		matched, err := c.changesETag(body)
		if err != nil || matched {
			return err
		}
	}
	w := &changesWriter{c: c, ctx: c.r.Context(), p: p, fields: fields}
	defer w.join()()
	if err := w.open(p.query); err != nil {
		return selectorError(err)
	}
	defer w.feed.Close()
	if p.feed == feedNormal && filter.Kind == shard.FilterDocIDs && len(filter.IDs) <= c.cfg.CouchDB.ChangesDocIDsThreshold {
		n := w.feed.Pending()
		w.looked = &n
	}
	w.out = c.stream(p.feed.contentType())
	if p.feed == feedEventSource {
		c.w.Header()["Cache-Control"] = noCache
	}
	return w.run(c.cfg.Fabric.ChangesDuration)
}

// join makes a feed that waits one of those that end with the server; leave is
// called when the feed is over.
func (w *changesWriter) join() (leave func()) {
	if !w.p.feed.waits() {
		return func() {}
	}
	ctx, leave, open := w.c.api.joinFeeds(w.ctx)
	w.ctx, w.once = ctx, !open
	if w.p.heartbeat > 0 {
		w.p.query.Beat = w.beat
	}
	return leave
}

// open opens the feed. One whose end comes meanwhile does not wait.
func (w *changesWriter) open(q cluster.ChangesQuery) (err error) {
	w.feed, err = w.c.db.Changes(w.ctx, q)
	if err != nil && errors.Is(context.Cause(w.ctx), errFeedsEnd) {
		w.ctx, w.once = w.c.r.Context(), true
		w.feed, err = w.c.db.Changes(w.ctx, q)
	}
	return err
}

// contentType is the media type of a feed, empty for JSON.
func (k feedKind) contentType() string {
	if k == feedEventSource {
		return "text/event-stream"
	}
	return ""
}

// heartbeat is the text of a heartbeat. In continuous feeds it is a lone LF
// (api.md section 20, row 16), between the rows of a longpoll white space.
func (k feedKind) heartbeat() string {
	if k == feedEventSource {
		return "event: heartbeat\ndata: \n\n"
	}
	return "\n"
}

// changesBody reads the body of a POST: an object, or nothing at all.
func (c *call) changesBody() ([]byte, error) {
	if c.method != http.MethodPost {
		return nil, nil
	}
	if err := c.requireJSON(); err != nil {
		return nil, err
	}
	text, err := c.readBody(0)
	if err != nil || len(text) == 0 {
		return nil, err
	}
	return text, doc.EachMember(text, func(string, []byte) error { return nil })
}

// changesETag sets the entity tag of a normal feed, which stands for the state
// of the database and the request, and answers 304 when the client has it.
func (c *call) changesETag(body []byte) (matched bool, err error) {
	info, err := c.db.Info(c.r.Context())
	if err != nil {
		return false, err
	}
	h := md5.New()
	for _, s := range []string{
		info.Name, info.InstanceStart, info.UpdateSeq, strconv.FormatUint(info.PurgeSeq, 10),
		c.r.URL.RawQuery, c.r.Header.Get("Last-Event-ID"), string(body),
	} {
		h.Write([]byte(s))
		h.Write([]byte{0})
	}
	etag := `"` + base64.RawStdEncoding.EncodeToString(h.Sum(nil)) + `"`
	c.w.Header()["Etag"] = []string{etag}
	if !c.etagMatches(etag) {
		return false, nil
	}
	return true, c.sendEmpty(http.StatusNotModified)
}
