package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/spf13/cobra"

	"divan/cmd/divan/node"
)

// serveOptions are the flags of serve.
type serveOptions struct {
	cfg node.Config
}

// flagSet is what register needs of pflag.FlagSet.
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
	for {
		n, err := node.New(ctx, cfg)
		if err != nil {
			return err
		}
		var beside sync.WaitGroup
		running, stop := context.WithCancel(ctx)
		beside.Go(func() { greet(running, n, out) })
		beside.Go(func() { paceCollector(running, n.Reclaimable) })
		err = n.Run(ctx)
		stop()
		beside.Wait()
		if !errors.Is(err, node.ErrRestart) {
			return err
		}
	}
}

// greet says where the node is once it answers, and what a new user has to know.
func greet(ctx context.Context, n *node.Node, out io.Writer) {
	select {
	case <-ctx.Done():
		return
	case <-n.Ready():
	}
	text := fmt.Sprintf("Divan answers on http://%s\n", n.Addr())
	if len(n.Config().Load().Admins) == 0 {
		text += "There is no server administrator yet, so nobody can create a database, and the node listens on this machine only.\n" +
			"Set one: start again with --admin NAME:PASSWORD.\n"
	}
	_, _ = io.WriteString(out, text) // it is in the log too
}
