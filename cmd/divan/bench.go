package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"divan/cmd/divan/bench"
)

func benchCommand() *cobra.Command {
	cfg := bench.Config{}
	asJSON := false
	procs := max(1, runtime.NumCPU()/2) // the server usually stands on the same machine
	cmd := &cobra.Command{
		Use:   "bench URL",
		Short: "Load a CouchDB-compatible server and measure it",
		Long: `Load a server and measure it. The server may be Divan, CouchDB or any other that speaks its API:

    divan bench http://admin:password@127.0.0.1:5984

It makes databases of its own, whose names start with bench_, and drops them at the end.
The workloads: ` + strings.Join(bench.Names(), ", ") + `.
On a cluster get compares the usual number of copies, two of three, and get_r1 reads one copy only.
replicate_local copies from database to database of the server, replicate_idle looks at all changes of such a copy again,
and replicate_http, which runs when there is a --peer, copies to that second server over HTTP. With --pid (give the
processes of both) their processor time is that of one document, not of one request.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkServerURL(args[0]); err != nil {
				return err
			}
			cfg.URL = args[0]
			runtime.GOMAXPROCS(procs)
			if onTerminal(os.Stderr) { // its lines write over each other, which a file or a pipe would keep
				cfg.Progress = cmd.ErrOrStderr()
			}
			report, err := bench.Run(cmd.Context(), cfg)
			if report != nil && len(report.Results) > 0 {
				show := report.Print
				if asJSON {
					show = report.PrintJSON
				}
				if printErr := show(cmd.OutOrStdout()); printErr != nil {
					return fmt.Errorf("print the report: %w", printErr)
				}
			}
			return err
		},
	}
	f := cmd.Flags()
	f.IntVar(&procs, "procs", procs, "processors that the clients may use at the same time")
	f.IntVar(&cfg.Clients, "clients", 64, "requests under way at the same time")
	f.DurationVar(&cfg.Duration, "duration", 10*time.Second, "time for each workload that has no fixed amount of work")
	f.DurationVar(&cfg.Settle, "settle", 10*time.Second, "pause between the bulk load and the first read, for what a server still does behind a load")
	f.IntVar(&cfg.Docs, "docs", 1_000_000, "documents of the bulk load, which the scans read")
	f.IntVar(&cfg.DocSize, "doc-size", 1024, "bytes of a document, about")
	f.IntVar(&cfg.Batch, "batch", 1000, "documents per _bulk_docs")
	f.Int64Var(&cfg.AttachmentBytes, "attachment-bytes", 128<<20, "bytes of an attachment")
	f.IntVar(&cfg.Databases, "databases", 200, "databases that create_database makes")
	f.IntVar(&cfg.Q, "q", 0, "shards per database; 0 leaves it to the server")
	f.StringSliceVar(&cfg.Only, "only", nil, "run only these workloads")
	f.BoolVar(&cfg.RandomIDs, "random-ids", false, "ids spread over the key space instead of ascending ones, as _uuids makes them")
	f.StringVar(&cfg.Peer, "peer", "", "URL of a second server, for replicate_http")
	f.BoolVar(&cfg.Keep, "keep", false, "leave the databases behind")
	f.IntSliceVar(&cfg.PIDs, "pid", nil, "processes of a server on this machine: tells its processor time per request (Linux)")
	f.BoolVar(&asJSON, "json", false, "print the report as JSON")
	return cmd
}

// onTerminal reports whether what is written to f is seen by a person at once.
func onTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
