package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

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
// many problems and copies there are. A copy that cannot be read is a problem
// of that copy; the others are looked at all the same.
func check(ctx context.Context, dir string, out io.Writer, verbose bool) (problems, stores int, err error) {
	if err := isDataDirectory(dir); err != nil {
		return 0, 0, err
	}
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
		if verbose {
			fmt.Fprintln(out, name)
		}
		report := func(problem string) {
			problems++
			fmt.Fprintf(out, "%s: %s\n", name, problem)
		}
		if err := checkStore(ctx, engine, name, report); err != nil {
			if ctx.Err() != nil {
				return problems, stores, ctx.Err()
			}
			report(err.Error())
		}
		stores++
	}
	return problems, stores, nil
}

// isDataDirectory keeps check from making a data directory of anything else.
func isDataDirectory(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if info.IsDir() {
		for _, name := range []string{"shards", "meta", "LOCK"} {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				return nil
			}
		}
	}
	return fmt.Errorf("%s is no data directory of Divan", dir)
}

func checkStore(ctx context.Context, engine *storage.Engine, name string, report func(problem string)) error {
	store, err := engine.Acquire(name)
	if err != nil {
		return err
	}
	defer engine.Release(store)
	return store.Check(ctx, report)
}
