package migrate

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"divan/cmd/divan/httpclient"
)

// path is the URL of a database below the root, escaped. A plus sign is
// escaped too: old servers take it for a space.
func path(db string) string { return "/" + url.QueryEscape(db) }

// side is a server that is asked about itself.
type side struct {
	*httpclient.Client
	through string // URL of the proxy for documents; the client finds it itself
	about   about
	modern  bool // what does not compile here, does not there: its JavaScript is as new as ours
}

func newSide(s httpclient.Server, insecure bool, userAgent string) *side {
	return &side{Client: httpclient.New(s, httpclient.Options{Insecure: insecure, UserAgent: userAgent})}
}

// about is a server's description of itself.
type about struct {
	Version string `json:"version"`
	UUID    string `json:"uuid"`
	Vendor  struct{ Name, Version string }
}

// String names software and version.
func (a about) String() string {
	if a.Vendor.Name == "" || strings.Contains(a.Vendor.Name, "Apache") {
		return "CouchDB " + a.Version
	}
	return strings.TrimSpace(a.Vendor.Name + " " + a.Vendor.Version)
}

// hello checks that the server answers, and that we are an administrator there.
func (s *side) hello(ctx context.Context) error {
	if err := s.Get(ctx, "/", &s.about); err != nil && httpclient.Status(err) != http.StatusUnauthorized {
		return err
	}
	var session struct {
		UserCtx struct {
			Name  string
			Roles []string
		} `json:"userCtx"`
	}
	err := s.Get(ctx, "/_session", &session)
	switch {
	case httpclient.Status(err) == http.StatusUnauthorized:
		return fmt.Errorf("%s does not take the name and the password", s.Host())
	case err != nil:
		return err
	case slices.Contains(session.UserCtx.Roles, "_admin"):
		s.Retry = true // it has answered: when it does not, it is worth another attempt
		s.modern = s.hasModernJavaScript(ctx)
		return nil
	case s.User == "":
		return fmt.Errorf("%s wants the name and the password of a server administrator", s.Host())
	}
	return fmt.Errorf("%s is no server administrator of %s", s.User, s.Host())
}

// oldSpiderMonkeys are the major versions below which SpiderMonkey has syntax that
// was never in a standard.
const oldSpiderMonkeys = 60

// hasModernJavaScript reports whether the server is known to compile what compiles
// here, and nothing else.
func (s *side) hasModernJavaScript(ctx context.Context) bool {
	if strings.Contains(s.about.Vendor.Name, "Divan") {
		return true
	}
	var versions struct {
		Engine struct{ Name, Version string } `json:"javascript_engine"`
	}
	if err := s.Get(ctx, "/_node/_local/_versions", &versions); err != nil {
		return false // CouchDB before 2.3
	}
	major, _, _ := strings.Cut(versions.Engine.Version, ".")
	n, err := strconv.Atoi(major)
	return versions.Engine.Name == "quickjs" || versions.Engine.Name == "spidermonkey" && err == nil && n >= oldSpiderMonkeys
}

// pageSize is how many names are asked for at a time.
const pageSize = 1000

// databases lists the names of all databases. CouchDB 1.x knows no pages and
// answers with everything at once.
func (s *side) databases(ctx context.Context) ([]string, error) {
	var names []string
	query := fmt.Sprintf("?limit=%d", pageSize)
	for {
		var page []string
		if err := s.Get(ctx, "/_all_dbs"+query, &page); err != nil {
			return nil, err
		}
		got := len(page)
		if len(names) > 0 {
			last := names[len(names)-1]
			if got == 0 || page[0] != last {
				return names, nil // no pages here: the first one was everything
			}
			page = page[1:] // the last one of the page before
		}
		names = append(names, page...)
		if got != pageSize || len(page) == 0 {
			return names, nil
		}
		key, err := json.Marshal(names[len(names)-1])
		if err != nil {
			return nil, err
		}
		query = fmt.Sprintf("?limit=%d&startkey=%s", pageSize, url.QueryEscape(string(key)))
	}
}

// info is a server's description of a database.
type info struct {
	Documents uint64 `json:"doc_count"`
	Deleted   uint64 `json:"doc_del_count"`
	Props     struct{ Partitioned bool }
	Cluster   struct{ Q int } // not of CouchDB 1.x
	UpdateSeq json.RawMessage `json:"update_seq"`
}

// all is how many documents have a place in the changes.
func (i *info) all() uint64 { return i.Documents + i.Deleted }

// info describes a database; ok is false when there is none.
func (s *side) info(ctx context.Context, db string) (i info, ok bool, err error) {
	err = s.Get(ctx, path(db), &i)
	if httpclient.Status(err) == http.StatusNotFound {
		return i, false, nil
	}
	return i, err == nil, err
}

// hasBuiltIn reports whether a database has the design document that the server puts
// into it by itself.
func (s *side) hasBuiltIn(ctx context.Context, db string) (bool, error) {
	id := builtIn(db)
	if id == "" {
		return false, nil
	}
	_, err := s.Call(ctx, http.MethodGet, path(db)+"/"+id, nil)
	if httpclient.Status(err) == http.StatusNotFound {
		return false, nil
	}
	return err == nil, err
}
