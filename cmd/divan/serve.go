package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"divan/cmd/divan/node"
)

// serveOptions are the flags of serve.
type serveOptions struct {
	cfg node.Config
}

// flagSet is the part of pflag.FlagSet that register needs.
type flagSet interface {
	StringVar(p *string, name, value, usage string)
	StringArrayVar(p *[]string, name string, value []string, usage string)
}

func (o *serveOptions) register(f flagSet) {
	f.StringVar(&o.cfg.DataDir, "data", "data", "directory of everything that must survive")
	f.StringArrayVar(&o.cfg.ConfigFiles, "config", nil, "ini file, or directory of them; may be repeated, later ones are stronger "+
		"(default local.ini and local.d in the data directory)")
	f.StringVar(&o.cfg.Listen, "listen", "", "HOST:PORT to listen on (default 127.0.0.1:5984, or what the configuration says)")
	f.StringVar(&o.cfg.NodeName, "name", "", "NAME@HOST of the node, for life (default divan@127.0.0.1, or what the configuration says)")
	f.StringVar(&o.cfg.ClusterAddress, "cluster-listen", "", "HOST:PORT to listen on for other nodes; makes the node part of a cluster "+
		"(default none, or what the configuration says)")
	f.StringVar(&o.cfg.Admin, "admin", "", "NAME:PASSWORD of a server administrator")
}

func serveCommand() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a node (also what no command means)",
		Long: `Run a node.

Settings come from, the weakest first: built-in defaults, ini files, the environment (COUCHDB_USER, COUCHDB_PASSWORD,
COUCHDB_SECRET, COUCHDB_ERLANG_COOKIE, NODENAME, DIVAN_SECTION__KEY), these flags, and what was set through HTTP.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return serve(cmd.Context(), &o, cmd.ErrOrStderr()) },
	}
	o.register(cmd.Flags())
	return cmd
}

// serve runs a node until ctx ends, and again when it is asked to restart.
func serve(ctx context.Context, o *serveOptions, out io.Writer) error {
	processors := spreadOut()
	if err := keepPrivate(o.cfg.DataDir); err != nil {
		return err
	}
	cfg := o.cfg
	cfg.Environ = os.Environ()
	cfg.Version, cfg.Processors = programVersion(), processors
	cfg.StopWithin = stopWithin - time.Second // it says what did not end
	for {
		n, err := node.New(ctx, cfg)
		if err != nil {
			return err
		}
		var beside sync.WaitGroup
		running, stop := context.WithCancel(ctx)
		beside.Go(func() { greet(running, n, o, out) })
		beside.Go(func() { renewAtHangup(running, n) })
		beside.Go(func() { paceCollector(running, n.Reclaimable) })
		err = n.Run(ctx)
		stop()
		beside.Wait()
		if !errors.Is(err, node.ErrRestart) {
			if err == nil {
				_, _ = io.WriteString(out, "Divan has stopped.\n")
			}
			return err
		}
	}
}

// renewAtHangup obeys SIGHUP until ctx ends.
func renewAtHangup(ctx context.Context, n *node.Node) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangups:
			n.Renew()
		}
	}
}

// greet says where the node is once it answers, and what a new user has to know.
func greet(ctx context.Context, n *node.Node, o *serveOptions, out io.Writer) {
	select {
	case <-ctx.Done():
		return
	case <-n.Ready():
	}
	text := fmt.Sprintf("Divan answers on http://%s\n", n.Addr())
	if err := tellReady(ctx); err != nil {
		text += err.Error() + "\n"
	}
	admins := n.Config().Load().Admins
	if out == os.Stderr && onTerminal(os.Stderr) {
		text += details(n, o.cfg.DataDir, slices.Sorted(maps.Keys(admins)))
	}
	if len(admins) == 0 {
		text += "There is no server administrator yet, so nobody can create a database, and the node listens on this machine only.\n" +
			"Set one: start again with --admin NAME:PASSWORD.\n"
	}
	_, _ = io.WriteString(out, text) // it is in the log too
}

// details returns the lines about a node for a person at a terminal.
func details(n *node.Node, dataDir string, admins []string) string {
	if dir, err := filepath.Abs(dataDir); err == nil {
		dataDir = dir
	}
	text := fmt.Sprintf("  version    %s\n  data       %s, %d databases\n  listens    %s\n  console    http://%s/_utils/\n",
		programVersion(), dataDir, n.Databases(), strings.Join(n.Addresses(), ", "), n.Addr())
	if len(admins) > 0 {
		text += fmt.Sprintf("  try        curl -u %s \"http://%s/_all_dbs\"\n", admins[0], n.Addr())
	}
	return text + "  stop       Ctrl-C\n"
}
