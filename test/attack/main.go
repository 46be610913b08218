// Command attack plays an attacker and a clumsy operator against processes of
// Divan: connections that never end a request, bodies that inflate, guessed
// passwords, expensive questions, a flooded cluster port, full disks, damaged
// files, SIGKILL. Meanwhile an innocent client works. Each case prints a line:
// what was done, what the innocent client has lost, and what it had to wait.
//
//	make attack
//
// A full disk needs root, or user namespaces. The first line with FAILED makes
// the exit status 1.
//
// Goroutines: one per attacking connection, and in the process of the innocent client
// one for each of its connections; a case waits for all of them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	c := config{}
	flag.DurationVar(&c.length, "duration", 8*time.Second, "how long an attack goes on")
	flag.StringVar(&c.binary, "program", "bin/divan", "the program")
	flag.StringVar(&c.dir, "dir", "data/attack", "for data and logs; emptied first")
	flag.StringVar(&c.only, "only", "", "run this case alone")
	innocent := flag.String("innocent", "", "be the innocent client of the server at this address (used by this program itself)")
	functions := flag.Bool("functions", false, "and use functions of its database")
	flag.Parse()
	if *innocent != "" {
		if err := beInnocent(*innocent, *functions); err != nil {
			fmt.Fprintln(os.Stderr, "innocent client:", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, c)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "attack:", err)
		os.Exit(1)
	}
}

// config holds the values of the flags.
type config struct {
	length      time.Duration
	binary, dir string
	only        string
}

// attack is one case; play returns what was seen besides what the innocent client
// has seen.
type attack struct {
	name, what string
	play       func(ctx context.Context, w *world) (string, error)
}

func attacks() []attack {
	return []attack{
		{"descriptors", "2,000 sockets with half a header, 256 descriptors", descriptors},
		{"slow bodies", "3,000 logins with a byte a second", slowBodies},
		{"slow readers", "200 clients that take nothing of what they asked for", slowReaders},
		{"trickled answers", "100 clients that take 4 KB in 15 s of 33 MB that a search has found", trickledAnswers},
		{"inflating bodies", "bodies of 1 MB that inflate to 1 GB", inflatingBodies},
		{"large bodies", "documents of 60 MB, 24 at a time", largeBodies},
		{"guessed names", "140 connections log in with names that nobody has", guessedNames},
		{"expensive selectors", "regular expressions that never end", selectors},
		{"repeated clauses", "queries that name a word 400 times", repeatedClauses},
		{"repeated sorts", "orders, facets and groups that name a long field 120 times", repeatedSorts},
		{"looping shows", "60 connections on a show function that never ends", loopingShows},
		{"looping views", "40 views whose functions never end", loopingViews},
		{"looping writes", "design documents and large documents that are never done being checked", loopingWrites},
		{"unread lists", "30 clients of a member that take nothing of a list", unreadLists},
		{"expensive functions", "map functions that never end, or take all memory", functions},
		{"endless rows", "14 replications of sources with rows, documents, checkpoints without an end", endlessRows},
		{"black holes", "500 replications of one account to a host that never answers", blackHoles},
		{"shared functions", "functions of two databases that are the same, with forty bad habits", isolation},
		{"large builds", "views of a million rows, and of 60 documents with a million each", largeBuilds},
		{"lost rows", "rows that no index can hold", lostRows},
		{"large documents", "documents of 600,000 objects, read as a whole", largeDocuments},
		{"conflicts", "a view finds losing revisions, and no longer when they go", conflicts},
		{"random requests", "requests that are none, and ones that are odd", randomRequests},
		{"cluster port", "handshakes without the secret, a member starts again", handshakes},
		{"SIGKILL", "killed five times while it is written to", killed},
		{"full disk", "a disk is filled, the node starts again on it", fullDisk},
		{"full disk, a build", "an index that does not fit onto 200 MB", fullDiskBuild},
		{"metadata gone", "meta/ is emptied, the databases stay", metadataGone},
		{"metadata damaged", "a byte of meta/ is another one", metadataDamaged},
		{"shard gone", "the directory of a shard is removed", shardGone},
		{"slashes in names", "databases with up to five parts in their names, a restart", slashes},
		{"memory at rest", "a bit of everything, some with much memory, then nothing", atRest},
		{"bit flipped", "a bit of the table of small shards is another one", bitFlipped},
		{"log gone", "the write-ahead log of a shard is removed", logGone},
		{"small shards gone", "one of three nodes loses the files of its small shards", smallGone},
		{"log damaged", "the last block of a write-ahead log is overwritten", logDamaged},
	}
}

// run plays the cases.
func run(ctx context.Context, c config) error {
	var err error
	if c.binary, err = filepath.Abs(c.binary); err != nil {
		return err
	}
	if c.dir, err = filepath.Abs(c.dir); err != nil {
		return err
	}
	if err := os.RemoveAll(c.dir); err != nil {
		return err
	}
	failed := 0
	for _, a := range attacks() {
		if c.only != "" && c.only != a.name || ctx.Err() != nil {
			continue
		}
		w := &world{config: c, data: filepath.Join(c.dir, filepath.Base(a.name))}
		seen, err := a.play(ctx, w)
		err = errors.Join(err, w.end(ctx))
		fmt.Printf("%-20s %s; %s%s\n", a.name, a.what, w.told(), seen)
		if err != nil {
			failed++
			fmt.Printf("%-20s FAILED: %v\n", "", err)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d cases failed", failed)
	}
	return ctx.Err()
}
