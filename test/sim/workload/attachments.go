package workload

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"divan/test/sim/dump"
	"divan/test/sim/history"
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
