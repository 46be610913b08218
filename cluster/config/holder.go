package config

import (
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"
)

// Level names a layer, the weakest first.
type Level int

// The layers; the package comment says what is in each.
const (
	Defaults Level = iota
	Generated
	Files
	Environment
	Flags
	ClusterWide
	Node
	Volatile
	levels
)

// Options configures a Holder. All of it may be empty.
type Options struct {
	Files   []string    // ini files; a directory stands for the ini files in it, see expand
	Environ []string    // "NAME=value", as os.Environ returns it
	Flags   Values      // from the command line
	DataDir string      // shown as database_dir and view_index_dir, over any setting; empty: not shown
	Logger  *zap.Logger // nil: nothing is logged

	// Hash returns the stored form of an administrator's password, and Verify
	// reports whether a stored form is that of a password. They are slow on
	// purpose. Without them plain-text administrators stay locked out.
	Hash   func(password string) (string, error)
	Verify func(stored, password string) bool
}

// Holder owns the layers and the current Snapshot. Its methods may be called
// from any goroutine.
type Holder struct {
	opts    Options
	log     *zap.Logger
	current atomic.Pointer[Snapshot]

	mu struct {
		sync.Mutex
		layers         [levels]Layer
		known          map[string]string // administrator → stored form that stands for the plain text in files or environment
		fallbackAdmins bool              // administrators count only because there would be none, see valuesLocked
		warned         map[Problem]bool
		subs           map[int]func(old, now *Snapshot)
		nextID         int
	}
}

// New reads the files and the environment. A file that is missing or cannot be
// read is an error.
func New(o Options) (*Holder, error) {
	h := &Holder{opts: o, log: o.Logger}
	if h.log == nil {
		h.log = zap.NewNop()
	}
	files, odd, err := readFiles(o.Files)
	if err != nil {
		return nil, err
	}
	environment, notes := fromEnviron(o.Environ)
	h.warnMalformed(odd)
	h.warnIneffective(Files, files)
	h.warnIneffective(Environment, environment)
	for _, note := range notes {
		h.log.Warn(note.text, zap.String("variable", note.variable))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.known = map[string]string{}
	h.mu.subs = map[int]func(old, now *Snapshot){}
	h.mu.layers[Defaults] = defaults()
	h.mu.layers[Files] = files
	h.mu.layers[Environment] = environment
	h.mu.layers[Flags] = layerOf(o.Flags)
	h.rebuildLocked()
	return h, nil
}

// Load returns the current configuration. It costs one atomic read.
func (h *Holder) Load() *Snapshot { return h.current.Load() }

// Subscribe has fn called after each change, with the configuration before and
// after, in the order of the changes. fn must neither block nor change the
// configuration: it runs while the next change waits. cancel ends the calls.
func (h *Holder) Subscribe(fn func(old, now *Snapshot)) (cancel func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	id := h.mu.nextID
	h.mu.nextID++
	h.mu.subs[id] = fn
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.mu.subs, id)
	}
}

// SetReplicated replaces the three layers that Raft keeps. The caller must not
// change them afterwards.
func (h *Holder) SetReplicated(generated, clusterWide, node Layer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.layers[Generated] = generated
	h.mu.layers[ClusterWide] = clusterWide
	h.mu.layers[Node] = node
	h.rebuildLocked()
}

// SetVolatile sets a value in the memory of this node only, until the next
// Reload.
func (h *Holder) SetVolatile(section, key, value string) {
	h.changeVolatile(func(l *Layer) { l.Put(section, key, value) })
}

// HideVolatile makes a key unset in the memory of this node only, until the
// next Reload.
func (h *Holder) HideVolatile(section, key string) {
	h.changeVolatile(func(l *Layer) { l.Hide(section, key) })
}

// DropVolatile forgets what SetVolatile or HideVolatile said of a key.
func (h *Holder) DropVolatile(section, key string) {
	h.changeVolatile(func(l *Layer) { l.Drop(section, key) })
}

func (h *Holder) changeVolatile(change func(*Layer)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.mu.layers[Volatile].Clone()
	change(&l)
	if reflect.DeepEqual(l, h.mu.layers[Volatile].Clone()) {
		return // no subscriber needs to look
	}
	h.mu.layers[Volatile] = l
	h.rebuildLocked()
}

// SetBelow reports whether a key would be set if only the layers weaker than
// level counted. Deleting such a key has to hide it.
func (h *Holder) SetBelow(level Level, section, key string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ok := merge(h.mu.layers[:level]...)[section][key]
	return ok
}

// Layer returns a copy of one layer as it is now.
func (h *Holder) Layer(level Level) Layer {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.layers[level].Clone()
}

// Reload reads the ini files again and forgets what is volatile. When a file
// cannot be read, nothing changes. Plain-text administrators in the files take
// effect with the next HashAdmins.
func (h *Holder) Reload() error {
	files, odd, err := readFiles(h.opts.Files)
	if err != nil {
		return err
	}
	h.warnMalformed(odd)
	h.warnIneffective(Files, files)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.layers[Files] = files
	h.mu.layers[Volatile] = Layer{}
	h.rebuildLocked()
	return nil
}

// warnMalformed tells of lines in ini files that mean nothing: each was meant to be a
// setting.
func (h *Holder) warnMalformed(odd []malformedLines) {
	for _, o := range odd {
		h.log.Warn("lines of an ini file ignored, they are neither [section] nor key = value below one",
			zap.String("file", o.file), zap.Ints("lines", o.lines))
	}
}

// rebuildLocked makes the snapshot of the layers, publishes it and tells the
// subscribers.
func (h *Holder) rebuildLocked() {
	values, fallback := h.valuesLocked()
	if fallback && !h.mu.fallbackAdmins {
		h.log.Warn("no administrator is left; those of files, environment and flags count again")
	}
	h.mu.fallbackAdmins = fallback
	applyGenerated(values, h.mu.layers[Generated].Set)
	if _, ok := values["cluster"]["n"]; ok && values["couchdb"]["single_node"] == "true" && !h.setLocked("cluster", "n") {
		values["cluster"]["n"] = "1" // a node that is to stay alone keeps one copy
	}
	if h.opts.DataDir != "" {
		if values["couchdb"] == nil {
			values["couchdb"] = map[string]string{}
		}
		values["couchdb"]["database_dir"], values["couchdb"]["view_index_dir"] = h.opts.DataDir, h.opts.DataDir
	}
	next, problems := build(values)
	old := h.current.Swap(next)
	warned := make(map[Problem]bool, len(problems))
	for _, p := range problems {
		if !h.mu.warned[p] {
			h.log.Warn("configuration value ignored, the default counts", zap.String("section", p.Section),
				zap.String("key", p.Key), zap.String("want", p.Want))
		}
		warned[p] = true
	}
	h.mu.warned = warned
	if old == nil {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(h.mu.subs)) {
		h.mu.subs[id](old, next)
	}
}

// applyGenerated sets what the cluster made up wherever a key is hidden or empty: no
// session can be signed without a secret, and a server has an identity.
func applyGenerated(values, generated Values) {
	for s, keys := range generated {
		for k, v := range keys {
			switch {
			case values[s][k] != "":
			case values[s] == nil:
				values[s] = map[string]string{k: v}
			default:
				values[s][k] = v
			}
		}
	}
}

// setLocked reports whether a layer above the defaults says something of a key.
func (h *Holder) setLocked(section, key string) bool {
	for _, l := range h.mu.layers[Defaults+1:] {
		if l.Has(section, key) {
			return true
		}
	}
	return false
}
