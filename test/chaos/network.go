package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// The hosts are network namespaces on one bridge; this process stands on the bridge too
// and reaches all of them, no matter what the hosts do to one another.
const (
	bridge    = "dvn-br"
	netPrefix = "10.213.0."
	ownHost   = 1
	firstHost = 11
)

// host is one network namespace.
type host struct {
	number int // from 1
	ns     string
	ip     string
}

func newHost(number int) *host {
	return &host{number: number, ns: "dvn" + strconv.Itoa(number), ip: netPrefix + strconv.Itoa(firstHost-1+number)}
}

// link is the end of its cable on the bridge.
func (h *host) link() string { return "dvn-v" + strconv.Itoa(h.number) }

// command runs a program and returns what it printed when it fails.
func command(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// commands runs lines of words one after the other.
func commands(ctx context.Context, lines ...string) error {
	for _, line := range lines {
		words := strings.Fields(line)
		if err := command(ctx, words[0], words[1:]...); err != nil {
			return err
		}
	}
	return nil
}

// createNetwork makes the bridge and the hosts, in place of any that an earlier
// run left behind.
func createNetwork(ctx context.Context, hosts []*host) error {
	removeNetwork(ctx, hosts)
	err := commands(ctx,
		"ip link add "+bridge+" type bridge",
		"ip addr add "+netPrefix+strconv.Itoa(ownHost)+"/24 dev "+bridge,
		"ip link set "+bridge+" up",
	)
	for _, h := range hosts {
		if err != nil {
			break
		}
		outer, in := h.link(), "ip netns exec "+h.ns+" "
		err = commands(ctx,
			"ip netns add "+h.ns,
			"ip link add "+outer+" type veth peer name eth0 netns "+h.ns,
			"ip link set "+outer+" master "+bridge+" up",
			in+"ip link set lo up",
			in+"ip addr add "+h.ip+"/24 dev eth0",
			in+"ip link set eth0 up",
			in+"iptables -F INPUT", // a fault that needs it comes late
		)
	}
	if err != nil {
		return errors.Join(err, errors.New("network namespaces need root and the packages iproute2 and iptables"))
	}
	return nil
}

// removeNetwork removes what is there of the hosts and the bridge.
func removeNetwork(ctx context.Context, hosts []*host) {
	for _, h := range hosts {
		// The kernel takes its time to free a namespace with what is in it.
		_ = command(ctx, "ip", "link", "del", h.link()) // not there at the first run
		_ = command(ctx, "ip", "netns", "del", h.ns)    // likewise
	}
	_ = command(ctx, "ip", "link", "del", bridge) // likewise
}

// in runs a command on a host.
func (h *host) in(ctx context.Context, line string) error {
	return commands(ctx, "ip netns exec "+h.ns+" "+line)
}

// dropFrom makes a host lose what another one sends: everything, or with a
// probability below 1 some packets.
func (h *host) dropFrom(ctx context.Context, from *host, probability float64) error {
	rule := "iptables -A INPUT -s " + from.ip
	if probability < 1 {
		rule += " -m statistic --mode random --probability " + strconv.FormatFloat(probability, 'f', 3, 64)
	}
	return h.in(ctx, rule+" -j DROP")
}

// limitRate limits what a host sends, in kilobits a second.
func (h *host) limitRate(ctx context.Context, kilobits int) error {
	return h.in(ctx, fmt.Sprintf("tc qdisc replace dev eth0 root tbf rate %dkbit burst 32kbit latency 300ms", kilobits))
}

// heal takes everything back that was done to a host's network.
func (h *host) heal(ctx context.Context) error {
	_ = h.in(ctx, "tc qdisc del dev eth0 root") // there is none unless it was slow
	return h.in(ctx, "iptables -F INPUT")
}
