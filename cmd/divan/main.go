// Command divan runs and examines the database: serve, bench, check, version.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks for a graceful stop, a second one ends the process.
	context.AfterFunc(ctx, stop)
	err := rootCommand().ExecuteContext(ctx)
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "divan:", err)
	os.Exit(1)
}

// rootCommand returns the program; without a command it serves.
func rootCommand() *cobra.Command {
	var opts serveOptions
	root := &cobra.Command{
		Use:           "divan",
		Short:         "A document database that speaks CouchDB's HTTP API",
		Long:          "Divan is a document database that speaks CouchDB's HTTP API.\nWithout a command it serves.",
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return serve(cmd.Context(), &opts, cmd.ErrOrStderr()) },
	}
	opts.register(root.Flags())
	root.AddCommand(serveCommand(), benchCommand(), checkCommand(), versionCommand())
	root.CompletionOptions.HiddenDefaultCmd = true
	return root
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "divan", programVersion())
			return err
		},
	}
}
