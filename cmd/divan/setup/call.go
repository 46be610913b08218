package setup

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 1 << 20

// answer is the answer of a node.
type answer struct {
	status int
	body   []byte
}

// decode reads a good answer's JSON.
func (a answer) decode(v any) error {
	if a.status >= http.StatusBadRequest {
		return fmt.Errorf("status %d: %s", a.status, a.reason())
	}
	return json.Unmarshal(a.body, v)
}

// reason is the text of a refusal.
func (a answer) reason() string {
	var e struct{ Reason string }
	if json.Unmarshal(a.body, &e) != nil || e.Reason == "" {
		return fmt.Sprintf("status %d", a.status)
	}
	return e.Reason
}

// call sends a request with a JSON body, nil for none, as the administrator.
func (j *job) call(ctx context.Context, m *member, method, path string, body any) (answer, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return answer{}, err
		}
		content = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, m.url.String()+path, content)
	if err != nil {
		return answer{}, err
	}
	req.SetBasicAuth(j.cfg.User, j.cfg.Password)
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := j.cfg.Client.Do(req)
	if err != nil {
		return answer{}, err
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	_ = res.Body.Close() // what matters has been read
	return answer{status: res.StatusCode, body: text}, err
}

// state asks a node how far its set-up is.
func (j *job) state(ctx context.Context, m *member) (string, error) {
	var body struct{ State string }
	err := j.get(ctx, m, "/_cluster_setup", &body)
	return body.State, err
}

// nodes are the members of the cluster: those that are there, and all.
type nodes struct {
	AllNodes     []string `json:"all_nodes"`
	ClusterNodes []string `json:"cluster_nodes"`
}

func (j *job) membership(ctx context.Context, m *member) (nodes, error) {
	var n nodes
	err := j.get(ctx, m, "/_membership", &n)
	return n, err
}

func (j *job) clusterNodes(ctx context.Context, m *member) ([]string, error) {
	n, err := j.membership(ctx, m)
	return n.ClusterNodes, err
}

// voters are the nodes that vote on the metadata, as a node knows them.
func (j *job) voters(ctx context.Context, m *member) ([]string, error) {
	var body struct{ Metadata struct{ Voters []string } }
	err := j.get(ctx, m, "/_node/_local/_system", &body)
	return body.Metadata.Voters, err
}

func (j *job) get(ctx context.Context, m *member, path string, v any) error {
	a, err := j.call(ctx, m, http.MethodGet, path, nil)
	if err == nil {
		err = a.decode(v)
	}
	if err != nil {
		return fmt.Errorf("%s%s: %w", m.url.Host, path, err)
	}
	return nil
}
