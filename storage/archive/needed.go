package archive

import (
	"fmt"
	"io"
)

// Needed collects what backups need, so that nothing else is kept. It wants to see all that they
// name: what could not be read removes nothing.
type Needed struct {
	names map[Name]struct{}
	pages map[Name]bool // whether it was added
	lists map[Sum]bool  // of contents, likewise
}

// NewNeeded returns a Needed that needs nothing.
func NewNeeded() *Needed {
	return &Needed{names: map[Name]struct{}{}, pages: map[Name]bool{}, lists: map[Sum]bool{}}
}

// AddHeader adds a backup, and returns the pages that are to be added then.
func (n *Needed) AddHeader(h *Header) []Object {
	if h.Metadata != nil {
		n.names[h.Metadata.Pack.Name] = struct{}{}
	}
	var wanted []Object
	for i := range h.Pages {
		page := h.Pages[i].Object
		if _, known := n.pages[page.Name]; !known {
			n.pages[page.Name] = false
			n.names[page.Name] = struct{}{}
			wanted = append(wanted, page)
		}
	}
	return wanted
}

// AddPage adds a page, and returns the lists of contents that are to be added then.
func (n *Needed) AddPage(name Name, p *Page) []Ref {
	n.pages[name] = true
	var wanted []Ref
	p.refs(func(r *Ref) {
		n.names[r.Pack.Name] = struct{}{}
		if _, known := n.lists[r.Sum]; r.Kind == KindContents && !known {
			n.lists[r.Sum] = false
			wanted = append(wanted, *r)
		}
	})
	return wanted
}

// AddContents adds a list of contents, read from the plain bytes of its pack.
func (n *Needed) AddContents(list *Ref, pack io.ReaderAt) error {
	err := ReadContents(list.Reader(pack), func(c Content) error {
		n.names[Name{Class: ClassContent, ID: c.ID}] = struct{}{}
		return nil
	})
	if err == nil {
		n.lists[list.Sum] = true
	}
	return err
}

// Unneeded returns those of the names that no backup needs. It is an error when something was
// not added that may need one.
func (n *Needed) Unneeded(names []Name) ([]Name, error) {
	unread := 0
	for _, read := range n.pages {
		if !read {
			unread++
		}
	}
	for _, read := range n.lists {
		if !read {
			unread++
		}
	}
	if unread > 0 {
		return nil, fmt.Errorf("%d pages and lists of contents have not been read", unread)
	}
	var out []Name
	for _, name := range names {
		if _, ok := n.names[name]; !ok {
			out = append(out, name)
		}
	}
	return out, nil
}
