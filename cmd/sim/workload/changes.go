package workload

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"divan/cmd/sim/dump"
	"divan/cmd/sim/history"
)

type inline struct {
	ContentType string `json:"content_type"`
	Data        string `json:"data,omitempty"`
	Stub        bool   `json:"stub,omitempty"`
}

// content makes an attachment and chooses its type, which decides whether it
// is stored compressed.
func (c *Client) content() (data []byte, contentType string) {
	size := 4 + c.rng.IntN(3000)
	if c.rng.IntN(4) == 0 {
		size = 64<<10 + c.rng.IntN(200<<10)
	}
	data = make([]byte, size)
	source := rand.NewChaCha8([32]byte{byte(c.rng.Uint32()), byte(c.rng.Uint32()), byte(c.rng.Uint32()), byte(c.rng.Uint32())})
	_, _ = source.Read(data) // never fails
	if c.rng.IntN(3) == 0 {
		return []byte(strings.ToLower(base64.StdEncoding.EncodeToString(data[:size*3/4]))), "text/plain"
	}
	return data, "application/octet-stream"
}

// attach writes an attachment, in a request of its own or inside of a
// document.
func (c *Client) attach(ctx context.Context, db string) {
	id := fmt.Sprint("d", c.rng.IntN(4))
	name := fmt.Sprint("f", c.rng.IntN(3))
	data, contentType := c.content()
	parent := c.parent(db, id)
	q := url.Values{}
	e := history.Edit{DB: db, ID: id, Parent: parent, Quorum: c.copies("w", q)}
	before := map[string]string{}
	if parent != "" {
		before = c.atts[db+"/"+id+"/"+parent] // nil when this client does not know them
	}
	if before != nil {
		e.Attachments = maps.Clone(before)
		e.Attachments[name] = dump.Sum(data)
	}
	r := &request{method: http.MethodPut, body: data, header: map[string]string{"Content-Type": contentType}}
	if c.rng.IntN(2) == 0 && len(data) < 10000 {
		e.Number = c.Log.Number()
		b := body{Rev: parent, Number: e.Number, Attachments: map[string]inline{name: {ContentType: contentType, Data: base64.StdEncoding.EncodeToString(data)}}}
		for other := range before {
			if other != name {
				b.Attachments[other] = inline{Stub: true}
			}
		}
		if before == nil {
			e.Attachments = map[string]string{name: dump.Sum(data)}
		}
		r.body, _ = json.Marshal(b) // a type of this package
		r.header["Content-Type"] = "application/json"
		r.path = path(db, id, q)
	} else {
		if parent != "" {
			q.Set("rev", parent)
		}
		r.path = path(db, id+"/"+name, q)
	}
	c.send(ctx, r)
	var res result
	if r.broken == nil && r.status < 500 {
		_ = json.Unmarshal(r.answer, &res) // an edit without revision is noted
	}
	e.Span, e.Node, e.Outcome, e.Rev = r.Span, r.target.Name, history.OfStatus(r.status), res.Rev
	if e.Outcome == history.Refused && r.status != http.StatusPreconditionFailed { // 412: the stub's content is no longer there
		c.unexpected(r)
	}
	c.edited(e)
}

// readAttachment reads what was acknowledged to this client.
func (c *Client) readAttachment(ctx context.Context, db string) {
	var keys []string
	for key, atts := range c.atts {
		if strings.HasPrefix(key, db+"/") && len(atts) > 0 {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return
	}
	slices.Sort(keys)
	key := keys[c.rng.IntN(len(keys))]
	parts := strings.Split(key, "/")
	for _, name := range slices.Sorted(maps.Keys(c.atts[key])) {
		r := &request{method: http.MethodGet, path: path(db, parts[1]+"/"+name, url.Values{"rev": {parts[2]}}), header: map[string]string{"Accept": "*/*"}}
		c.send(ctx, r)
		if r.status == http.StatusOK && r.broken == nil && dump.Sum(r.answer) != c.atts[key][name] {
			c.wrong("%s/%s through %s at %v: %d other bytes than were written", key, name, r.target.Name, r.Call, len(r.answer))
		}
	}
}

// place chooses where to go on in the feed of a database: mostly where this
// client is, sometimes anywhere that anybody has been.
func (c *Client) place(db string) history.Since {
	at, known := c.page[db]
	if known && c.rng.IntN(10) < 6 {
		return at
	}
	switch c.rng.IntN(10) {
	case 0, 1:
		return history.Since{Page: history.Beginning}
	case 2:
		return history.Since{Page: history.Now}
	}
	at = history.Since{Page: history.Beginning}
	c.Log.Note(func(h *history.History) {
		for range 5 {
			if len(h.Pages) == 0 {
				return
			}
			i := c.rng.IntN(len(h.Pages))
			p := &h.Pages[i]
			rows := c.rng.IntN(len(p.Rows) + 1)
			if p.DB == db && (rows > 0 || len(p.Rows) == 0 && p.Last != "") {
				at = history.Since{Page: i, Rows: rows}
				return
			}
		}
	})
	return at
}

// row is a line of a changes feed; the last one of a continuous feed has only
// LastSeq.
type row struct {
	Seq     string `json:"seq"`
	ID      string `json:"id"`
	Changes []struct {
		Rev string `json:"rev"`
	} `json:"changes"`
	LastSeq string `json:"last_seq"`
}

// Rows reads a changes feed of any kind that has ended or broken off.
func Rows(answer []byte, continuous bool) (rows []history.Row, last string, err error) {
	var lines []row
	if continuous {
		for line := range bytes.SplitSeq(answer, []byte("\n")) {
			var r row
			if line = bytes.TrimSpace(line); len(line) == 0 {
				continue
			}
			if err := json.Unmarshal(line, &r); err != nil {
				return rowsOf(lines), "", err
			}
			if r.LastSeq == "" && r.Seq == "" { // the feed says why it breaks off
				return rowsOf(lines), "", nil
			}
			last = r.LastSeq
			if r.LastSeq == "" {
				lines = append(lines, r)
			}
		}
	} else {
		var page struct {
			Results []row  `json:"results"`
			LastSeq string `json:"last_seq"`
		}
		if err := json.Unmarshal(answer, &page); err != nil {
			return nil, "", err
		}
		lines, last = page.Results, page.LastSeq
	}
	return rowsOf(lines), last, nil
}

// rowsOf returns lines as rows of a history.
func rowsOf(lines []row) (rows []history.Row) {
	for _, r := range lines {
		out := history.Row{Seq: r.Seq, ID: r.ID}
		for _, l := range r.Changes {
			out.Leaves = append(out.Leaves, l.Rev)
		}
		rows = append(rows, out)
	}
	return rows
}

// changes reads on in a feed.
func (c *Client) changes(ctx context.Context, db string) {
	at := c.place(db)
	q := url.Values{"style": {"all_docs"}, "since": {"now"}}
	if at.Page != history.Now {
		c.Log.Note(func(h *history.History) { q.Set("since", h.Sequence(at)) })
	}
	if c.rng.IntN(2) == 0 {
		q.Set("limit", strconv.Itoa(1+c.rng.IntN(20)))
	}
	feed := []string{"normal", "normal", "longpoll", "continuous"}[c.rng.IntN(4)]
	r := &request{method: http.MethodGet}
	if feed != "normal" {
		pause := 500 + c.rng.IntN(4000)
		q.Set("feed", feed)
		q.Set("timeout", strconv.Itoa(pause))
		r.pause = time.Duration(pause) * time.Millisecond
	}
	r.path = path(db, "_changes", q)
	c.send(ctx, r)
	switch {
	case r.status == 0 || r.status >= 500:
		return
	case r.status != http.StatusOK:
		c.unexpected(r)
		return
	}
	answer := r.answer
	if r.broken != nil {
		if feed != "continuous" {
			return
		}
		answer = answer[:bytes.LastIndexByte(answer, '\n')+1] // whole lines only
	}
	page := history.Page{Span: r.Span, Node: r.target.Name, DB: db, Since: at}
	var err error
	page.Rows, page.Last, err = Rows(answer, feed == "continuous")
	if at := bytes.LastIndex(answer, []byte(`{"error":"`)); err != nil && at >= 0 {
		c.failedLate(r, answer[at:])
		return
	}
	if err != nil {
		c.wrong("%s through %s at %v: %v in %.300s", r.path, r.target.Name, r.Call, err, r.answer)
		return
	}
	if len(page.Rows) == 0 && page.Last == "" {
		return
	}
	c.Log.Note(func(h *history.History) {
		c.page[db] = history.Since{Page: len(h.Pages), Rows: len(page.Rows)}
		h.Pages = append(h.Pages, page)
	})
}

// failedLate notes an answer that had begun as a success and ends with an
// error.
func (c *Client) failedLate(r *request, text []byte) {
	t := history.Trouble{Span: r.Span, Node: r.target.Name, Request: r.method + " " + r.path, Status: http.StatusServiceUnavailable, Text: string(text)}
	if bytes.Contains(text, []byte("internal")) {
		t.Status = http.StatusInternalServerError
	}
	c.Log.Note(func(h *history.History) { h.Troubles = append(h.Troubles, t) })
}

// localPath is the local document that only this client writes.
func (c *Client) localPath(db string) string { return fmt.Sprintf("/%s/_local/c%d", db, c.id) }

// writeLocal counts up in a local document.
func (c *Client) writeLocal(ctx context.Context, _ string) {
	c.local++
	in := body{Number: c.local}
	if c.local > 1 {
		in.Rev = fmt.Sprint("0-", c.local-1)
	}
	r := c.call(ctx, http.MethodPut, c.localPath(c.Databases[0]), in, nil)
	c.register(history.Register{Span: r.Span, Path: c.localPath(c.Databases[0]), Write: true, Value: c.local, Outcome: history.OfStatus(r.status)})
}

// readLocal reads the local document of any client.
func (c *Client) readLocal(ctx context.Context, _ string) {
	other := &Client{id: c.rng.IntN(4)}
	var got body
	r := c.call(ctx, http.MethodGet, other.localPath(c.Databases[0]), nil, &got)
	reg := history.Register{Span: r.Span, Path: other.localPath(c.Databases[0]), Value: got.Number, Outcome: history.OfStatus(r.status)}
	if r.status == http.StatusNotFound {
		reg.Outcome = history.Acked
	}
	c.register(reg)
}

func (c *Client) register(r history.Register) {
	c.Log.Note(func(h *history.History) { h.Registers = append(h.Registers, r) })
}

// security is a security object that carries a number.
type security struct {
	Admins  members `json:"admins"`
	Members members `json:"members"`
}

type members struct {
	Names []string `json:"names"`
	Roles []string `json:"roles"`
}

// metadata does something with a database that comes and goes.
func (c *Client) metadata(ctx context.Context, _ string) {
	db := c.Temporary[c.rng.IntN(len(c.Temporary))]
	switch c.rng.IntN(10) {
	case 0, 1:
		c.operate(ctx, db, history.Create)
	case 2:
		c.operate(ctx, db, history.Delete)
	case 3, 4:
		c.operate(ctx, db, history.Look)
	case 5:
		c.operate(ctx, db, history.SetSecurity)
	case 6:
		c.operate(ctx, db, history.GetSecurity)
	case 7:
		c.renew(ctx, fmt.Sprint(c.Once, c.Log.Number()))
	default:
		c.writeTemporary(ctx, db)
	}
}

// renew makes a database, and makes it again as those do who want an empty one:
// at once, and each step through any node. Nobody else uses it, so that the
// last documents have to be there in the end.
func (c *Client) renew(ctx context.Context, db string) {
	c.operate(ctx, db, history.Create)
	c.writeTemporary(ctx, db)
	c.operate(ctx, db, history.Delete)
	c.operate(ctx, db, history.Create)
	c.writeTemporary(ctx, db)
	c.writeTemporary(ctx, db)
}

// operate carries out one operation on the metadata of a database.
func (c *Client) operate(ctx context.Context, db string, kind history.MetaKind) {
	m := history.Meta{DB: db, Kind: kind}
	var r *request
	switch kind {
	case history.Create:
		r = c.call(ctx, http.MethodPut, fmt.Sprintf("/%s?q=%d", db, 1+c.rng.IntN(2)), nil, nil)
	case history.Delete:
		r = c.call(ctx, http.MethodDelete, "/"+db, nil, nil)
	case history.Look:
		r = c.call(ctx, http.MethodGet, "/"+db, nil, nil)
	case history.SetSecurity:
		m.Value = c.Log.Number()
		who := members{Names: []string{fmt.Sprint(m.Value)}, Roles: []string{}}
		r = c.call(ctx, http.MethodPut, "/"+db+"/_security", security{who, who}, nil)
	case history.GetSecurity:
		var got security
		r = c.call(ctx, http.MethodGet, "/"+db+"/_security", nil, &got)
		if len(got.Admins.Names) == 1 {
			m.Value, _ = strconv.Atoi(got.Admins.Names[0]) // only this package sets any
		}
	}
	m.Span, m.Node, m.Status = r.Span, r.target.Name, r.status
	if m.Status == http.StatusAccepted { // metadata are never only accepted
		c.unexpected(r)
	}
	c.Log.Note(func(h *history.History) { h.Metas = append(h.Metas, m) })
}

// writeTemporary writes a document that must not outlive its database.
func (c *Client) writeTemporary(ctx context.Context, db string) {
	b := body{Number: c.Log.Number()}
	id := fmt.Sprint("t", b.Number)
	var res result
	r := c.call(ctx, http.MethodPut, path(db, id, nil), b, &res)
	e := history.Edit{Span: r.Span, Node: r.target.Name, DB: db, ID: id, Number: b.Number, Rev: res.Rev, Quorum: quorum, Outcome: history.OfStatus(r.status)}
	c.Log.Note(func(h *history.History) { h.Edits = append(h.Edits, e) })
}
