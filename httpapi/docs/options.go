package docs

import (
	"strings"

	"divan/cluster/docformat"
	"divan/httpapi/core"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// docOptions are the options of a document read or write that come in the
// query string (api.md 9.1, 9.3). A switch is on when one of its values is the
// literal "true"; everything else leaves it as it is.
type docOptions struct {
	rev    doc.Rev // of ?rev=
	hasRev bool
	open   openRevs
	since  attsSince
	r, w   int // quorum overrides, 0 when not given

	revs, revsInfo, conflicts, deletedConflicts bool
	localSeq, latest, deleted                   bool
	attachments, attEncoding                    bool
	batch, replicated                           bool // batch=ok, new_edits=false
}

// openRevs is ?open_revs=: every leaf, or a list of revisions, each once.
type openRevs struct {
	all  bool
	list []doc.Rev
}

// given reports whether the revisions named are to be answered as a list. An
// empty list asks for a plain read.
func (o openRevs) given() bool { return o.all || len(o.list) > 0 }

// attsSince is ?atts_since=: attachments that came in with one of these
// revisions or before are answered as stubs.
type attsSince struct {
	given bool
	revs  []doc.Rev
}

// parseDocOptions reads the query string of a document.
func parseDocOptions(query []core.Param) (docOptions, error) {
	var o docOptions
	for _, p := range query {
		if p.Value == "true" {
			o.switchOn(p.Name)
		}
		var err error
		switch p.Name {
		case "rev":
			o.rev, err = doc.ParseRev(p.Value)
			o.hasRev = true
		case "open_revs":
			o.open, err = parseOpenRevs(p.Value)
		case "atts_since":
			o.since.given = true
			o.since.revs, err = docformat.ParseRevs([]byte(p.Value))
		case "r":
			o.r, err = core.ParseQuorum(p)
		case "w":
			o.w, err = core.ParseQuorum(p)
		case "batch":
			o.batch = p.Value == "ok"
		case "new_edits":
			o.replicated = p.Value == "false"
		}
		if err != nil {
			return docOptions{}, err
		}
	}
	return o, nil
}

// switchOn sets the option of that name; an unknown one is passed over.
func (o *docOptions) switchOn(name string) {
	switch name {
	case "revs":
		o.revs = true
	case "revs_info":
		o.revsInfo = true
	case "conflicts":
		o.conflicts = true
	case "deleted_conflicts":
		o.deletedConflicts = true
	case "meta":
		o.revsInfo, o.conflicts, o.deletedConflicts = true, true, true
	case "local_seq":
		o.localSeq = true
	case "latest":
		o.latest = true
	case "deleted":
		o.deleted = true
	case "attachments":
		o.attachments = true
	case "att_encoding_info":
		o.attEncoding = true
	}
}

// style returns the options about attachments in the answer.
func (o *docOptions) style() docformat.Style {
	return docformat.Style{
		Revisions:    o.revs,
		Attachments:  o.attachments || o.since.given,
		EncodingInfo: o.attEncoding,
		Since:        o.since.revs,
	}
}

func parseOpenRevs(text string) (openRevs, error) {
	if text == "all" {
		return openRevs{all: true}, nil
	}
	list, err := docformat.ParseRevs([]byte(text))
	return openRevs{list: shard.DistinctRevs(list)}, err
}

// parseETagRev reads an If-Match header as a revision; the quotes of an
// entity tag are optional.
func parseETagRev(header string) (doc.Rev, error) {
	return doc.ParseRev(strings.Trim(header, `"`))
}

// requestRev returns the revision that a request names in ?rev= or If-Match,
// zero when it names none. Both may be there when they agree.
func requestRev(c *core.Call, o *docOptions) (doc.Rev, error) {
	header := c.Request.Header.Get("If-Match")
	if header == "" {
		return o.rev, nil
	}
	rev, err := parseETagRev(header)
	if err != nil {
		return doc.Rev{}, err
	}
	if o.hasRev && o.rev.Compare(rev) != 0 {
		return doc.Rev{}, fault.New(fault.BadRequest, "Document rev and etag have different values")
	}
	return rev, nil
}

// quoteRev writes a revision as an entity tag.
func quoteRev(r doc.Rev) string {
	b := make([]byte, 0, 48)
	b = append(b, '"')
	b = r.AppendText(b)
	return string(append(b, '"'))
}
