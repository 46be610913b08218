// Command chaos runs a cluster of real processes, each in a network namespace
// of its own, lets clients do random things while processes are killed, stopped
// and paused, their disks are full and their network is cut, lossy or slow, shards are split, merged and moved,
// and nodes drained, and checks that nothing that was acknowledged is lost. It needs root, iproute2 and iptables:
//
//	make chaos
//
// It works in rounds: faults and clients, then everything is healed, the copies
// must become the same, all nodes are stopped, their disks are read, and the
// history of the round is checked. The first round with a violation ends it
// with exit status 1; the seed is printed first and last.
//
// Data of a run with a violation stay mounted below -dir until the next run.
//
// With -outage it measures instead, on three nodes, how long requests take while
// one of them is away.
//
// Goroutines: one per client and one per process that runs; a round waits for
// all of the first kind, stopping a process for those of the second.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	c := config{}
	flag.IntVar(&c.nodes, "nodes", 5, "processes")
	flag.IntVar(&c.clients, "clients", 6, "clients")
	flag.DurationVar(&c.length, "duration", 30*time.Minute, "how long to go on; a round that has begun is finished")
	flag.DurationVar(&c.round, "round", time.Minute, "how long the clients of one round work")
	flag.DurationVar(&c.pause, "pause", 40*time.Millisecond, "what a client waits between two requests, on average")
	flag.Uint64Var(&c.seed, "seed", uint64(time.Now().UnixNano()), "of everything that is drawn")
	flag.StringVar(&c.binary, "program", "bin/divan", "the program")
	flag.StringVar(&c.dir, "dir", "data/chaos", "for data and logs; emptied first")
	flag.BoolVar(&c.outage, "outage", false, "measure instead what requests take when one of three nodes is away")
	flag.Parse()
	if c.outage {
		c.nodes = 3
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, c)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "chaos: %v\nchaos: seed %d\n", err, c.seed)
		os.Exit(1)
	}
}

// config holds the values of the flags.
type config struct {
	nodes, clients       int
	length, round, pause time.Duration
	seed                 uint64
	binary, dir          string
	outage               bool
}

// run lays the network, runs the rounds and cleans up.
func run(ctx context.Context, c config) (err error) {
	fmt.Printf("seed %d, %d nodes, %d clients, %v in rounds of %v\n", c.seed, c.nodes, c.clients, c.length, c.round)
	binary, err := filepath.Abs(c.binary)
	if err != nil {
		return err
	}
	unmountDisks(ctx, c.dir)
	if err := os.RemoveAll(c.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	var hosts []*host
	for i := range c.nodes {
		hosts = append(hosts, newHost(i+1))
	}
	defer removeNetwork(context.WithoutCancel(ctx), hosts)
	if err := createNetwork(ctx, hosts); err != nil {
		return err
	}
	var procs []*process
	var seeds []string
	for _, h := range hosts[:min(3, len(hosts))] {
		seeds = append(seeds, "divan@"+h.ip)
	}
	for _, h := range hosts {
		procs = append(procs, &process{host: h, binary: binary, dir: filepath.Join(c.dir, h.ns), seeds: strings.Join(seeds, ",")})
	}
	defer func() {
		if err == nil { // else they are looked at
			unmountDisks(context.WithoutCancel(ctx), c.dir)
		}
	}()
	for _, p := range procs {
		if err := p.mountDisk(ctx); err != nil {
			return err
		}
	}
	cl := newCluster(c, procs)
	defer cl.killAll()
	if c.outage {
		return cl.outages(ctx)
	}
	return cl.rounds(ctx)
}
