// Package node puts one node together: it builds the floors of the program from
// the lowest up, runs them, and stops them in the reverse order. Tests start
// real nodes with it.
//
// Goroutines: Run starts one for each part that lives (storage, shard, meta,
// cluster, auth, the listeners) and waits for all of them; the part that
// listens has one per listener, and one per listener that was given up and
// whose requests are still finishing.
package node

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/zap"

	"divan/cluster/config"
	"divan/cluster/meta"
	"divan/cluster/wire"
)

// Config configures a node. Only DataDir is required.
type Config struct {
	DataDir     string   // everything that must survive; made when it does not exist
	FS          vfs.FS   // nil: the real file system
	ConfigFiles []string // ini files, or directories of them, later ones are stronger
	Environ     []string // "NAME=value", as os.Environ returns it
	Listen      string   // HOST:PORT, stronger than bind_address and port of files and environment; empty: theirs
	Admin       string   // NAME:PASSWORD of a server administrator; empty: none from here
	Version     string   // of the program, for answers
	Processors  int      // that there are; 0: as many as GOMAXPROCS says
	// StopWithin is how long a stop may take before Run returns with parts still at
	// work, as on a disk that hangs: the process must end then. 0: for ever.
	StopWithin time.Duration

	NodeName       string // name@host, stronger than NODENAME and node_name; empty: theirs
	ClusterAddress string // HOST:PORT of the cluster port, stronger than files and environment; empty: theirs

	// Listener serves instead of every address, for tests; the node closes it.
	Listener net.Listener
	// MetaInMemory keeps the metadata in memory, for tests.
	MetaInMemory bool
	// Meta is where the metadata is kept, for tests that start a node again.
	// A node that joins a cluster puts empty stores there first.
	Meta *meta.Stores
	// Network is how the node reaches others; nil: the real one.
	Network wire.Network
	// Logger is used instead of one that the configuration describes.
	Logger *zap.Logger
}

// ErrNoAdmin is the error of a node that has no server administrator and is
// told to listen beyond this machine.
var ErrNoAdmin = errors.New("no server administrator is set")

func (c Config) fileSystem() vfs.FS {
	if c.FS == nil {
		return vfs.Default
	}
	return c.FS
}

func (c Config) network() wire.Network {
	if c.Network == nil {
		return wire.RealNetwork()
	}
	return c.Network
}

// files returns the ini files to read: those that were named, else those that
// CouchDB's layout puts beside the data.
func (c Config) files() []string {
	if len(c.ConfigFiles) > 0 || c.FS != nil {
		return c.ConfigFiles
	}
	var out []string
	for _, name := range []string{"local.ini", "local.d"} {
		path := filepath.Join(c.DataDir, name)
		_, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			continue
		}
		out = append(out, path) // one that cannot be looked at is reported when it is read
	}
	return out
}

// flags returns the settings that the command line makes.
func (c Config) flags() (config.Values, error) {
	out := config.Values{}
	if c.DataDir == "" {
		return nil, errors.New("a data directory is needed")
	}
	if err := putAddress(out, "chttpd", c.Listen); err != nil {
		return nil, err
	}
	if err := putAddress(out, "cluster", c.ClusterAddress); err != nil {
		return nil, err
	}
	if c.NodeName != "" {
		if name, host, ok := strings.Cut(c.NodeName, "@"); !ok || name == "" || host == "" {
			return nil, fmt.Errorf("the name of a node must be NAME@HOST, not %q", c.NodeName)
		}
		put(out, "cluster", "node_name", c.NodeName)
	}
	if c.Admin != "" {
		name, password, ok := strings.Cut(c.Admin, ":")
		if !ok || name == "" || password == "" {
			return nil, errors.New("an administrator must be given as NAME:PASSWORD")
		}
		put(out, "admins", name, password)
	}
	return out, nil
}

// putAddress sets bind_address and port of a section; an empty address sets
// nothing.
func putAddress(out config.Values, section, address string) error {
	if address == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("the address to listen on must be HOST:PORT, not %q", address)
	}
	if host == "" {
		host = "0.0.0.0"
	}
	put(out, section, "bind_address", host)
	put(out, section, "port", port)
	return nil
}

func put(v config.Values, section, key, value string) {
	if v[section] == nil {
		v[section] = map[string]string{}
	}
	v[section][key] = value
}
