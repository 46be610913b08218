package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"divan/cmd/divan/bench"
)

// benchOptions are the flags of bench.
type benchOptions struct {
	cfg     bench.Config
	against bench.Against
	procs   int
	asJSON  bool
}

func benchCommand() *cobra.Command {
	var o benchOptions
	cmd := &cobra.Command{
		Use:   "bench URL",
		Short: "Load a CouchDB-compatible server and measure it",
		Long: `Load a server and measure it. The server may be Divan, CouchDB or any other that speaks its API:

    divan bench http://admin:password@127.0.0.1:5984

It makes databases of its own, whose names start with bench_, and drops them at the end.
The workloads: ` + strings.Join(bench.Names(), ", ") + `.
On a cluster get compares the usual number of copies, two of three, and get_r1 reads one copy only.
update_hot updates one document for each client, which has a history of 400 revisions when it starts. put_one is put with one client.
replicate_local copies from database to database of the server, replicate_idle looks at all changes of such a copy again,
and replicate_http, which runs when there is a --peer, copies to that second server over HTTP. With --pid (give the
processes of both) their processor time is that of one document, not of one request.
With --pid, handlers tells how many times the processor time of a net/http handler that answers a constant a request took:
the handler is another process, which gets requests of the same kind right before and after each workload.
With --against every workload runs on two servers in turn, in several --rounds, of which each has databases of its own: what is told
are the ratios of both (the first server / the one of --against), their medians, the least and the most of them.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	o.register(cmd.Flags())
	cmd.AddCommand(benchConstantCommand())
	return cmd
}

func (o *benchOptions) register(f *pflag.FlagSet) {
	cfg := &o.cfg
	f.IntVar(&o.procs, "procs", max(1, runtime.NumCPU()/2), // the server usually stands on the same machine
		"processors that the clients may use at the same time")
	f.IntVar(&cfg.Clients, "clients", 64, "requests under way at the same time")
	f.DurationVar(&cfg.Duration, "duration", 10*time.Second, "time for each workload that has no fixed amount of work")
	f.DurationVar(&cfg.Settle, "settle", 10*time.Second, "pause between the bulk load and the first read, and between the rounds of --against, for what a server still does behind a load")
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
	f.StringVar(&o.against.URL, "against", "", "URL of another server: every workload runs on both in turn, and the ratios are told")
	f.IntSliceVar(&o.against.PIDs, "against-pid", nil, "processes of the server of --against, as --pid")
	f.IntVar(&o.against.Rounds, "rounds", 5, "how often both servers do every workload, with --against")
	f.BoolVar(&o.asJSON, "json", false, "print the report as JSON")
}

// checkAgainst refuses options of a comparison when there is none.
func (o *benchOptions) checkAgainst(f *pflag.FlagSet) error {
	if f.Changed("against") {
		if err := checkServerURL(o.against.URL); err != nil {
			return fmt.Errorf("--against: %w", err)
		}
		return nil
	}
	for _, name := range []string{"against-pid", "rounds"} {
		if f.Changed(name) {
			return fmt.Errorf("--%s needs the URL of the server to compare with: --against http://admin:password@127.0.0.1:6984", name)
		}
	}
	return nil
}

func (o *benchOptions) run(cmd *cobra.Command, url string) error {
	if err := checkServerURL(url); err != nil {
		return err
	}
	if err := o.checkAgainst(cmd.Flags()); err != nil {
		return err
	}
	o.cfg.URL = url
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program, which is the constant handler too: %w", err)
	}
	o.cfg.Constant = []string{program, "bench", "constant"}
	runtime.GOMAXPROCS(o.procs)
	if onTerminal(os.Stderr) { // its lines write over each other, which a file or a pipe would keep
		o.cfg.Progress = cmd.ErrOrStderr()
	}
	out := cmd.OutOrStdout()
	if o.against.URL != "" {
		report, err := bench.Compare(cmd.Context(), o.cfg, o.against)
		if report != nil && len(report.Workloads) > 0 {
			return errors.Join(o.print(out, report), err)
		}
		return err
	}
	report, err := bench.Run(cmd.Context(), o.cfg)
	if report != nil && len(report.Results) > 0 {
		return errors.Join(o.print(out, report), err)
	}
	return err
}

// benchReport is of one server or of a comparison.
type benchReport interface {
	Print(w io.Writer) error
	PrintJSON(w io.Writer) error
}

// print writes what a run has measured, whole or until it failed.
func (o *benchOptions) print(out io.Writer, report benchReport) error {
	show := report.Print
	if o.asJSON {
		show = report.PrintJSON
	}
	if err := show(out); err != nil {
		return fmt.Errorf("print the report: %w", err)
	}
	return nil
}

// benchConstantCommand is the process that --pid compares a server with.
func benchConstantCommand() *cobra.Command {
	docSize := 0
	cmd := &cobra.Command{
		Use:    "constant",
		Short:  "Answer a constant to every request until the input ends",
		Hidden: true, // the bench starts it
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return bench.ServeConstant(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), docSize)
		},
	}
	cmd.Flags().IntVar(&docSize, "doc-size", 1024, "bytes of the answer to GET")
	return cmd
}

// onTerminal reports whether what is written to f is seen by a person at once.
func onTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
