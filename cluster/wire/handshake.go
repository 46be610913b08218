package wire

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// The handshake of a connection, in four frames, each a length of two bytes
// and that many bytes:
//
//	dialer    hello      magic, versions, purpose, nonce, own name, name of the node wanted, origin
//	listener  challenge  magic, versions, nonce
//	dialer    proof      HMAC over both frames before, or nothing when it gives up
//	listener  verdict    a byte, then HMAC over the two frames, that byte and what follows; own name, origin
//
// The dialer proves itself first, so that who merely scans the port learns nothing
// but the versions. Both proofs cover everything said, names
// and versions too, and what identifies the TLS connection below; they differ
// by a label, so that neither can be sent back as the other.
//
// The origin identifies the cluster that a node is part of. It is empty for a
// node that is part of none yet.
const (
	magic      = "divn"
	nonceSize  = 32
	proofSize  = sha256.Size
	maxName    = 255
	maxFrame   = len(magic) + 2 + 2 + 1 + nonceSize + 3*(1+maxName)
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
	wrongProof   verdict = 4 // carries no proof of the listener
	wrongOrigin  verdict = 5 // the dialer is part of another cluster
)

// Reasons for which a handshake fails that callers tell apart.
var (
	errSecret  = errors.New("the other side does not know the cluster's secret")
	errRefused = errors.New("the other side did not accept the cluster's secret")
	errNoHello = errors.New("no node of a cluster: the first bytes are wrong")
	errNoProof = errors.New("this node has no cluster secret")
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

// greeting is the content of a hello or a challenge. A challenge has no names and no origin.
type greeting struct {
	versions versions
	purpose  purpose // hello only
	nonce    [nonceSize]byte
	name     string // of the sender
	wanted   string // hello only: the node that the dialer wants; empty: any node
	origin   string // of the sender's cluster; empty: it knows of none
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

// encode returns the frame of a greeting without its length; both kinds have
// the same form.
func (g *greeting) encode() []byte {
	b := append(make([]byte, 0, maxFrame), magic...)
	b = binary.BigEndian.AppendUint16(b, g.versions.min)
	b = binary.BigEndian.AppendUint16(b, g.versions.max)
	b = append(b, byte(g.purpose))
	b = append(b, g.nonce[:]...)
	b = appendName(b, g.name)
	b = appendName(b, g.wanted)
	return appendName(b, g.origin)
}

// decodeGreeting reads what encode wrote. Bytes after it are left to later
// versions.
func decodeGreeting(b []byte) (greeting, error) {
	var g greeting
	const fixed = len(magic) + 2 + 2 + 1 + nonceSize
	if len(b) < fixed || string(b[:len(magic)]) != magic {
		return g, errNoHello
	}
	b = b[len(magic):]
	g.versions = versions{binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])}
	g.purpose = purpose(b[4])
	b = b[5:]
	copy(g.nonce[:], b)
	b = b[nonceSize:]
	var ok bool
	if g.name, b, ok = cutName(b); !ok {
		return g, errNoHello
	}
	if g.wanted, b, ok = cutName(b); !ok {
		return g, errNoHello
	}
	if g.origin, _, ok = cutName(b); !ok {
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

// transcript is everything the proofs of one handshake cover.
type transcript struct {
	key              []byte
	hello, challenge []byte
	binding          []byte // identifies the TLS connection; empty without TLS
}

// newTranscript derives the key of the proofs from the secret, so that what is
// computed here is of no use where the secret serves other ends.
func newTranscript(secret string, hello, challenge, binding []byte) (*transcript, error) {
	if secret == "" {
		return nil, errNoProof
	}
	key, err := hkdf.Key(sha256.New, []byte(secret), nil, "divan cluster port", sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("derive key: %w", err)
	}
	return &transcript{key: key, hello: hello, challenge: challenge, binding: binding}, nil
}

// proof is the HMAC of one side over the transcript; extra is the part that only that side's frame
// adds.
func (t *transcript) proof(label string, extra []byte) []byte {
	mac := hmac.New(sha256.New, t.key)
	for _, part := range [][]byte{[]byte(label), t.hello, t.challenge, t.binding} {
		var n [4]byte
		binary.BigEndian.PutUint32(n[:], uint32(len(part)))
		mac.Write(n[:])
		mac.Write(part)
	}
	mac.Write(extra)
	return mac.Sum(nil)
}

func (t *transcript) dialer() []byte { return t.proof("dialer", []byte{0}) }

// listener is the proof of a verdict and what is told with it.
func (t *transcript) listener(v verdict, told []byte) []byte {
	return t.proof("listener", append([]byte{byte(v)}, told...))
}

// identity is the name of one side of a handshake, and its knowledge.
type identity struct {
	name     string
	origin   string
	secret   string
	versions versions
	binding  []byte
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
	if id.secret == "" {
		return agreed{}, errNoProof
	}
	if len(wanted) > maxName {
		return agreed{}, fmt.Errorf("the name of a node has at most %d bytes", maxName)
	}
	own := greeting{versions: id.versions, purpose: p, name: id.name, wanted: wanted, origin: id.origin}
	if _, err := rand.Read(own.nonce[:]); err != nil {
		return agreed{}, fmt.Errorf("make nonce: %w", err)
	}
	hello := own.encode()
	if err := writeFrame(rw, hello); err != nil {
		return agreed{}, err
	}
	challenge, err := readFrame(rw)
	if err != nil {
		return agreed{}, err
	}
	other, err := decodeGreeting(challenge)
	if err != nil {
		return agreed{}, err
	}
	t, err := newTranscript(id.secret, hello, challenge, id.binding)
	if err != nil {
		return agreed{}, err
	}
	if err := writeFrame(rw, t.dialer()); err != nil {
		return agreed{}, err
	}
	v, err := id.hear(rw, t, &other)
	if err != nil {
		return agreed{}, err
	}
	return conclude(own, other, v)
}

// hear reads the listener's verdict, checks its proof, and notes who it is.
func (id identity) hear(r io.Reader, t *transcript, listener *greeting) (verdict, error) {
	b, err := readFrame(r)
	switch {
	case err != nil:
		return 0, err
	case len(b) >= 1 && verdict(b[0]) == wrongProof:
		return 0, errRefused
	case len(b) < 1+proofSize:
		return 0, errNoHello
	}
	v, told := verdict(b[0]), b[1+proofSize:]
	if !hmac.Equal(b[1:1+proofSize], t.listener(v, told)) {
		return 0, errSecret
	}
	var ok bool
	if listener.name, told, ok = cutName(told); !ok || listener.name == "" {
		return 0, errNoHello
	}
	if listener.origin, _, ok = cutName(told); !ok {
		return 0, errNoHello
	}
	return v, nil
}

// conclude returns the dialer's outcome for a proven verdict.
func conclude(own, other greeting, v verdict) (agreed, error) {
	version, ok := own.versions.common(other.versions)
	foreign := own.foreign(other)
	switch {
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
	if id.secret == "" {
		return agreed{}, errNoProof
	}
	hello, err := readFrame(rw)
	if err != nil {
		return agreed{}, err
	}
	other, err := decodeGreeting(hello)
	if err != nil {
		return agreed{}, err
	}
	if other.name == "" {
		return agreed{}, errNoHello
	}
	own := greeting{versions: id.versions, name: id.name, origin: id.origin}
	told := appendName(appendName(nil, id.name), id.origin)
	if _, err := rand.Read(own.nonce[:]); err != nil {
		return agreed{}, fmt.Errorf("make nonce: %w", err)
	}
	challenge := (&greeting{versions: own.versions, nonce: own.nonce}).encode()
	if err := writeFrame(rw, challenge); err != nil {
		return agreed{}, err
	}
	t, err := newTranscript(id.secret, hello, challenge, id.binding)
	if err != nil {
		return agreed{}, err
	}
	proof, err := readFrame(rw)
	if err != nil {
		return agreed{}, err
	}
	if !hmac.Equal(proof, t.dialer()) {
		return agreed{}, errors.Join(errSecret, writeFrame(rw, []byte{byte(wrongProof)}))
	}
	version, ok := own.versions.common(other.versions)
	v := welcome
	foreign := own.foreign(other)
	switch {
	case other.wanted != "" && other.wanted != id.name:
		v = wrongNode
	case !ok:
		v = wrongVersion
	case foreign != nil:
		v = wrongOrigin
	case !serves(other.purpose):
		v = notServed
	}
	if err := writeFrame(rw, slices.Concat([]byte{byte(v)}, t.listener(v, told), told)); err != nil {
		return agreed{}, err
	}
	if v == wrongOrigin {
		return agreed{}, foreign
	}
	if v != welcome {
		return agreed{}, fmt.Errorf("node %q refused: verdict %d", other.name, v)
	}
	return agreed{node: other.name, version: version, purpose: other.purpose, origin: other.origin, said: own.origin}, nil
}
