package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"divan/cmd/divan/node"
	"divan/storage"
	"divan/storage/instance"
)

func checkCommand() *cobra.Command {
	var verbose bool
	cmd := &cobra.Command{
		Use:   "check DIR",
		Short: "Verify every invariant of a data directory",
		Long: `Verify every invariant of a data directory: the metadata, which shards they name against those that are there, and
between documents, sequences, bodies, attachments, counters and the purge log of each shard copy. No node may be using
the directory. The exit status is 1 when something is wrong.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			x := examination{out: cmd.OutOrStdout(), verbose: verbose}
			if err := x.check(cmd.Context(), args[0]); err != nil {
				return err
			}
			if x.problems > 0 {
				return fmt.Errorf("%d problems in %d shard copies", x.problems, x.stores)
			}
			x.print("%d shard copies, no problems\n", x.stores)
			return x.writeErr
		},
	}
	cmd.Flags().BoolVar(&verbose, "verbose", false, "name each shard copy as it is checked")
	return cmd
}

// examination holds the findings of check so far.
type examination struct {
	out      io.Writer
	verbose  bool
	problems int
	stores   int
	writeErr error
	// shards of databases that were deleted: a node removes them
	leftovers []string
}

func (x *examination) print(format string, args ...any) {
	if _, err := fmt.Fprintf(x.out, format, args...); err != nil {
		x.writeErr = err
	}
}

// check verifies all copies below dir and prints each problem. A copy that
// cannot be read is a problem of that copy; the others are looked at all the
// same.
func (x *examination) check(ctx context.Context, dir string) (err error) {
	if err := isDataDirectory(dir); err != nil {
		return err
	}
	engine, err := storage.NewEngine(storage.Options{Dir: dir, Logger: zap.NewNop(), ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	if err := leaveToOwner(dir); err != nil {
		return err
	}
	names, err := engine.Catalog().Names()
	if err != nil {
		return err
	}
	if err := x.checkMeta(engine, dir, names); err != nil {
		return err
	}
	x.checkSmall(engine)
	for _, name := range names {
		if x.verbose {
			x.print("%s\n", name)
		}
		report := func(problem string) { x.report(name, problem) }
		if slices.Contains(x.leftovers, name) {
			x.print("%s: its database was deleted, and a node removes it (no problem)\n", name)
			x.stores++
			continue
		}
		note := func(what string) { x.print("%s: %s (no problem)\n", name, what) }
		if err := checkStore(ctx, engine, name, report, note); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			report(err.Error())
		}
		x.stores++
	}
	return x.writeErr
}

// report prints a problem as one line: the first of its text.
func (x *examination) report(what, problem string) {
	x.problems++
	line, _, _ := strings.Cut(problem, "\n")
	x.print("%s: %s\n", what, line)
}

// checkMeta verifies the metadata and compares them with the shards that are
// there. What another node may know better is no problem: in a cluster copies
// come before this node hears of their database.
func (x *examination) checkMeta(engine *storage.Engine, dir string, names []string) error {
	m := node.InspectMeta(dir, names)
	for _, problem := range m.Problems {
		x.report("meta", problem)
	}
	if !m.Exists && len(names) > 0 {
		x.report("meta", "there are no metadata, so that nothing names the shards; divan recover makes them again")
	}
	if m.Exists && len(m.Problems) == 0 {
		for _, name := range m.Missing {
			switch {
			case engine.Losses().NeverMade(name):
				if m.Alone {
					x.print("%s: is not here and was not noted as made; a node that is killed leaves that, and makes it when it starts (no problem)\n", name)
				}
			case m.Alone || engine.Losses().Lost(name):
				x.report(name, "the directory is missing")
			}
		}
		for _, name := range m.Unnamed {
			switch {
			case m.IsDeleted(name):
				x.leftovers = append(x.leftovers, name)
			case m.Alone:
				x.report(name, "no database has this shard; a node would set it aside")
			}
		}
	}
	orphans, err := engine.Catalog().Orphans()
	if err == nil && len(orphans) > 0 {
		x.print("%d shards were set aside in %s; they are not examined\n", len(orphans), storage.OrphanedDir)
	}
	return err
}

// isDataDirectory keeps check from making a data directory of anything else.
func isDataDirectory(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if info.IsDir() {
		for _, name := range []string{"shards", "meta", "LOCK"} {
			_, err := os.Stat(filepath.Join(dir, name))
			if err == nil {
				return nil
			}
			if errors.Is(err, fs.ErrPermission) {
				return fmt.Errorf("%w: run it as the user of the node or as root", err)
			}
		}
	}
	return fmt.Errorf("%s is no data directory of Divan", dir)
}

func checkStore(ctx context.Context, engine *storage.Engine, name string, report, note func(what string)) error {
	store, err := engine.Acquire(name)
	if err != nil {
		return err
	}
	defer engine.Release(store)
	tellGivenUp(store.GivenUp(), report, note)
	return store.Check(ctx, report)
}

// checkSmall tells what is wrong with the instance that small shards share.
func (x *examination) checkSmall(engine *storage.Engine) {
	const name = storage.SmallDir
	given, err := engine.SmallStoresGivenUp()
	if err != nil {
		x.report(name, err.Error())
	}
	tellGivenUp(given, func(what string) { x.report(name, what) }, func(what string) { x.print("%s: %s (no problem)\n", name, what) })
}

func tellGivenUp(given *instance.GivenUp, report, note func(what string)) {
	switch {
	case given == nil:
	case given.Torn:
		note(given.String())
	default:
		report(given.String())
	}
}
