package spec

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"divan/replicator/endpoint"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// Defaults holds the values of what a request or a document may leave out.
type Defaults struct {
	Options Options
	User    shard.User // who asks
}

// Parse reads the body of POST /_replicate.
func Parse(body []byte, d Defaults) (*Spec, error) {
	p := parser{spec: &Spec{Options: d.Options, User: d.User}, request: true}
	return p.parse(body)
}

// ParseDocument reads a document of the replicator database db. Its sides are
// URLs: there is no account that a bare name could be opened on. What is wrong
// with it is fault.Forbidden, as a validation function would say.
func ParseDocument(body []byte, db, docID string, d Defaults) (*Spec, error) {
	p := parser{spec: &Spec{Options: d.Options, User: d.User, Database: db, DocID: docID}}
	s, err := p.parse(body)
	if err != nil {
		return nil, fault.New(fault.Forbidden, fault.Reason(err))
	}
	return s, nil
}

// ParseCancel tells whether the body of POST /_replicate asks to end a
// replication, and its id where that is all it says; otherwise the body
// describes the replication.
func ParseCancel(body []byte) (cancel bool, id string, err error) {
	err = doc.EachMember(body, func(name string, value []byte) error {
		var err error
		switch name {
		case "cancel":
			cancel, err = boolean(name, value)
		case "replication_id", "_local_id", "id":
			id, err = text(name, value)
		}
		return err
	})
	return cancel, id, err
}

// parser reads the members of one object into spec.
type parser struct {
	spec           *Spec
	request        bool
	source, target bool // given
	proxy          [3]string
	selects        int // how many of doc_ids, filter and selector are given
	query          [][2]string
}

// places in parser.proxy.
const (
	proxyBoth = iota
	proxySource
	proxyTarget
)

func (p *parser) parse(body []byte) (*Spec, error) {
	if err := doc.EachMember(body, p.member); err != nil {
		return nil, err
	}
	switch {
	case !p.request && (!p.source || !p.target):
		return nil, bad("Missing replicator database")
	case !p.source:
		return nil, bad("parameter `source` is missing")
	case !p.target:
		return nil, bad("parameter `target` is missing")
	case p.selects > 1:
		return nil, bad("`doc_ids`,`filter`,`selector` are mutually exclusive")
	}
	if f := &p.spec.Filter; f.Function != "" {
		if f.Query = p.query; f.Function[0] != '_' && !strings.Contains(f.Function, "/") {
			return nil, bad("`filter` must be of the form `designname/filtername`")
		}
	}
	if err := p.proxies(); err != nil {
		return nil, err
	}
	o := &p.spec.Options
	o.Workers, o.BatchSize, o.Connections = min(o.Workers, mostWorkers), min(o.BatchSize, mostBatch), min(o.Connections, mostConnections)
	return p.spec, nil
}

// proxies gives the addresses their proxies.
func (p *parser) proxies() error {
	if both := p.proxy[proxyBoth]; both != "" {
		if p.proxy[proxySource] != "" {
			return bad("`proxy` is mutually exclusive with `source_proxy`")
		}
		if p.proxy[proxyTarget] != "" {
			return bad("`proxy` is mutually exclusive with `target_proxy`")
		}
		p.proxy[proxySource], p.proxy[proxyTarget] = both, both
	}
	p.spec.Source.Proxy, p.spec.Target.Proxy = p.proxy[proxySource], p.proxy[proxyTarget]
	return nil
}

// member takes one member of the object. null is as good as nothing.
func (p *parser) member(name string, value []byte) error {
	if string(value) == "null" {
		return nil
	}
	known, err := p.sides(name, value)
	if !known {
		known, err = p.selection(name, value)
	}
	if !known {
		known, err = p.flag(name, value)
	}
	if !known {
		err = p.option(name, value)
	}
	return err
}

// sides takes what says where to copy from and to.
func (p *parser) sides(name string, value []byte) (known bool, err error) {
	s := p.spec
	switch name {
	case "source":
		p.source = true
		s.Source, err = p.address(value)
	case "target":
		p.target = true
		s.Target, err = p.address(value)
	case "proxy":
		p.proxy[proxyBoth], err = proxy(name, value)
	case "source_proxy":
		p.proxy[proxySource], err = proxy(name, value)
	case "target_proxy":
		p.proxy[proxyTarget], err = proxy(name, value)
	case "create_target_params":
		s.CreateParams.Query, err = pairs(name, value, "a JSON object")
	default:
		return false, nil
	}
	return true, err
}

// selection takes what says which documents are copied.
func (p *parser) selection(name string, value []byte) (known bool, err error) {
	f := &p.spec.Filter
	switch name {
	case "doc_ids":
		f.HasIDs = true
		f.DocIDs, err = docIDs(value)
	case "selector":
		if !doc.IsObject(value) {
			return true, mustBe(name, "a JSON object")
		}
		f.Selector, err = doc.Canonical(nil, value)
	case "filter":
		f.Function, err = text(name, value)
	case "query_params":
		p.query, err = pairs(name, value, "an object")
		return true, err
	case "since_seq":
		p.spec.Since = since(value)
		return true, nil
	default:
		return false, nil
	}
	p.selects++
	return true, err
}

// flag takes what is true or false.
func (p *parser) flag(name string, value []byte) (known bool, err error) {
	s := p.spec
	var to *bool
	switch name {
	case "continuous":
		to = &s.Continuous
	case "create_target":
		to = &s.CreateTarget
	case "winning_revs_only":
		to = &s.WinnerOnly
	case "use_checkpoints":
		to = &s.UseCheckpoints
	case "use_bulk_get":
		to = &s.UseBulkGet
	default:
		return false, nil
	}
	*to, err = boolean(name, value)
	return true, err
}

// What a request may ask for at most: each of them costs memory of the node.
const (
	mostWorkers     = 64
	mostBatch       = 8192
	mostConnections = 1000
)

// option takes a setting of [replicator], or the account that an
// administrator replicates on; other members mean nothing here.
func (p *parser) option(name string, value []byte) error {
	s := p.spec
	var n int64
	var err error
	switch name {
	case "checkpoint_interval":
		n, err = number(name, value)
		s.CheckpointInterval = time.Duration(n) * time.Millisecond
	case "connection_timeout":
		n, err = number(name, value)
		s.ConnectionTimeout = time.Duration(n) * time.Millisecond
	case "worker_processes":
		n, err = number(name, value)
		s.Workers = int(n)
	case "worker_batch_size":
		n, err = number(name, value)
		s.BatchSize = int(n)
	case "http_connections":
		n, err = number(name, value)
		s.Connections = int(n)
	case "retries_per_request":
		n, err = whole(name, value, 0)
		s.Retries = int(n)
	case "owner":
		s.Owner, _ = doc.Unquote(value) // a value that is no name counts as none
	case "user_ctx":
		if p.request && s.User.Admin() {
			s.User, err = user(value)
		}
	}
	return err
}

func user(value []byte) (shard.User, error) {
	if !doc.IsObject(value) {
		return shard.User{}, mustBe("user_ctx", "a JSON object")
	}
	u := shard.User{Anonymous: true}
	err := doc.EachMember(value, func(name string, v []byte) error {
		switch {
		case name == "name" && string(v) != "null":
			var err error
			u.Name, err = text("name", v)
			u.Anonymous = false
			return err
		case name == "roles":
			return doc.EachElement(v, func(role []byte) error {
				r, err := text("roles", role)
				u.Roles = append(u.Roles, r)
				return err
			})
		}
		return nil
	})
	return u, err
}

// docIDs reads a list of ids, each of which may be percent-encoded.
func docIDs(value []byte) ([]string, error) {
	if !doc.IsArray(value) {
		return nil, mustBe("doc_ids", "an array")
	}
	var ids []string
	err := doc.EachElement(value, func(v []byte) error {
		id, err := text("doc_ids", v)
		if err != nil {
			return mustBe("doc_ids", "an array of strings")
		}
		if plain, err := url.PathUnescape(id); err == nil {
			id = plain
		}
		ids = append(ids, id)
		return nil
	})
	slices.Sort(ids)
	return slices.Compact(ids), err
}

// since reads a sequence of any kind; 0 is the beginning.
func since(value []byte) endpoint.Seq {
	if s, ok := doc.Unquote(value); ok && s == "0" {
		return "0"
	}
	return endpoint.Seq(value)
}

// pairs reads an object whose members go into a query string: a value that is
// no string goes as its JSON text.
func pairs(name string, value []byte, kind string) ([][2]string, error) {
	if !doc.IsObject(value) {
		return nil, mustBe(name, kind)
	}
	var out [][2]string
	err := doc.EachMember(value, func(member string, v []byte) error {
		text, ok := doc.Unquote(v)
		if !ok {
			text = string(v)
		}
		out = append(out, [2]string{member, text})
		return nil
	})
	return out, err
}

func text(name string, value []byte) (string, error) {
	s, ok := doc.Unquote(value)
	if !ok {
		return "", mustBe(name, "a string")
	}
	return s, nil
}

func boolean(name string, value []byte) (bool, error) {
	switch string(value) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, mustBe(name, "a boolean")
}

// number reads an integer above 0.
func number(name string, value []byte) (int64, error) { return whole(name, value, 1) }

// whole reads an integer, or the text of one.
func whole(name string, value []byte, least int64) (int64, error) {
	digits, ok := doc.Unquote(value)
	if !ok {
		digits = string(value)
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || n < least {
		return 0, fault.Newf(fault.BadRequest, "parameter `%s` must be an integer of at least %d", name, least)
	}
	return n, nil
}

func bad(reason string) error { return fault.New(fault.BadRequest, reason) }

func mustBe(name, kind string) error {
	return fault.Newf(fault.BadRequest, "parameter `%s` must be %s", name, kind)
}
