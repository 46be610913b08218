package changes

import (
	"strconv"
	"strings"
	"time"

	"divan/cluster"
	"divan/cluster/events"
	"divan/cluster/sequence"
	"divan/httpapi/core"
	"divan/storage/doc"
	"divan/storage/fault"
)

// This file serves GET /_db_updates (api.md section 4.3): the changes of the
// database _global_changes, whose documents each stand for an event.

// longestUpdates is how long a feed of events waits without heartbeats, at
// most; heartbeats come as often unless told otherwise.
const longestUpdates = time.Minute

// getDBUpdates answers GET /_db_updates.
func getDBUpdates(c *core.Call) error {
	p, err := parseDBUpdates(c)
	if err != nil {
		return err
	}
	if c.DB, err = c.API.Deps.Coordinator.DB(c.Request.Context(), events.GlobalChanges); err != nil {
		return err
	}
	if p.feed == feedNormal {
		matched, err := changesETag(c, nil)
		if err != nil || matched {
			return err
		}
	}
	w := &changesWriter{c: c, ctx: c.Request.Context(), p: p, events: true}
	defer w.join()()
	query := p.query
	query.Limit = cluster.NoLimit // which counts events, not documents
	if err := w.open(query); err != nil {
		return err
	}
	defer w.feed.Close()
	w.out = c.Stream(p.feed.contentType())
	if p.feed == feedEventSource {
		c.Response.Header()["Cache-Control"] = core.NoCache
	}
	return w.run(c.Config.Fabric.ChangesDuration)
}

// parseDBUpdates reads the query string; of repeated names the last counts.
func parseDBUpdates(c *core.Call) (*changesParams, error) {
	longest := longestUpdates
	if most := c.Config.Chttpd.ChangesTimeout; most > 0 {
		longest = min(longest, most)
	}
	p := &changesParams{timeout: longest, seqInterval: 1}
	p.query.Limit = cluster.NoLimit
	since := "0"
	for _, q := range c.Query {
		var err error
		switch name := strings.ToLower(q.Name); name {
		case "since", "last-event-id":
			since = q.Value
		case "feed":
			p.feed, err = parseFeed(q.Value)
			if err != nil || q.Value == "live" {
				err = fault.New(fault.BadRequest, "Supported `feed` types: normal, continuous, longpoll, eventsource")
			}
		case "limit":
			p.query.Limit, err = parseInteger(q.Value, 0)
		case "descending":
			p.query.Descending = q.Value == "true"
		case "timeout":
			var n int
			n, err = parseInteger(q.Value, 0)
			p.timeout = updatesTimeout(n, longest)
		case "heartbeat":
			p.heartbeat, err = updatesHeartbeat(q.Value, longest)
		}
		if err != nil {
			return nil, err
		}
	}
	if header := c.Request.Header.Get("Last-Event-ID"); header != "" {
		since = header
	}
	var err error
	p.query.Since, err = sequence.ParseSince(since)
	return p, err
}

// mostSeconds is the longest timeout in seconds; above it clients of CouchDB mean
// milliseconds (api.md section 20, row 5).
const mostSeconds = 60

func updatesTimeout(n int, longest time.Duration) time.Duration {
	if n > mostSeconds {
		return milliseconds(n, longest)
	}
	return min(time.Duration(n)*time.Second, longest)
}

// updatesHeartbeat reads heartbeat: true, false, or milliseconds.
func updatesHeartbeat(value string, longest time.Duration) (time.Duration, error) {
	switch value {
	case "true":
		return longest, nil
	case "false":
		return 0, nil
	}
	n, err := parseInteger(value, 1)
	return milliseconds(n, longest), err
}

// parseInteger reads a number that is at least least.
func parseInteger(value string, least int) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < least {
		return 0, fault.New(fault.BadRequest, "invalid_integer")
	}
	return n, nil
}

// eventOf returns what a document of _global_changes stands for; ok is false
// for a document that stands for nothing, a design document for example.
func eventOf(id string) (kind, db string, ok bool) {
	kind, db, ok = strings.Cut(id, ":")
	switch kind + ":" {
	case events.CreatedPrefix, events.UpdatedPrefix, events.DeletedPrefix:
		return kind, db, ok
	}
	return "", "", false
}

// event writes the current row as an event, when it is one. As eventsource it is a row like
// that of any feed, as in CouchDB.
func (w *changesWriter) event() error {
	if w.p.feed == feedEventSource {
		return w.row()
	}
	row := w.feed.Row()
	kind, db, ok := eventOf(row.ID)
	if !ok || row.Deleted {
		return nil
	}
	w.rows++
	out := w.out
	if w.p.feed != feedContinuous && w.rows > 1 {
		out.Buf = append(out.Buf, ",\r\n"...)
	}
	out.Buf = doc.AppendString(append(out.Buf, `{"db_name":`...), db)
	out.Buf = append(append(append(out.Buf, `,"type":"`...), kind...), `","seq":`...)
	out.Buf = append(w.appendSeq(out.Buf, true), '}')
	if w.p.feed == feedContinuous {
		out.Buf = append(out.Buf, '\n')
	}
	if len(out.Buf) >= core.StreamBuffer {
		w.sent = time.Now()
		return out.Spill()
	}
	return nil
}
