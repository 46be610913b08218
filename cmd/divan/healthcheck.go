package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"
)

func healthcheckCommand() *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "healthcheck [URL]",
		Short: "Ask a node whether it can take requests; the exit status tells",
		Long: `Ask a node whether it can take requests, by GET /_up. The exit status is 0 when it can. A node that starts,
stops or is in maintenance mode answers that it cannot. Without a URL the node on http://127.0.0.1:5984 is asked.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			base := "http://127.0.0.1:5984"
			if len(args) > 0 {
				base = args[0]
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return healthy(ctx, base)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 3*time.Second, "how long to wait for the answer")
	return cmd
}

// healthy returns nil when the node behind a URL takes requests.
func healthy(ctx context.Context, base string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/_up", nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
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
