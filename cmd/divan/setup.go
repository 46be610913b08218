package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"divan/cmd/divan/setup"
)

func setupCommand() *cobra.Command {
	var (
		admin   string
		timeout time.Duration
		cfg     setup.Config
	)
	cmd := &cobra.Command{
		Use:   "setup URL…",
		Short: "Make a cluster of nodes that are running",
		Long: `Make a cluster of nodes that are running, through POST /_cluster_setup of the first one:

    divan setup --admin admin:password http://node1:5984 http://node2:5984 http://node3:5984

The nodes need the same administrator; the one in the first URL, or COUCHDB_USER and COUCHDB_PASSWORD, is used when
--admin is not given.
Nodes that do not answer yet are waited for. It may be run again: it then does what is missing.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, node := range args {
				if err := checkServerURL(node); err != nil {
					return err
				}
			}
			cfg.Nodes, cfg.Out = args, cmd.ErrOrStderr()
			if admin != "" {
				cfg.User, cfg.Password, _ = strings.Cut(admin, ":")
			} else {
				first, err := login(cmd.Context(), cmd.ErrOrStderr(), args[0], "COUCHDB_")
				if err != nil {
					return err
				}
				cfg.User, cfg.Password = first.User, first.Password
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			err := setup.Run(ctx, cfg)
			if errors.Is(err, context.DeadlineExceeded) {
				return fmt.Errorf("not finished within %v: %w", timeout, err)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&admin, "admin", "", "NAME:PASSWORD of a server administrator of all nodes")
	cmd.Flags().StringVar(&cfg.BindAddress, "bind-address", "", "address that the nodes are to serve HTTP on (default where they do)")
	cmd.Flags().DurationVar(&timeout, "timeout", 2*time.Minute, "how long to wait for the nodes")
	return cmd
}
