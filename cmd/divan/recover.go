package main

import (
	"errors"
	"os"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"divan/cmd/divan/node"
)

func recoverCommand() *cobra.Command {
	var cfg node.Config
	cmd := &cobra.Command{
		Use:   "recover DIR",
		Short: "Make the metadata of a lone node again",
		Long: `Make the metadata of a data directory again when they are gone or damaged: from what can be read of them, from the
copies that are kept in the folder recovery, and from the names of the shards. No document is changed, and the metadata
that were there are kept beside. What could not be known is told. No node may be using the directory, and it must be that
of a node that stands alone: a node of a cluster gets its metadata from the others.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := isDataDirectory(args[0]); err != nil {
				return err
			}
			if err := keepPrivate(args[0]); err != nil {
				return err
			}
			cfg.DataDir, cfg.Environ, cfg.Logger = args[0], os.Environ(), zap.NewNop()
			made, err := node.Recover(cmd.Context(), cfg)
			if err := errors.Join(err, leaveToOwner(args[0])); err != nil {
				return err
			}
			x := examination{out: cmd.OutOrStdout()}
			for _, note := range made.Notes {
				x.print("%s\n", note)
			}
			if made.Aside != "" {
				x.print("the metadata from before are in %s\n", made.Aside)
			}
			x.print("metadata of %d databases were made\n", made.Databases)
			return x.writeErr
		},
	}
	cmd.Flags().StringVar(&cfg.NodeName, "name", "", "NAME@HOST of the node (default divan@127.0.0.1, or what the configuration says)")
	cmd.Flags().StringArrayVar(&cfg.ConfigFiles, "config", nil, "ini file, or directory of them, that the node is started with")
	return cmd
}
