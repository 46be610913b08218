package clusterctl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"divan/cmd/divan/httpclient"
)

// Config holds the settings that all commands share.
type Config struct {
	Server   httpclient.Server // any node of the cluster
	Client   httpclient.Options
	Out      io.Writer // tables and JSON
	Progress io.Writer
	Terminal bool // progress is seen by a person at once

	// Ask puts a question that is answered with yes or no; nil: there is no terminal.
	Ask func(ctx context.Context, question string) (bool, error)
}

// ErrUnattended says that a command would begin something and cannot ask whether it may.
var ErrUnattended = errors.New("there is no terminal to ask on: add --yes to begin, or --dry-run to see the plan only")

// errDeclined is the error of a command whose question was answered with no.
var errDeclined = errors.New("nothing was begun")

// command is one run of a command.
type command struct {
	cfg    Config
	client *httpclient.Client
}

// run runs a command.
func run(ctx context.Context, cfg Config, do func(context.Context, *command) error) error {
	c := &command{cfg: cfg, client: httpclient.New(cfg.Server, cfg.Client)}
	defer c.client.CloseIdleConnections()
	return do(ctx, c)
}

// send sends a request that changes something, once, and reads a good answer's JSON into out unless
// that is nil.
func (c *command) send(ctx context.Context, method, path string, body, out any) error {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}
	c.client.Retry = false // what it began might be begun twice
	answer, err := c.client.Call(ctx, method, path, text)
	if err != nil || out == nil {
		return err
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("%s %s%s: %w", method, c.client.Host(), path, err)
	}
	return nil
}

// printf prints to the output.
func (c *command) printf(format string, args ...any) error {
	_, err := fmt.Fprintf(c.cfg.Out, format, args...)
	return err
}

// confirm asks whether to begin, unless that is clear.
func (c *command) confirm(ctx context.Context, yes bool, question string) error {
	if yes {
		return nil
	}
	if c.cfg.Ask == nil {
		return ErrUnattended
	}
	ok, err := c.cfg.Ask(ctx, question)
	if err == nil && !ok {
		err = errDeclined
	}
	return err
}

// url is how the server is named on a command line, without the password.
func (c *command) url() string {
	if c.client.User == "" {
		return c.client.URL
	}
	scheme, host, _ := strings.Cut(c.client.URL, "://")
	return scheme + "://" + url.User(c.client.User).String() + "@" + host
}

// curl is the beginning of a command line of curl.
func (c *command) curl() string {
	if c.client.User == "" {
		return "curl"
	}
	return "curl -u " + c.client.User
}

// atNode is the path of something at a node, or about it.
func atNode(name, what string) string { return "/_node/" + url.PathEscape(name) + "/" + what }

// refusedAs reports whether an error is an answer with a status.
func refusedAs(err error, status int) bool { return httpclient.Status(err) == status }

// lasting reports whether a request that was refused so is refused again.
func lasting(err error) bool {
	status := httpclient.Status(err)
	return status >= http.StatusBadRequest && status < http.StatusInternalServerError && status != http.StatusTooManyRequests
}
