package changes

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"divan/cluster"
	"divan/cluster/docformat"
	"divan/cluster/sequence"
	"divan/httpapi/core"
	"divan/shard"
	"divan/shard/query"
	"divan/storage/doc"
	"divan/storage/fault"
)

// feedKind is how changes are delivered.
type feedKind uint8

const (
	feedNormal feedKind = iota
	feedLongpoll
	feedContinuous
	feedEventSource
)

// waits reports whether the feed stays open when it has no rows.
func (k feedKind) waits() bool { return k != feedNormal }

// changesParams are the parameters of _changes (api.md section 13). Names are
// taken in any case; of repeated ones the last counts.
type changesParams struct {
	feed        feedKind
	query       cluster.ChangesQuery
	timeout     time.Duration // how long a feed waits that sends no heartbeats
	heartbeat   time.Duration // 0: none
	seqInterval int           // the first row and each n-th after it have their sequence
	filter      string
	docIDs      string // of the query string
	view        string
	style       docformat.Style
}

// parseChanges reads the query string and Last-Event-ID, which overrides since
// in every feed (api.md section 20, row 17).
func parseChanges(c *core.Call) (*changesParams, error) {
	longest := c.Config.Chttpd.ChangesTimeout
	if longest <= 0 {
		longest = math.MaxInt64
	}
	p := &changesParams{timeout: longest, seqInterval: 1}
	p.query.Limit = cluster.NoLimit
	since := "0"
	for _, q := range c.Query {
		name := strings.ToLower(q.Name)
		switch name {
		case "since", "last-event-id":
			since = q.Value
			continue
		case "timeout", "heartbeat":
			if err := p.applyWait(name, q.Value, longest); err != nil {
				return nil, err
			}
			continue
		}
		if err := p.apply(name, q.Value); err != nil {
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

func (p *changesParams) apply(name, value string) (err error) {
	switch name {
	case "feed":
		p.feed, err = parseFeed(value)
	case "limit":
		if p.query.Limit, err = parseFeedCount("limit", value); p.query.Limit > core.MostRows {
			err = fault.Newf(fault.BadRequest, "The limit value must not exceed %d", int64(core.MostRows))
		}
	case "seq_interval":
		p.seqInterval, err = strconv.Atoi(value)
		if err != nil || p.seqInterval < 1 {
			return fault.New(fault.BadRequest, "invalid_seq_interval")
		}
	case "descending":
		p.query.Descending = value == "true"
	case "style":
		p.query.AllLeaves = value == "all_docs"
	case "include_docs":
		p.query.IncludeDocs = value == "true"
	case "conflicts":
		p.query.Conflicts = value == "true"
	case "attachments":
		p.style.Attachments = value == "true"
	case "att_encoding_info":
		p.style.EncodingInfo = value == "true"
	case "filter":
		p.filter = value
	case "doc_ids":
		p.docIDs = value
	case "view":
		p.view = value
	}
	return err
}

func parseFeed(value string) (feedKind, error) {
	switch value {
	case "", "normal":
		return feedNormal, nil
	case "longpoll":
		return feedLongpoll, nil
	case "continuous", "live":
		return feedContinuous, nil
	case "eventsource":
		return feedEventSource, nil
	}
	return 0, fault.New(fault.BadRequest,
		"Supported `feed` types: normal, continuous, live, longpoll, eventsource")
}

// parseFeedCount reads limit or timeout.
func parseFeedCount(name, value string) (int, error) {
	n, err := strconv.Atoi(value)
	switch {
	case err != nil:
		return 0, fault.Newf(fault.BadRequest, "The %s parameter should be a non-negative integer", name)
	case n < 0:
		return 0, fault.Newf(fault.BadRequest, "The %s value should be a non-negative integer", name)
	}
	return n, nil
}

// applyWait reads timeout or heartbeat, in milliseconds and at most longest.
func (p *changesParams) applyWait(name, value string, longest time.Duration) error {
	if name == "timeout" {
		n, err := parseFeedCount(name, value)
		p.timeout = milliseconds(n, longest)
		return err
	}
	if value == "true" {
		p.heartbeat = min(time.Minute, longest)
		return nil
	}
	n, err := strconv.Atoi(value)
	switch {
	case err != nil:
		return fault.New(fault.BadRequest,
			"Invalid heartbeat value. Expecting a positive integer value (in milliseconds).")
	case n < 1:
		return fault.New(fault.BadRequest,
			"The heartbeat value should be a positive integer (in milliseconds).")
	}
	p.heartbeat = milliseconds(n, longest)
	return nil
}

func milliseconds(n int, longest time.Duration) time.Duration {
	if int64(n) > int64(longest/time.Millisecond) {
		return longest
	}
	return time.Duration(n) * time.Millisecond
}

// Filter returns the filter of a call, for a feed that is read inside of this node.
func Filter(c *core.Call) (shard.Filter, error) {
	p, err := parseChanges(c)
	if err != nil {
		return shard.Filter{}, err
	}
	f, _, err := changesFilter(c, p, nil)
	return f, err
}

// changesFilter reads the filter and what it needs from the query string or
// the body. The second result are the fields of documents that _selector
// leaves, nil for all.
func changesFilter(c *core.Call, p *changesParams, body []byte) (shard.Filter, *query.Fields, error) {
	switch {
	case p.filter == "":
		return shard.Filter{}, nil, nil
	case p.filter == "_doc_ids":
		f, err := docIDsFilter(c, p, body)
		return f, nil, err
	case p.filter == "_design":
		return shard.Filter{Kind: shard.FilterDesign}, nil, nil
	case p.filter == "_selector":
		return selectorFilter(c, body)
	case p.filter == "_view":
		f, err := viewFilter(c, p.view)
		return f, nil, err
	case p.filter[0] == '_':
		return shard.Filter{}, nil, fault.New(fault.BadRequest, "unknown builtin filter name")
	}
	f, err := functionFilter(c, p.filter)
	return f, nil, err
}

// docIDsFilter reads doc_ids: of a POST from the body, else from the query.
func docIDsFilter(c *core.Call, p *changesParams, body []byte) (shard.Filter, error) {
	list := doc.Lookup(body, "doc_ids")
	if c.Method != http.MethodPost && p.docIDs != "" {
		var err error
		if list, err = doc.Canonical(nil, []byte(p.docIDs)); err != nil {
			return shard.Filter{}, err
		}
	}
	bad := fault.New(fault.BadRequest, "`doc_ids` filter parameter is not a list of doc ids.")
	if !doc.IsArray(list) {
		return shard.Filter{}, bad
	}
	f := shard.Filter{Kind: shard.FilterDocIDs}
	err := c.Memory.EachElement(list, core.KeySpace, func(value []byte) error {
		id, ok := doc.Unquote(value)
		if !ok {
			return bad
		}
		f.IDs = append(f.IDs, id)
		return nil
	})
	return f, err
}
