package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"divan/test/child"
)

// server is one that speaks CouchDB's API.
type server struct {
	name    string
	host    string // HOST:PORT
	login   bool   // it wants to know who asks
	client  *http.Client
	process *child.Process
	start   func(ctx context.Context) error // starts it, again after it was killed
}

func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
}

// url returns the address of a database, with the account.
func (s *server) url(db string) string {
	if s.login {
		return "http://" + user + ":" + password + "@" + s.host + "/" + db
	}
	return "http://" + s.host + "/" + db
}

// statusError is an answer that is no success.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string { return fmt.Sprintf("status %d: %.300s", e.status, e.text) }

// send sends a request and returns the answer's body, which the caller closes.
func (s *server) send(ctx context.Context, method, path, contentType string, body io.Reader) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://"+s.host+path, body)
	if err != nil {
		return nil, err
	}
	if s.login {
		r.SetBasicAuth(user, password)
	}
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("Accept", "application/json")
	answer, err := s.client.Do(r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode >= 300 {
		text, err := io.ReadAll(io.LimitReader(answer.Body, 1000))
		_ = answer.Body.Close() // the status says enough
		if err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%s: %s %s: %w", s.name, method, path, &statusError{answer.StatusCode, string(text)})
	}
	return answer.Body, nil
}

// call sends JSON and decodes the answer into out, unless that is nil.
func (s *server) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	answer, err := s.send(ctx, method, path, "application/json", body)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Close() }() // read to its end
	if out == nil {
		_, err = io.Copy(io.Discard, answer)
		return err
	}
	d := json.NewDecoder(answer)
	d.UseNumber()
	return d.Decode(out)
}

// create makes a database.
func (s *server) create(ctx context.Context, db string) error {
	return s.call(ctx, http.MethodPut, "/"+db, nil, nil)
}

// replicate has s replicate and returns how many documents were written, by the
// runs before too where the server tells that.
func (s *server) replicate(ctx context.Context, source, target string) (written int, err error) {
	var answer struct {
		OK          bool `json:"ok"`
		DocsWritten int  `json:"docs_written"` // of a PouchDB, which tells no history
		History     []struct {
			DocsWritten      int `json:"docs_written"`
			DocWriteFailures int `json:"doc_write_failures"`
		} `json:"history"`
	}
	if err := s.call(ctx, http.MethodPost, "/_replicate", map[string]any{"source": source, "target": target}, &answer); err != nil {
		return 0, err
	}
	if !answer.OK {
		return 0, fmt.Errorf("%s: odd answer of _replicate: %+v", s.name, answer)
	}
	if len(answer.History) == 0 {
		return answer.DocsWritten, nil
	}
	if n := answer.History[0].DocWriteFailures; n > 0 {
		return 0, fmt.Errorf("%s: %d documents were not written", s.name, n)
	}
	return answer.History[0].DocsWritten, nil
}

// attachmentPath is that of an attachment.
func attachmentPath(db, id, name string) string {
	return "/" + db + "/" + url.PathEscape(id) + "/" + url.PathEscape(name)
}
