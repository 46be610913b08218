package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"divan/cmd/divan/httpclient"
)

func healthcheckCommand() *cobra.Command {
	var (
		timeout  time.Duration
		ca       string
		insecure bool
	)
	cmd := &cobra.Command{
		Use:   "healthcheck [URL]",
		Short: "Ask a node whether it can take requests; the exit status tells",
		Long: `Ask a node whether it can take requests, by GET /_up. The exit status is 0 when it can. A node that starts,
stops or is in maintenance mode answers that it cannot. Without a URL the node on http://127.0.0.1:5984 is asked.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			base := "http://127.0.0.1:5984"
			if len(args) > 0 {
				base = strings.TrimRight(args[0], "/")
			}
			if err := checkServerURL(base); err != nil {
				return err
			}
			if !strings.Contains(base, "://") {
				base = "http://" + base
			}
			client, err := clientFor(ca, insecure)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return healthy(ctx, client, base)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 3*time.Second, "how long to wait for the answer")
	cmd.Flags().StringVar(&ca, "ca", "", "PEM file of the authority that signed the node's certificate (default those of the system)")
	cmd.Flags().BoolVar(&insecure, "insecure", false, "accept a certificate that nobody trusts")
	return cmd
}

// clientFor returns a client that trusts an authority, or every certificate.
func clientFor(ca string, insecure bool) (*http.Client, error) {
	cas, err := httpclient.ReadCAs(ca)
	if err != nil {
		return nil, err
	}
	trust := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: cas, InsecureSkipVerify: insecure} //nolint:gosec // it is asked for
	return &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: trust, DisableKeepAlives: true}}, nil
}

// healthy returns nil when the node behind a URL takes requests.
func healthy(ctx context.Context, client *http.Client, base string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/_up", nil)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, 1<<10))
	_ = res.Body.Close() // what matters has been read
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s takes no requests: status %d %s", base, res.StatusCode, body)
	}
	return nil
}
