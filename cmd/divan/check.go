package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"divan/storage"
)

func checkCommand() *cobra.Command {
	verbose := false
	cmd := &cobra.Command{
		Use:   "check DIR",
		Short: "Verify every invariant of a data directory",
		Long: `Verify every invariant of a data directory: between documents, sequences, bodies, attachments, counters and
the purge log of each shard copy. No node may be using the directory. The exit status is 1 when something is wrong.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			problems, stores, err := check(cmd.Context(), args[0], cmd.OutOrStdout(), verbose)
			if err != nil {
				return err
			}
			if problems > 0 {
				return fmt.Errorf("%d problems in %d shard copies", problems, stores)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d shard copies, no problems\n", stores)
			return err
		},
	}
	cmd.Flags().BoolVar(&verbose, "verbose", false, "name each shard copy as it is checked")
	return cmd
}

// check verifies all copies below dir and prints each problem. It returns how
// many problems and copies there are.
func check(ctx context.Context, dir string, out io.Writer, verbose bool) (problems, stores int, err error) {
	engine, err := storage.NewEngine(storage.Options{Dir: dir, Logger: zap.NewNop()})
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	names, err := engine.Names()
	if err != nil {
		return 0, 0, err
	}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return problems, stores, err
		}
		if verbose {
			if _, err := fmt.Fprintln(out, name); err != nil {
				return problems, stores, err
			}
		}
		found, err := checkStore(ctx, engine, name, out)
		problems += found
		stores++
		if err != nil {
			return problems, stores, fmt.Errorf("%s: %w", name, err)
		}
	}
	return problems, stores, nil
}

func checkStore(ctx context.Context, engine *storage.Engine, name string, out io.Writer) (problems int, err error) {
	store, err := engine.Acquire(name)
	if err != nil {
		return 0, err
	}
	defer engine.Release(store)
	err = store.Check(ctx, func(problem string) {
		problems++
		fmt.Fprintf(out, "%s: %s\n", name, problem)
	})
	return problems, err
}
