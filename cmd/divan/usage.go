package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"divan/cmd/divan/clusterctl"
)

// explainUsage makes every mistake on the command line end with the usage line of
// the command, and with the word that may have been meant.
func explainUsage(root *cobra.Command) {
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		unknown, ok := strings.CutPrefix(err.Error(), "unknown flag: ")
		if !ok {
			return usageError(cmd, err, "")
		}
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		return usageError(cmd, err, nearest(unknown, names))
	})
	explainArguments(root)
}

// explainArguments does so for the arguments of a command and of those below it.
func explainArguments(cmd *cobra.Command) {
	for _, below := range cmd.Commands() {
		explainArguments(below)
	}
	check := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		if err == nil {
			return nil
		}
		var names []string
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				names = append(names, c.Name())
			}
		}
		word := ""
		if len(args) > 0 {
			word = nearest(args[0], names)
		}
		return usageError(cmd, err, word)
	}
}

func usageError(cmd *cobra.Command, err error, meant string) error {
	text := ""
	if meant != "" {
		text = "\nDid you mean " + meant + "?"
	}
	err = fmt.Errorf("%w%s\nUsage: %s\nMore: %s --help", err, text, cmd.UseLine(), cmd.CommandPath())
	for ; cmd != nil; cmd = cmd.Parent() {
		if cmd.Name() == "cluster" {
			return &misuse{err}
		}
	}
	return err
}

// misuse is a mistake on the command line of a command whose exit status 1 says something of what it
// has looked at.
type misuse struct{ error }

// Unwrap returns the mistake.
func (m *misuse) Unwrap() error { return m.error }

// exitStatus is that of a program that ends with an error.
func exitStatus(err error) int {
	var m *misuse
	if errors.As(err, &m) || errors.Is(err, clusterctl.ErrUnattended) {
		return 2
	}
	return 1
}

// nearest returns the name that a word is most like, "" when none is like it.
func nearest(word string, names []string) string {
	best, least := "", len(word)/3+2
	for _, name := range names {
		if d := editDistance(word, name); d < least {
			best, least = name, d
		}
	}
	return best
}

// editDistance is the number of letters to insert, to delete and to replace between
// two words, as Levenshtein counts them.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		above := slices.Clone(row)
		row[0] = i + 1
		for j := range len(b) {
			replaced := above[j]
			if a[i] != b[j] {
				replaced++
			}
			row[j+1] = min(replaced, above[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}

// checkServerURL refuses what is no URL of a server: one with a path would be asked
// for something else than was meant. The text is not repeated, as it may hold a
// password.
func checkServerURL(text string) error {
	_, rest, ok := strings.Cut(text, "://")
	if !ok {
		rest = text
	}
	rest = rest[strings.LastIndexByte(rest, '@')+1:]
	host, path, _ := strings.Cut(rest, "/")
	if host == "" || path != "" || strings.ContainsAny(rest, "?#") {
		return errors.New("the URL of a server is expected, without a path: http://admin:password@127.0.0.1:5984")
	}
	return nil
}
