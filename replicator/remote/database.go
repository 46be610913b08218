package remote

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"divan/replicator/endpoint"
	"divan/replicator/spec"
	"divan/storage/doc"
	"divan/storage/memory"
)

// Options say which database it is, and how it is asked.
type Options struct {
	Network   *Network
	Address   spec.Address
	Options   spec.Options // Connections, ConnectionTimeout and Retries count here
	UserAgent string
	// Memory counts the answers of the server; nil: they are not counted.
	Memory *memory.Owner
	// MaxDocument is how large a document may be, in bytes; 0: any size.
	MaxDocument int64
}

// Database is a database of another server. It is safe for concurrent use.
type Database struct {
	client   *client
	readers  chan struct{} // has an entry for each document that is read by itself
	maxValue int           // bytes of a document with all that travels with it

	instance atomic.Value // string: instance_start_time as Info has seen it last

	// What the peer was found not to have.
	noBulkGet atomic.Bool
	otherZip  atomic.Bool  // it does not compress as servers do by default
	coding    atomic.Int32 // of attachments: codingUnknown, codingTaken or codingIgnored
}

var (
	_ endpoint.Source = (*Database)(nil)
	_ endpoint.Target = (*Database)(nil)
)

// New returns the database. The error says that its address is none; no request is sent yet.
func New(o Options) (*Database, error) {
	c, err := newClient(&o)
	if err != nil {
		return nil, err
	}
	d := &Database{client: c, readers: make(chan struct{}, readersOf(c.options.Connections)), maxValue: maxUnlimited}
	if n := o.MaxDocument; 0 < n && n < maxUnlimited-besideBody {
		d.maxValue = int(n) + besideBody
	}
	return d, nil
}

// Close implements endpoint.Database.
func (d *Database) Close() error {
	if d.client.session != nil {
		d.client.net.closeSession(d.client.session)
	}
	return nil
}

// What a document may have beside its body, in bytes: its history, its attachments with
// small contents. maxUnlimited is for one with all that, where the configuration names no
// limit.
const (
	besideBody   = 1 << 20
	maxUnlimited = 256 << 20
)

// Info implements endpoint.Database.
func (d *Database) Info(ctx context.Context) (endpoint.Info, error) {
	text, a, err := d.client.read(ctx, &request{method: http.MethodGet})
	if err != nil {
		return endpoint.Info{}, err
	}
	if text == nil {
		return endpoint.Info{}, d.client.unopened(a)
	}
	var info endpoint.Info
	err = doc.EachMember(text, func(name string, value []byte) error {
		switch name {
		case "db_name":
			info.Name, _ = doc.Unquote(value)
		case "instance_start_time":
			info.InstanceStart = textOf(value)
		case "update_seq":
			info.UpdateSeq, _ = seqOf(value) // it is only counted with
		case "doc_count", "doc_del_count":
			n, _ := unsigned(value)
			info.Documents += n
		}
		return nil
	})
	if err != nil { // some other server answers
		return endpoint.Info{}, endpoint.NoDatabase(d.client.url)
	}
	d.instance.Store(info.InstanceStart)
	return info, nil
}

// textOf returns a string's text, and other values as they stand.
func textOf(value []byte) string {
	if text, ok := doc.Unquote(value); ok {
		return text
	}
	return string(value)
}

// unsigned reads a number.
func unsigned(value []byte) (uint64, bool) {
	n := uint64(0)
	for _, c := range value {
		if c < '0' || c > '9' || n > 1<<58 {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, len(value) > 0
}

// Local implements endpoint.Database.
func (d *Database) Local(ctx context.Context, id string) (body []byte, rev string, err error) {
	text, a, err := d.client.read(ctx, &request{method: http.MethodGet, path: doc.LocalPrefix + escape(id), limit: d.maxValue})
	if err != nil {
		return nil, "", err
	}
	if text == nil {
		return nil, "", d.client.refusal(a)
	}
	e, err := doc.ParseEnvelope(text)
	if err != nil {
		return nil, "", fmt.Errorf("_local/%s of %s: %w", id, d.client.url, err)
	}
	return e.Body, e.RevText, nil
}

// PutLocal implements endpoint.Database.
func (d *Database) PutLocal(ctx context.Context, id, rev string, body []byte) (string, error) {
	text := append([]byte(nil), `{"_id":`...)
	text = doc.AppendString(text, doc.LocalPrefix+id)
	if rev != "" {
		text = append(text, `,"_rev":`...)
		text = doc.AppendString(text, rev)
	}
	if len(body) > len("{}") {
		text = append(text, ',')
		text = append(text, body[1:]...)
	} else {
		text = append(text, '}')
	}
	answer, a, err := d.client.read(ctx, &request{method: http.MethodPut, path: doc.LocalPrefix + escape(id), body: text})
	if err != nil {
		return "", err
	}
	if answer == nil {
		return "", d.client.refusal(a)
	}
	newRev, _ := doc.Unquote(doc.Lookup(answer, "rev"))
	return newRev, nil
}

// Commit implements endpoint.Database. A server that has no such request has
// nothing to wait for.
func (d *Database) Commit(ctx context.Context) (string, error) {
	text, a, err := d.client.read(ctx, &request{method: http.MethodPost, path: "_ensure_full_commit", body: []byte("{}")})
	if err != nil {
		return "", err
	}
	if text == nil && !unsupported(a.status) {
		return "", d.client.refusal(a)
	}
	if text == nil {
		_ = a.Body.Close() // it says no more than its status
	} else if instance := textOf(doc.Lookup(text, "instance_start_time")); instance == d.instance.Load() {
		return instance, nil
	}
	// Another one may mean that the database was made anew, or that the server
	// says one thing here and another there.
	info, err := d.Info(ctx)
	return info.InstanceStart, err
}

// unsupported reports whether a status may mean that the server does not have
// the request at all.
func unsupported(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusUnsupportedMediaType, http.StatusNotImplemented:
		return true
	}
	return false
}

// escape escapes an id as one segment of a path. Old servers read a plus sign
// as a space.
func escape(id string) string {
	return strings.ReplaceAll(url.PathEscape(id), "+", "%2B")
}

// docPath is the path of a document.
func docPath(id string) string {
	for _, prefix := range []string{doc.DesignPrefix, doc.LocalPrefix} {
		if rest, ok := strings.CutPrefix(id, prefix); ok {
			return prefix + escape(rest)
		}
	}
	return escape(id)
}

// Design implements endpoint.Source.
func (d *Database) Design(ctx context.Context, id string) ([]byte, error) {
	text, a, err := d.client.read(ctx, &request{method: http.MethodGet, path: docPath(id), limit: d.maxValue})
	if err != nil {
		return nil, err
	}
	if text == nil {
		return nil, d.client.refusal(a)
	}
	return text, nil
}

// Pending implements endpoint.Source. A server before CouchDB 2 tells only
// where its changes end.
func (d *Database) Pending(ctx context.Context, since endpoint.Seq) (int64, error) {
	text, a, err := d.client.read(ctx, &request{method: http.MethodGet, path: "_changes", query: "limit=0&since=" + sinceParam(since)})
	if err != nil {
		return -1, err
	}
	if text == nil {
		return -1, d.client.refusal(a)
	}
	if n, ok := unsigned(doc.Lookup(text, "pending")); ok {
		// A limit of 0 acts like one of 1, and the row is not pending any more.
		scanElements(doc.Lookup(text, "results"), func([]byte) bool { n++; return true })
		return int64(n), nil
	}
	from, ok := unsigned([]byte(since))
	if since == "" {
		from, ok = 0, true
	}
	if !ok {
		return -1, nil
	}
	info, err := d.Info(ctx)
	if to, ok := unsigned([]byte(info.UpdateSeq)); err == nil && ok && to >= from {
		return int64(to - from), nil
	}
	return -1, err
}

// sinceParam is a sequence as a parameter of a query string.
func sinceParam(since endpoint.Seq) string {
	if since == "" {
		return "0"
	}
	return url.QueryEscape(textOf([]byte(since)))
}
