// Package setup makes a cluster of nodes that have just been started, as an
// operator would: through POST /_cluster_setup of one of them. It may be run
// again at any time and then does what is still missing.
package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Config says which nodes are to become a cluster.
type Config struct {
	Nodes       []string     // URLs; the first one is asked to do the rest
	User        string       // server administrator of every node
	Password    string       // of that administrator
	BindAddress string       // where the nodes are to listen for HTTP; empty: where they do
	Out         io.Writer    // one line per step
	Client      *http.Client // nil: one with a timeout of a minute
}

const (
	requestTimeout = time.Minute
	pollEvery      = 250 * time.Millisecond
	usualPort      = 5984
	enoughVoters   = 3 // one of them may be lost
)

// member is one of the nodes.
type member struct {
	url  *url.URL
	name string // as the node calls itself
}

func (m *member) port() int {
	if p, err := strconv.Atoi(m.url.Port()); err == nil {
		return p
	}
	return usualPort
}

// job is one run.
type job struct {
	cfg     Config
	members []*member
}

// Run returns nil once every node knows every other, the system databases are
// there, and the metadata no longer hang on the first node alone. It waits for
// nodes that do not answer yet until ctx ends.
func Run(ctx context.Context, cfg Config) error {
	j, err := newJob(cfg)
	if err != nil {
		return err
	}
	for _, m := range j.members {
		if err := j.meet(ctx, m); err != nil {
			return err
		}
	}
	if err := j.enable(ctx, j.members[0]); err != nil {
		return err
	}
	for _, m := range j.members[1:] {
		if err := j.add(ctx, m); err != nil {
			return err
		}
	}
	if err := j.finish(ctx); err != nil {
		return err
	}
	for _, m := range j.members {
		if err := j.confirm(ctx, m); err != nil {
			return err
		}
	}
	if err := j.settle(ctx); err != nil {
		return err
	}
	return j.say("the cluster of %d nodes is ready", len(j.members))
}

func newJob(cfg Config) (*job, error) {
	if len(cfg.Nodes) == 0 {
		return nil, errors.New("name the nodes by their URLs, like http://node1:5984 http://node2:5984 http://node3:5984")
	}
	if cfg.User == "" || cfg.Password == "" {
		return nil, errors.New("the name and password of a server administrator are needed: --admin NAME:PASSWORD, in the first URL, or COUCHDB_USER and COUCHDB_PASSWORD")
	}
	if cfg.Client == nil {
		cfg.Client = &http.Client{Timeout: requestTimeout}
	}
	j := &job{cfg: cfg}
	for _, text := range cfg.Nodes {
		if !strings.Contains(text, "://") {
			text = "http://" + text
		}
		u, err := url.Parse(text)
		if err != nil || u.Hostname() == "" || (u.Scheme != "http" && u.Scheme != "https") {
			return nil, fmt.Errorf("the URL of a node must look like http://node1:5984, not %q", text)
		}
		u.Path, u.RawQuery, u.User = "", "", nil
		j.members = append(j.members, &member{url: u})
	}
	return j, nil
}

func (j *job) say(format string, args ...any) error {
	_, err := fmt.Fprintf(j.cfg.Out, format+"\n", args...)
	return err
}

// meet waits until a node answers and asks for its name.
func (j *job) meet(ctx context.Context, m *member) error {
	var body struct{ Name string }
	told := false
	err := poll(ctx, func() (bool, error) {
		a, err := j.call(ctx, m, http.MethodGet, "/_node/_local", nil)
		switch {
		case ctx.Err() != nil:
			return false, ctx.Err()
		case err != nil || a.status >= http.StatusInternalServerError:
			if !told {
				told = true
				return false, j.say("waiting for %s", m.url.Host)
			}
			return false, nil
		case a.status == http.StatusUnauthorized || a.status == http.StatusForbidden:
			return false, fmt.Errorf("%s does not take the administrator's name and password", m.url.Host)
		}
		return true, a.decode(&body)
	})
	if err != nil {
		return fmt.Errorf("node %s: %w", m.url.Host, err)
	}
	m.name = body.Name
	return nil
}

// enable makes the first node ready to take others in.
func (j *job) enable(ctx context.Context, m *member) error {
	state, err := j.state(ctx, m)
	if err != nil {
		return err
	}
	if state == "cluster_enabled" || state == "cluster_finished" {
		return nil
	}
	return j.act(ctx, m.name+" may take nodes in", j.enabling(m), "Cluster is already enabled")
}

// enabling is the body of enable_cluster for a node.
func (j *job) enabling(m *member) map[string]any {
	body := map[string]any{
		"action": "enable_cluster", "username": j.cfg.User, "password": j.cfg.Password,
		"port": m.port(), "node_count": len(j.members),
	}
	if j.cfg.BindAddress != "" {
		body["bind_address"] = j.cfg.BindAddress
	}
	return body
}

// add takes a node in, unless it is in.
func (j *job) add(ctx context.Context, m *member) error {
	in, err := j.clusterNodes(ctx, j.members[0])
	if err != nil {
		return err
	}
	if slices.Contains(in, m.name) {
		return nil
	}
	enabling := j.enabling(m)
	enabling["remote_node"] = m.url.Hostname()
	enabling["remote_current_user"] = j.cfg.User
	enabling["remote_current_password"] = j.cfg.Password
	if err := j.act(ctx, m.name+" may join", enabling, "Cluster is already enabled"); err != nil {
		return err
	}
	name, _, _ := strings.Cut(m.name, "@")
	return j.act(ctx, m.name+" is in", map[string]any{
		"action": "add_node", "host": m.url.Hostname(), "port": m.port(), "name": name,
		"username": j.cfg.User, "password": j.cfg.Password,
	}, "")
}

func (j *job) finish(ctx context.Context) error {
	return j.act(ctx, "the system databases are there", map[string]any{"action": "finish_cluster"}, "Cluster is already finished")
}

// act has the first node do something; a refusal with that reason counts as
// done.
func (j *job) act(ctx context.Context, done string, body map[string]any, unless string) error {
	a, err := j.call(ctx, j.members[0], http.MethodPost, "/_cluster_setup", body)
	if err != nil {
		return err
	}
	if a.status == http.StatusOK || a.status == http.StatusCreated {
		return j.say("%s", done)
	}
	if reason := a.reason(); unless == "" || !strings.HasPrefix(reason, unless) {
		return fmt.Errorf("%s refuses %v: %s", j.members[0].name, body["action"], reason)
	}
	return nil
}

// confirm waits until a node sees all others and answers for them.
func (j *job) confirm(ctx context.Context, m *member) error {
	err := poll(ctx, func() (bool, error) {
		a, err := j.call(ctx, m, http.MethodGet, "/_up", nil)
		if err != nil || a.status != http.StatusOK {
			return false, ctx.Err()
		}
		known, err := j.membership(ctx, m)
		if err != nil {
			return false, ctx.Err()
		}
		for _, other := range j.members {
			if !slices.Contains(known.AllNodes, other.name) || !slices.Contains(known.ClusterNodes, other.name) {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("%s does not see the others yet: %w", m.name, err)
	}
	return nil
}

// settle waits until every node knows of enough nodes that vote on the metadata.
// A node gets its vote when it has been well for a few seconds; before, the first
// one decides alone, and its loss would be that of all metadata.
func (j *job) settle(ctx context.Context) error {
	want := min(len(j.members), enoughVoters)
	for _, m := range j.members {
		var known []string
		var failed error
		err := poll(ctx, func() (bool, error) {
			known, failed = j.voters(ctx, m)
			return failed == nil && len(known) >= want, nil
		})
		if err != nil {
			return fmt.Errorf("%s knows %d nodes that vote on the metadata, not %d: %w", m.name, len(known), want, errors.Join(err, failed))
		}
	}
	return nil
}

// poll calls f until it returns true or an error, or ctx ends.
func poll(ctx context.Context, f func() (done bool, err error)) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if done, err := f(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
