package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"divan/cmd/divan/clusterctl"
	"divan/cmd/divan/httpclient"
)

// clusterFlags are the flags of all commands below `divan cluster`.
type clusterFlags struct {
	ca       string
	insecure bool
}

func clusterCommand() *cobra.Command {
	flags := &clusterFlags{}
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Look at a cluster, balance it, drain nodes, split and move shards",
		Long: `Look after a cluster through the HTTP API of any of its nodes:

    divan cluster status http://admin:password@10.0.0.1:5984

The name and the password are those of a server administrator. They need not be on the command line: COUCHDB_USER and
COUCHDB_PASSWORD are used, and on a terminal a password that is missing is asked for.

What is begun goes on in the cluster. These commands follow it; Ctrl-C ends only that. The exit status is 1 when
something is not well or has failed, also when it is no longer followed, and 2 after a mistake on the command line.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().StringVar(&flags.ca, "ca", "", "PEM file of the authority that signed the node's certificate (default those of the system)")
	cmd.PersistentFlags().BoolVar(&flags.insecure, "insecure", false, "accept a certificate that nobody trusts")
	cmd.AddCommand(clusterStatusCommand(flags), clusterRebalanceCommand(flags), clusterDrainCommand(flags),
		clusterSplitCommand(flags), clusterMergeCommand(flags), clusterMoveCommand(flags))
	return cmd
}

// config returns what all of the commands need.
func (f *clusterFlags) config(cmd *cobra.Command, url string) (cfg clusterctl.Config, err error) {
	if err := checkServerURL(url); err != nil {
		return cfg, usageError(cmd, err, "")
	}
	if cfg.Client.CAs, err = httpclient.ReadCAs(f.ca); err != nil {
		return cfg, err
	}
	if cfg.Server, err = login(cmd.Context(), cmd.ErrOrStderr(), url, "COUCHDB_"); err != nil {
		return cfg, err
	}
	cfg.Client.Insecure, cfg.Client.UserAgent = f.insecure, "divan/"+programVersion()
	cfg.Out, cfg.Progress, cfg.Terminal = cmd.OutOrStdout(), cmd.ErrOrStderr(), onTerminal(os.Stderr)
	if cfg.Terminal && term.IsTerminal(int(os.Stdin.Fd())) {
		cfg.Ask = func(ctx context.Context, question string) (bool, error) {
			return ask(ctx, cmd.ErrOrStderr(), os.Stdin, question)
		}
	}
	return cfg, nil
}

// ask puts a question and reads whether the answer is yes.
func ask(ctx context.Context, out io.Writer, in io.Reader, question string) (bool, error) {
	if _, err := fmt.Fprint(out, question+" [y/N] "); err != nil {
		return false, err
	}
	answer := make(chan string, 1)
	go func() { // it ends with the process when the user gives no answer
		line, _ := bufio.NewReader(in).ReadString('\n') // the end is a no
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case text := <-answer:
		return text == "y" || text == "yes", nil
	case <-ctx.Done():
		_, _ = fmt.Fprintln(out) // the line of the question has no end
		return false, errors.New("interrupted; nothing was begun")
	}
}

func clusterStatusCommand(flags *clusterFlags) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "status URL",
		Short: "Show nodes, the rebalance, jobs, and shards that are lost or join",
		Long: `Show the nodes of a cluster with what they have, the rebalance, jobs that have not completed, and shards whose files are gone
or that are being filled. The exit status is 0 when all is well, and 1 when a node is away or does not answer, when no node
leads, when a shard is lost, or when moves or jobs have failed.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := flags.config(cmd, args[0])
			if err != nil {
				return err
			}
			return clusterctl.Status(cmd.Context(), cfg, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func clusterRebalanceCommand(flags *clusterFlags) *cobra.Command {
	var o clusterctl.RebalanceOptions
	cmd := &cobra.Command{
		Use:   "rebalance URL",
		Short: "Move shards until the nodes are safe and equally full",
		Long: `Move copies of shards between nodes, while they are used, until each copy stands where it should and the nodes are about
equally full. The plan is shown first: what each node has now and will have, and its goal. On a terminal it asks before it
begins, anywhere else it needs --yes. Then it follows the moves until they have ended.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneOf(cmd, "dry-run", "stop", "resume", "cancel", "follow"); err != nil {
				return err
			}
			cfg, err := flags.config(cmd, args[0])
			if err != nil {
				return err
			}
			return clusterctl.Rebalance(cmd.Context(), cfg, o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.DryRun, "dry-run", false, "show the plan only")
	f.BoolVar(&o.Yes, "yes", false, "do not ask")
	f.BoolVar(&o.NoWait, "no-wait", false, "do not follow what was begun")
	f.BoolVar(&o.Follow, "follow", false, "begin nothing: follow the rebalance that was begun last")
	f.BoolVar(&o.Stop, "stop", false, "have the rebalance begin nothing more; what is under way comes to its end")
	f.BoolVar(&o.Resume, "resume", false, "have one that was stopped go on")
	f.BoolVar(&o.Cancel, "cancel", false, "end the rebalance and give up what is under way")
	return cmd
}

func clusterDrainCommand(flags *clusterFlags) *cobra.Command {
	var o clusterctl.DrainOptions
	cmd := &cobra.Command{
		Use:   "drain URL NODE",
		Short: "Move all shards off a node, to take it out",
		Long: `Have a node, named like divan@10.0.0.2, get no copies of shards any more, and move those that it has to other nodes. It asks and
follows like rebalance. In the end it says how to take the node out of the cluster.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneOf(cmd, "dry-run", "undo"); err != nil {
				return err
			}
			cfg, err := flags.config(cmd, args[0])
			if err != nil {
				return err
			}
			o.Node = args[1]
			return clusterctl.Drain(cmd.Context(), cfg, o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.DryRun, "dry-run", false, "show only what would move")
	f.BoolVar(&o.Yes, "yes", false, "do not ask")
	f.BoolVar(&o.Undo, "undo", false, "have the node take copies again")
	f.BoolVar(&o.NoWait, "no-wait", false, "do not follow what was begun")
	return cmd
}

// reshardCommand completes a command that makes jobs. Needed are the flags that it does not do without.
func (f *clusterFlags) reshardCommand(cmd *cobra.Command, request *clusterctl.JobRequest, needed ...string) *cobra.Command {
	noWait := false
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "do not follow the jobs")
	cmd.Args = cobra.ExactArgs(2)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		for _, name := range needed {
			if !cmd.Flags().Changed(name) {
				return usageError(cmd, fmt.Errorf("--%s is needed", name), "")
			}
		}
		cfg, err := f.config(cmd, args[0])
		if err != nil {
			return err
		}
		request.Type, request.Database = cmd.Name(), args[1]
		return clusterctl.Reshard(cmd.Context(), cfg, *request, noWait)
	}
	return cmd
}

func clusterSplitCommand(flags *clusterFlags) *cobra.Command {
	var request clusterctl.JobRequest
	cmd := &cobra.Command{
		Use:   "split URL DB",
		Short: "Cut shards of a database in two",
		Long: `Cut each shard of a database in two, while it is used: a job for each copy, which its node works on. It takes the space of the
shard once more on the disk, until the old files go.`,
	}
	cmd.Flags().StringVar(&request.Range, "range", "", "only this shard, like 00000000-7fffffff")
	cmd.Flags().StringVar(&request.Node, "node", "", "only the copies on this node")
	return flags.reshardCommand(cmd, &request)
}

func clusterMergeCommand(flags *clusterFlags) *cobra.Command {
	var request clusterctl.JobRequest
	cmd := &cobra.Command{
		Use:   "merge URL DB",
		Short: "Make one shard of neighbours",
		Long:  `Make one shard of neighbours, while they are used, on each node that has all of them.`,
	}
	cmd.Flags().StringVar(&request.Range, "range", "", "what comes out, like 00000000-ffffffff (needed)")
	cmd.Flags().StringVar(&request.Node, "node", "", "only on this node")
	return flags.reshardCommand(cmd, &request, "range")
}

func clusterMoveCommand(flags *clusterFlags) *cobra.Command {
	var request clusterctl.JobRequest
	cmd := &cobra.Command{
		Use:   "move URL DB",
		Short: "Move copies of shards to another node",
		Long:  `Move a copy of a shard to another node, while it is used. Without --range all copies of the database on the node move.`,
	}
	cmd.Flags().StringVar(&request.Range, "range", "", "only this shard, like 00000000-7fffffff")
	cmd.Flags().StringVar(&request.Node, "from", "", "the node that has it, like divan@10.0.0.1 (needed)")
	cmd.Flags().StringVar(&request.Target, "to", "", "the node that gets it (needed)")
	return flags.reshardCommand(cmd, &request, "from", "to")
}

// oneOf refuses more than one of some flags.
func oneOf(cmd *cobra.Command, names ...string) error {
	given := ""
	for _, name := range names {
		if !cmd.Flags().Changed(name) {
			continue
		}
		if given != "" {
			return usageError(cmd, fmt.Errorf("--%s and --%s do not go together", given, name), "")
		}
		given = name
	}
	return nil
}
