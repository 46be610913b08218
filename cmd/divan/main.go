// Command divan runs, joins, fills and examines nodes of the database: serve, setup,
// import, cluster, healthcheck, bench, check, recover, version.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

func main() {
	ctx, cancel := context.WithCancel(context.Background())
	go obey(cancel)
	err := rootCommand().ExecuteContext(ctx)
	if err == nil {
		return
	}
	lastWords("divan: " + err.Error())
	os.Exit(exitStatus(err))
}

// stopWithin is how long the process may take to end once it was asked to: as long
// as `docker stop` waits. What hangs then, a disk say, is left behind, which loses
// nothing that was acknowledged.
const stopWithin = 10 * time.Second

// obey asks for a graceful stop at the first signal. It ends the process at the
// second one, with the status that a shell gives to a program ended by it, and after
// stopWithin. Both signals are read from one channel: handing the second back to the
// system's own handling would race with its arrival.
func obey(stop context.CancelFunc) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	<-signals
	stop()
	status := 1
	select {
	case again := <-signals:
		if s, ok := again.(syscall.Signal); ok {
			status = 128 + int(s)
		}
	case <-time.After(stopWithin):
		lastWords(fmt.Sprintf("divan: not ended %v after it was asked to", stopWithin))
	}
	os.Exit(status)
}

// lastWords prints a line, and does not wait for an output that takes nothing.
func lastWords(text string) {
	said := make(chan struct{})
	go func() {
		defer close(said)
		_, _ = fmt.Fprintln(os.Stderr, text) // an error here has no other place to be told
	}()
	select {
	case <-said:
	case <-time.After(200 * time.Millisecond):
	}
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
	root.AddCommand(serveCommand(), importCommand(), benchCommand(), checkCommand(), recoverCommand(), setupCommand(), clusterCommand(), healthcheckCommand(), versionCommand())
	root.CompletionOptions.HiddenDefaultCmd = true
	root.Version = programVersion()
	root.SetVersionTemplate("divan {{.Version}}\n")
	explainUsage(root)
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
