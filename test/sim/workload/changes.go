package workload

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"divan/test/sim/history"
)

// feeds are reads of changes.
type feeds struct {
	*asker
	page map[string]history.Since // by database: where this client is in the feed
}

// place chooses where to go on in the feed of a database: mostly where this client is,
// sometimes at any place that a client has reached.
func (c *feeds) place(db string) history.Since {
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

// read reads on in a feed.
func (c *feeds) read(ctx context.Context, db string) {
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
func (c *feeds) failedLate(r *request, text []byte) {
	t := history.Failure{Span: r.Span, Node: r.target.Name, Request: r.method + " " + r.path, Status: http.StatusServiceUnavailable, Text: string(text)}
	if bytes.Contains(text, []byte("internal")) {
		t.Status = http.StatusInternalServerError
	}
	c.Log.Note(func(h *history.History) { h.Failures = append(h.Failures, t) })
}
