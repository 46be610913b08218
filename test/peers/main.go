// Command peers replicates between Divan and its real peers, PouchDB and
// pouchdb-server, in every direction, and compares what both sides hold
// afterwards: leaves, histories, bodies and attachments. It needs Node.js and
// installs the peers from the npm registry into its directory:
//
//	make peers
//
// Each case prints a line. The first difference ends it with exit status 1.
package main

import (
	"context"
	"embed"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"divan/test/child"
)

// scripts are the program that runs in Node.js, and the versions of the peers.
//
//go:embed package.json live.js
var scripts embed.FS

func main() {
	c := config{}
	flag.IntVar(&c.documents, "documents", 100_000, "documents in each direction between Divan's databases")
	flag.IntVar(&c.largest, "largest", 100, "size of the largest attachment in MB")
	flag.IntVar(&c.pouchDocuments, "pouch-documents", 10_000, "documents in each direction between Divan and pouchdb-server")
	flag.IntVar(&c.pouchLargest, "pouch-largest", 5, "size of their largest attachment in MB")
	flag.Uint64Var(&c.seed, "seed", 1, "of everything that is drawn")
	flag.StringVar(&c.binary, "program", "bin/divan", "the program")
	flag.StringVar(&c.dir, "dir", "data/peers", "for data, logs and the peers; data are emptied first")
	flag.StringVar(&c.only, "only", "", "run this case alone")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, c)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// config holds the values of the flags.
type config struct {
	documents, largest int

	pouchDocuments, pouchLargest int

	seed        uint64
	binary, dir string
	only        string
}

// run installs and starts the peers and runs the cases.
func run(ctx context.Context, c config) (err error) {
	if c.binary, err = filepath.Abs(c.binary); err != nil {
		return err
	}
	if c.dir, err = filepath.Abs(c.dir); err != nil {
		return err
	}
	modules := filepath.Join(c.dir, "npm")
	if err := child.InstallNode(ctx, modules, scripts); err != nil {
		return err
	}
	data := filepath.Join(c.dir, "data")
	if err := os.RemoveAll(data); err != nil {
		return err
	}
	w := &world{config: c, modules: modules}
	defer func() {
		for _, p := range w.processes {
			p.Kill()
		}
	}()
	for _, s := range []struct {
		p  **server
		at string
	}{{&w.one, "one"}, {&w.other, "other"}} {
		if *s.p, err = w.divan(ctx, filepath.Join(data, s.at)); err != nil {
			return err
		}
	}
	if w.pouch, err = w.pouchServer(ctx, filepath.Join(data, "pouch")); err != nil {
		return err
	}
	for _, c := range w.cases() {
		if w.only != "" && w.only != c.name {
			continue
		}
		begin := time.Now()
		detail, err := c.run(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		fmt.Printf("%-32s %s, %.1f s\n", c.name, detail, time.Since(begin).Seconds())
	}
	return nil
}
