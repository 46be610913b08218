package changes

import (
	"context"
	"crypto/md5"
	"encoding/base64"
	"errors"
	"net/http"

	"divan/cluster"
	"divan/httpapi/core"
	"divan/shard"
	"divan/storage/doc"
)

// changes serves GET and POST /{db}/_changes (api.md section 13).
func changes(c *core.Call) error {
	c.ForAccount()
	body, err := changesBody(c)
	if err != nil {
		return err
	}
	p, err := parseChanges(c)
	if err != nil {
		return err
	}
	filter, fields, err := changesFilter(c, p, body)
	if err != nil {
		return err
	}
	p.query.Filter = filter
	if p.feed == feedNormal {
		matched, err := changesETag(c, body)
		if err != nil || matched {
			return err
		}
	}
	w := &changesWriter{c: c, ctx: c.Request.Context(), p: p, fields: fields}
	p.query.Beat = w.beat
	defer w.join()()
	if err := w.open(p.query); err != nil {
		return selectorError(err)
	}
	defer w.feed.Close()
	if p.feed == feedNormal && filter.Kind == shard.FilterDocIDs && len(filter.IDs) <= c.Config.CouchDB.ChangesDocIDsThreshold {
		n := w.feed.Pending()
		w.looked = &n
	}
	w.out = c.Stream(p.feed.contentType())
	if p.feed == feedEventSource {
		c.Response.Header()["Cache-Control"] = core.NoCache
	}
	return w.run(c.Config.Fabric.ChangesDuration)
}

// join makes a feed that waits one of those that end with the server; leave is
// called when the feed is over.
func (w *changesWriter) join() (leave func()) {
	if !w.p.feed.waits() {
		return func() {}
	}
	ctx, leave, open := w.c.API.JoinFeeds(w.ctx)
	w.ctx, w.once = ctx, !open
	return leave
}

// open opens the feed. One whose end comes meanwhile does not wait.
func (w *changesWriter) open(q cluster.ChangesQuery) (err error) {
	w.feed, err = w.c.DB.Changes(w.ctx, q)
	if err != nil && errors.Is(context.Cause(w.ctx), core.ErrFeedsEnd) {
		w.ctx, w.once = w.c.Request.Context(), true
		w.feed, err = w.c.DB.Changes(w.ctx, q)
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
func changesBody(c *core.Call) ([]byte, error) {
	if c.Method != http.MethodPost {
		return nil, nil
	}
	if err := c.Body.RequireJSON(); err != nil {
		return nil, err
	}
	text, err := c.Body.ReadAll(0)
	if err != nil || len(text) == 0 {
		return nil, err
	}
	return text, doc.EachMember(text, func(string, []byte) error { return nil })
}

// changesETag sets the entity tag of a normal feed, which stands for the state
// of the database and the request, and answers 304 when the client has it.
func changesETag(c *core.Call, body []byte) (matched bool, err error) {
	info, err := c.DB.Info(c.Request.Context())
	if err != nil {
		return false, err
	}
	h := md5.New()
	for _, s := range []string{
		info.Name, info.InstanceStart, info.UpdateSeq, info.PurgeSeq,
		c.Request.URL.RawQuery, c.Request.Header.Get("Last-Event-ID"), string(body),
	} {
		h.Write([]byte(s))
		h.Write([]byte{0})
	}
	etag := `"` + base64.RawStdEncoding.EncodeToString(h.Sum(nil)) + `"`
	c.Response.Header()["Etag"] = []string{etag}
	if !core.ETagMatches(c.Request, etag) {
		return false, nil
	}
	return true, c.Response.SendEmpty(http.StatusNotModified)
}
