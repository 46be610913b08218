package wire

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
)

// The handshake of a connection, in two frames inside TLS, each a length of two bytes and that
// many bytes:
//
//	dialer    hello    magic, sealed: versions, purpose, own name, name of the node wanted, origin
//	listener  verdict  magic, sealed: versions, verdict, own name, origin
//
// The key of a seal is made of the cluster's secret, the role, and the keying material of the TLS
// connection below. To open one proves that the other side knows the secret and is the other end
// of this very TLS connection: what was sealed for another connection, or by the other role, does
// not open. Each key seals one frame. A dialer whose hello does not open hears the magic alone,
// so that it learns neither who listens nor anything that is made of the secret.
//
// The origin identifies the cluster that a node is part of. It is empty for a
// node that is part of none yet.
const (
	magic      = "div1" // the last byte is the format of the seal
	sealSize   = 16
	sealZeros  = 16 // in front of what is sealed: no frame opens with two keys
	maxName    = 255
	maxFrame   = len(magic) + sealSize + sealZeros + 2 + 2 + 1 + 1 + 3*(1+maxName)
	versionMin = 1 // the oldest protocol spoken, for rolling upgrades
	versionMax = 1
)

// purpose says what a connection is for.
type purpose uint8

// The purposes.
const (
	purposeRPC    purpose = 1
	purposeRaft   purpose = 2
	purposeGossip purpose = 3
)

// String names the purpose in logs.
func (p purpose) String() string {
	switch p {
	case purposeRPC:
		return "rpc"
	case purposeRaft:
		return "raft"
	case purposeGossip:
		return "gossip"
	}
	return "unknown"
}

// verdict is the listener's last word.
type verdict uint8

// The verdicts.
const (
	welcome      verdict = 0
	wrongNode    verdict = 1 // the dialer wants another node
	wrongVersion verdict = 2
	notServed    verdict = 3 // this node takes no connections of that purpose
	wrongOrigin  verdict = 4 // the dialer is part of another cluster
)

// Reasons for which a handshake fails that callers tell apart.
var (
	errSecret  = errors.New("the other side does not know the cluster's secret")
	errRefused = errors.New("the other side did not accept the cluster's secret")
	errNoHello = errors.New("no node of a cluster: the first bytes are wrong")
	errNoProof = errors.New("this node has no cluster secret")

	// errAbandoned is of a dialer that left when TLS had begun, before its hello.
	errAbandoned = errors.New("the other side gave up the handshake")
)

// foreignError says that the other side, which knows the secret, is part of
// another cluster.
type foreignError struct{ node, origin string }

// Error implements error.
func (e *foreignError) Error() string {
	return fmt.Sprintf("node %q is part of another cluster, %s", e.node, e.origin)
}

// versions is a range of protocol versions that a node speaks.
type versions struct{ min, max uint16 }

// common returns the highest version that both speak.
func (v versions) common(o versions) (uint16, bool) {
	high := min(v.max, o.max)
	return high, high >= max(v.min, o.min)
}

// greeting is the content of a hello or a verdict.
type greeting struct {
	versions versions
	purpose  purpose // hello only
	verdict  verdict // verdict only
	name     string  // of the sender
	wanted   string  // hello only: the node that the dialer wants; empty: any node
	origin   string  // of the sender's cluster; empty: it knows of none
}

// foreign says that two greetings come from different clusters; nil when they
// do not, or one of them is of no cluster yet.
func (g *greeting) foreign(other greeting) error {
	if g.origin == "" || other.origin == "" || g.origin == other.origin {
		return nil
	}
	return &foreignError{node: other.name, origin: other.origin}
}

func appendName(dst []byte, s string) []byte {
	dst = append(dst, byte(len(s)))
	return append(dst, s...)
}

// encode returns what is sealed of a greeting; both kinds have the same form.
func (g *greeting) encode() []byte {
	b := binary.BigEndian.AppendUint16(make([]byte, 0, maxFrame), g.versions.min)
	b = binary.BigEndian.AppendUint16(b, g.versions.max)
	b = append(b, byte(g.purpose), byte(g.verdict))
	b = appendName(b, g.name)
	b = appendName(b, g.wanted)
	return appendName(b, g.origin)
}

// decodeGreeting reads what encode wrote. Bytes after it are left to later
// versions.
func decodeGreeting(b []byte) (g greeting, err error) {
	if len(b) < 6 {
		return g, errNoHello
	}
	g.versions = versions{binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])}
	g.purpose, g.verdict, b = purpose(b[4]), verdict(b[5]), b[6:]
	for _, name := range []*string{&g.name, &g.wanted, &g.origin} {
		var ok bool
		if *name, b, ok = cutName(b); !ok {
			return g, errNoHello
		}
	}
	if g.name == "" {
		return g, errNoHello
	}
	return g, nil
}

func cutName(b []byte) (name string, rest []byte, ok bool) {
	if len(b) == 0 || len(b)-1 < int(b[0]) {
		return "", nil, false
	}
	n := int(b[0])
	return string(b[1 : 1+n]), b[1+n:], true
}

// writeFrame sends one frame.
func writeFrame(w io.Writer, b []byte) error {
	frame := binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(b)), uint16(len(b)))
	if _, err := w.Write(append(frame, b...)); err != nil {
		return fmt.Errorf("send handshake: %w", err)
	}
	return nil
}

// readFrame reads one frame and not a byte more: what follows belongs to who
// gets the connection.
func readFrame(r io.Reader) ([]byte, error) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, fmt.Errorf("read handshake: %w", err)
	}
	n := int(binary.BigEndian.Uint16(head[:]))
	if n > maxFrame {
		return nil, errNoHello
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, fmt.Errorf("read handshake: %w", err)
	}
	return b, nil
}

// identity is the name of one side of a handshake, and its knowledge.
type identity struct {
	name     string
	origin   string
	secret   string
	versions versions
	binding  []byte // keying material of the TLS connection
}

// The roles, by which keys differ.
const (
	asDialer   = "divan cluster port, dialer"
	asListener = "divan cluster port, listener"
)

// key derives the key of a role from the secret, so that it is of no use where the secret serves
// other ends, and from the connection.
func (id identity) key(role string) (cipher.AEAD, error) {
	if id.secret == "" || len(id.binding) == 0 {
		return nil, errNoProof
	}
	key, err := hkdf.Key(sha256.New, []byte(id.secret), id.binding, role, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("derive key: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("derive key: %w", err)
	}
	return cipher.NewGCM(block)
}

// send seals a greeting and sends it.
func (id identity) send(w io.Writer, role string, g greeting) error {
	key, err := id.key(role)
	if err != nil {
		return err
	}
	once := make([]byte, key.NonceSize()) // the key seals nothing else
	return writeFrame(w, key.Seal([]byte(magic), once, append(make([]byte, sealZeros, maxFrame), g.encode()...), nil))
}

// hear reads a greeting of the other role. The error is errRefused for a frame that is not
// sealed, errSecret for one that does not open.
func (id identity) hear(r io.Reader, role string) (g greeting, err error) {
	key, err := id.key(role)
	if err != nil {
		return g, err
	}
	b, err := readFrame(r)
	if err != nil {
		return g, err
	}
	sealed, ok := bytes.CutPrefix(b, []byte(magic))
	switch {
	case !ok:
		return g, errNoHello
	case len(sealed) == 0:
		return g, errRefused
	}
	b, err = key.Open(nil, make([]byte, key.NonceSize()), sealed, nil)
	if err != nil || len(b) < sealZeros || subtle.ConstantTimeCompare(b[:sealZeros], make([]byte, sealZeros)) != 1 {
		return g, errSecret
	}
	return decodeGreeting(b[sealZeros:])
}

// agreed is the outcome of a handshake.
type agreed struct {
	node    string // the proven name of the other side
	version uint16
	purpose purpose
	origin  string // of the other side's cluster
	said    string // the origin that this side told
}

// stale reports whether a handshake does not hold any more because this side
// is part of the cluster origin. A Raft connection on which neither side knew
// its cluster ends too: it is made anew by sides that know.
func (a agreed) stale(origin string) bool {
	return origin != "" && origin != a.said && origin != a.origin && (a.origin != "" || a.purpose == purposeRaft)
}

// greet does the dialer's part of the handshake. wanted is the node it means to
// reach, empty when any will do.
func (id identity) greet(rw io.ReadWriter, p purpose, wanted string) (agreed, error) {
	if len(wanted) > maxName {
		return agreed{}, fmt.Errorf("the name of a node has at most %d bytes", maxName)
	}
	own := greeting{versions: id.versions, purpose: p, name: id.name, wanted: wanted, origin: id.origin}
	if err := id.send(rw, asDialer, own); err != nil {
		return agreed{}, err
	}
	other, err := id.hear(rw, asListener)
	if err != nil {
		return agreed{}, err
	}
	return conclude(own, other)
}

// conclude returns the dialer's outcome.
func conclude(own, other greeting) (agreed, error) {
	version, ok := own.versions.common(other.versions)
	foreign := own.foreign(other)
	switch v := other.verdict; {
	case v == wrongNode || own.wanted != "" && own.wanted != other.name:
		return agreed{}, fmt.Errorf("node %q answers where %q was expected", other.name, own.wanted)
	case v == wrongVersion || !ok:
		return agreed{}, fmt.Errorf("node %q speaks protocol versions %d to %d, this node %d to %d",
			other.name, other.versions.min, other.versions.max, own.versions.min, own.versions.max)
	case foreign != nil:
		return agreed{}, foreign
	case v == notServed:
		return agreed{}, fmt.Errorf("node %q takes no %s connections now", other.name, own.purpose)
	case v != welcome:
		return agreed{}, fmt.Errorf("node %q refuses the connection: verdict %d", other.name, v)
	}
	return agreed{node: other.name, version: version, purpose: own.purpose, origin: other.origin, said: own.origin}, nil
}

// admit does the listener's part of the handshake; serves tells whether this node takes connections
// of a purpose.
func (id identity) admit(rw io.ReadWriter, serves func(purpose) bool) (agreed, error) {
	other, err := id.hear(rw, asDialer)
	switch {
	case errors.Is(err, errSecret):
		return agreed{}, errors.Join(err, writeFrame(rw, []byte(magic)))
	case errors.Is(err, errRefused):
		return agreed{}, errNoHello
	case errors.Is(err, errNoHello), errors.Is(err, errNoProof), errors.Is(err, net.ErrClosed):
		return agreed{}, err
	case err != nil:
		return agreed{}, fmt.Errorf("%w: %w", errAbandoned, err)
	}
	own := greeting{versions: id.versions, name: id.name, origin: id.origin}
	version, ok := own.versions.common(other.versions)
	foreign := own.foreign(other)
	switch {
	case other.wanted != "" && other.wanted != id.name:
		own.verdict = wrongNode
	case !ok:
		own.verdict = wrongVersion
	case foreign != nil:
		own.verdict = wrongOrigin
	case !serves(other.purpose):
		own.verdict = notServed
	}
	if err := id.send(rw, asListener, own); err != nil {
		return agreed{}, err
	}
	if own.verdict == wrongOrigin {
		return agreed{}, foreign
	}
	if own.verdict != welcome {
		return agreed{}, fmt.Errorf("node %q refused: verdict %d", other.name, own.verdict)
	}
	return agreed{node: other.name, version: version, purpose: other.purpose, origin: other.origin, said: own.origin}, nil
}
