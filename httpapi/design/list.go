package design

import (
	"cmp"
	"maps"
	"net/http"

	"divan/httpapi/core"
	"divan/httpapi/listing"
	"divan/httpapi/view"
	"divan/storage/doc"
	"divan/storage/fault"
)

// list serves _design/{ddoc}/_list/{function}/{view} and …/{function}/{other
// ddoc}/{view}: the rows of a view go through a function.
func list(c *core.Call) error {
	c.ForAccount()
	d, err := c.API.Deps.Designs.Get(c.Request.Context(), c.DB, c.DocID)
	if err != nil {
		return err
	}
	if len(c.Rest) < 3 || len(c.Rest) > 4 {
		return invalidPath("list_error")
	}
	if c.Method == http.MethodPost {
		if err := c.Body.RequireJSON(); err != nil {
			return err
		}
	}
	name := c.Rest[1]
	if err := HasFunction(d, "lists", name); err != nil {
		return err
	}
	rows, err := openRows(c)
	if err != nil {
		return err
	}
	defer rows.Close()
	req, err := Request(c, nil)
	if err != nil {
		return err
	}
	s := &listStream{rowSource: rows, c: c}
	if err := d.Functions().List(c.Request.Context(), name, rows.Head(), req, s); err != nil {
		if s.sent { // the answer has begun, as far as it is told in its body what went wrong
			_ = s.out.Begin() // of a client that may be gone
		}
		return err
	}
	if s.out == nil {
		return fault.New(fault.BadFunction, "The list function made no answer.")
	}
	return s.out.Close()
}

// rowSource is rows of a view, as JSON.
type rowSource interface {
	// Head returns what is known before the rows.
	Head() []byte
	// Row returns the next row, nil behind the last one.
	Row() ([]byte, error)
	Close()
}

// openRows opens the view that the path names.
func openRows(c *core.Call) (rowSource, error) {
	ddoc, name := c.DocID, c.Rest[len(c.Rest)-1]
	if len(c.Rest) == 4 {
		ddoc = doc.DesignPrefix + c.Rest[2]
	} else if name == "_all_docs" {
		return listing.Open(c)
	}
	return view.Open(c, ddoc, name)
}

// listStream is the way of rows into a list function, and of its text to the client,
// chunk by chunk.
type listStream struct {
	rowSource
	c    *core.Call
	out  *core.Stream
	own  http.Header // what the answer has without the function
	sent bool        // the function has given out text
}

// Start implements script.ListStream. What a function says last counts, until it has
// given out text.
func (s *listStream) Start(object []byte) error {
	a, err := parseAnswer(object)
	if err != nil || s.sent {
		return err
	}
	h := s.c.Response.Header()
	if s.own == nil {
		s.own = h.Clone()
	}
	clear(h)
	maps.Copy(h, s.own)
	a.setHeaders(s.c)
	switch {
	case s.out == nil:
		s.out = s.c.Stream(h.Get("Content-Type"))
	case h.Get("Content-Type") == "":
		h["Content-Type"] = []string{a.kind}
	}
	s.out.SetStatus(cmp.Or(a.code, http.StatusOK))
	return nil
}

// Send implements script.ListStream.
func (s *listStream) Send(text []byte) error {
	s.sent = s.sent || len(text) > 0
	_, err := s.out.Write(text)
	return err
}

// Abort implements script.ListStream.
func (s *listStream) Abort() { s.c.CutOff() }
