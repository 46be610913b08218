package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"golang.org/x/term"

	"divan/cmd/divan/httpclient"
	"divan/cmd/divan/migrate"
)

func importCommand() *cobra.Command {
	var cfg migrate.Config
	target := ""
	cmd := &cobra.Command{
		Use:   "import URL",
		Short: "Move a running CouchDB over to Divan",
		Long: `Move the databases of a running CouchDB, one node or a cluster, to a server that runs:

    divan import http://admin:password@old:5984 --to http://admin:password@127.0.0.1:5984

It brings every database with its settings (_security, limits, shards, partitions), all revisions of documents with
conflicts, deletions and attachments, design documents, and _users with the hashes of their passwords, and reports what
is different or was refused. Interrupted, it goes on where it ended when it is run again. The source may be in use: run with
--continuous until the cut-over. Replications come with --replications, in the last run, as they start here at once.

Names and passwords are those of server administrators. They need not be on the command line: DIVAN_SOURCE_USER and
DIVAN_SOURCE_PASSWORD are used for the source, COUCHDB_USER and COUCHDB_PASSWORD for the target, and on a terminal a
password that is missing is asked for.

The exit status is 1 when something did not come.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if cfg.Continuous && (cfg.Replications || cfg.DryRun) {
				return errors.New("--continuous goes with neither --replications nor --dry-run")
			}
			if cfg.Source, err = login(cmd.Context(), cmd.ErrOrStderr(), args[0], "DIVAN_SOURCE_"); err != nil {
				return err
			}
			if cfg.Target, err = login(cmd.Context(), cmd.ErrOrStderr(), target, "COUCHDB_"); err != nil {
				return err
			}
			cfg.Progress, cfg.Terminal, cfg.Report = cmd.ErrOrStderr(), onTerminal(os.Stderr), cmd.OutOrStdout()
			cfg.Logger, cfg.UserAgent = zap.NewNop(), "divan/"+programVersion()
			return migrate.Run(cmd.Context(), cfg)
		},
	}
	f := cmd.Flags()
	f.StringVar(&target, "to", "http://127.0.0.1:5984", "URL of the server that the databases move to")
	f.StringArrayVar(&cfg.Only, "databases", nil, "only these databases; * stands for anything; may be repeated")
	f.StringArrayVar(&cfg.Exclude, "exclude", nil, "not these databases; likewise")
	f.IntVar(&cfg.Parallel, "parallel", 4, "databases at the same time")
	f.IntVar(&cfg.Q, "q", 0, "shards of new databases (default as many as the source has)")
	f.BoolVar(&cfg.Continuous, "continuous", false, "go on with what changes until interrupted (Ctrl-C)")
	f.BoolVar(&cfg.Replications, "replications", false, "also bring the documents of _replicator, which start to run at once")
	f.BoolVar(&cfg.FromStart, "from-start", false, "look at every document again, also those before the last checkpoint")
	f.BoolVar(&cfg.DryRun, "dry-run", false, "write nothing, only report")
	f.BoolVar(&cfg.Insecure, "insecure", false, "accept TLS certificates that nobody trusts")
	return cmd
}

// login reads the URL of a server and completes who asks from variables with a
// prefix, or from the terminal.
func login(ctx context.Context, out io.Writer, url, prefix string) (httpclient.Server, error) {
	s, err := httpclient.ParseServer(url)
	if err != nil {
		return s, err
	}
	known := os.Getenv(prefix + "USER")
	if s.User == "" {
		s.User = known
	}
	if s.User == "" || s.Password != "" {
		return s, nil
	}
	if known == "" || known == s.User { // not the password of another user
		s.Password = os.Getenv(prefix + "PASSWORD")
	}
	if s.Password != "" {
		return s, nil
	}
	if stdin := int(os.Stdin.Fd()); term.IsTerminal(stdin) {
		fmt.Fprintf(out, "Password of %s at %s: ", s.User, s.Host())
		s.Password, err = readPassword(ctx, stdin)
		fmt.Fprintln(out)
	}
	return s, err
}

// readPassword reads a line from a terminal without showing it.
func readPassword(ctx context.Context, terminal int) (string, error) {
	before, err := term.GetState(terminal)
	if err != nil {
		return "", fmt.Errorf("read the password: %w", err)
	}
	type line struct {
		text []byte
		err  error
	}
	read := make(chan line, 1)
	go func() {
		text, err := term.ReadPassword(terminal)
		read <- line{text, err}
	}()
	select {
	case l := <-read:
		if l.err != nil {
			return "", fmt.Errorf("read the password: %w", l.err)
		}
		return string(l.text), nil
	case <-ctx.Done(): // the reader ends with the process, which must not leave a terminal that shows nothing
		return "", errors.Join(ctx.Err(), term.Restore(terminal, before))
	}
}
