// Command divan runs, joins, fills and examines nodes of the database: serve, setup,
// import, healthcheck, bench, check, recover, version.
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
	ctx, cancel := context.WithCancel(context.Background())
	go obey(cancel)
	err := rootCommand().ExecuteContext(ctx)
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "divan:", err)
	os.Exit(1)
}

// obey asks for a graceful stop at the first signal and ends the process at the
// second, with the status that a shell gives to a program ended by it. Both are
// read from one channel: handing the second back to the system's own handling
// would race with its arrival.
func obey(stop context.CancelFunc) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	<-signals
	stop()
	status := 1
	if s, ok := (<-signals).(syscall.Signal); ok {
		status = 128 + int(s)
	}
	os.Exit(status)
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
	root.AddCommand(serveCommand(), importCommand(), benchCommand(), checkCommand(), recoverCommand(), setupCommand(), healthcheckCommand(), versionCommand())
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
