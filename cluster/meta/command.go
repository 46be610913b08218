package meta

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"divan/shard/ring"
	"divan/storage/fault"
)

// A command is one entry of the Raft log. Its bytes are
//
//	version (1) | kind | fields
//
// with fields in protobuf's wire format: an older program skips fields it does
// not know. A kind it does not know stops it, since guessing would let the
// copies of the state drift apart; a newer node must not propose such a kind
// while an older one is in the cluster.

const commandVersion = 1

const (
	// maxCommand bounds an entry, in bytes.
	maxCommand = 4 << 20

	// maxSecurity bounds a security object, in bytes: every node has it in
	// memory, in its log and in each of its snapshots.
	maxSecurity = 1 << 20

	// maxSetting bounds section, key and value of a configured key together, in
	// bytes.
	maxSetting = 64 << 10
)

func errTooLarge() error {
	return fault.New(fault.RequestTooLarge, "the request entity is too large")
}

// kind numbers the commands. Numbers are never reused.
type kind byte

const (
	kindInit     kind = 1
	kindCreate   kind = 2
	kindDelete   kind = 3
	kindAlter    kind = 4
	kindConfig   kind = 5
	kindPutNode  kind = 6
	kindDropNode kind = 7
	kindDrain    kind = 8 // a node gets copies of new databases, or not
	kindReplace  kind = 9 // name goes, node takes its copies

	kindDeleteExact kind = 10 // since version 2: the database of that name, if it is still the one with that id

	// Since version 3:
	kindCreateHere kind = 11 // create, if all nodes that get copies are members
	kindAlterExact kind = 12 // alter the database of that name, if it is still the one with that id
	kindTakeOver   kind = 13 // replace, also a node that is no member any more but is in a map
	kindAmendNode  kind = 14 // put node, if it is a member; whether it is draining stays as it is
	kindZone       kind = 15 // a member stands in another zone
)

var errMalformed = errors.New("malformed metadata")

// command is the sum of all kinds; the fields of other kinds are zero.
type command struct {
	kind   kind
	init   initCommand
	db     *Database // create; Suffix is the proposer's wish, Created follows it
	name   string    // delete, alter, drop node, drain, replace, zone
	id     [16]byte  // delete exact, alter exact
	alter  alterCommand
	config configCommand
	node   Node
}

// initCommand gives the cluster its identity; only the first one counts.
type initCommand struct {
	uuid, secret string
}

// alterCommand changes the settings of a database that are not nil.
type alterCommand struct {
	security         []byte
	revsLimit        *int
	purgedInfosLimit *int
}

// configOp says what happens to a key.
type configOp uint64

const (
	configPut  configOp = 1
	configHide configOp = 2
	configDrop configOp = 3
)

// configCommand changes one key of the cluster-wide configuration, or with a
// node of that node's.
type configCommand struct {
	op                        configOp
	node, section, key, value string
}

// Field numbers of commands.
const (
	fieldUUID   = 1
	fieldSecret = 2

	fieldDatabase = 1

	fieldName             = 1
	fieldSecurity         = 2
	fieldRevsLimit        = 3
	fieldPurgedInfosLimit = 4

	fieldDatabaseID = 2

	fieldAlteredID = 5 // beside the fields of an alteration

	fieldOp      = 1
	fieldNode    = 2
	fieldSection = 3
	fieldKey     = 4
	fieldValue   = 5

	fieldNodeBody = 1

	fieldDraining = 2
	fieldBy       = 3
	fieldZone     = 4
)

func (c *command) encode() []byte {
	b := []byte{commandVersion, byte(c.kind)}
	switch c.kind {
	case kindInit:
		b = appendText(b, fieldUUID, c.init.uuid)
		b = appendText(b, fieldSecret, c.init.secret)
	case kindCreate, kindCreateHere:
		b = appendBytes(b, fieldDatabase, c.db.appendBinary(nil))
	case kindDelete, kindDropNode:
		b = appendText(b, fieldName, c.name)
	case kindDeleteExact:
		b = appendBytes(appendText(b, fieldName, c.name), fieldDatabaseID, c.id[:])
	case kindAlter, kindAlterExact:
		b = appendText(b, fieldName, c.name)
		if c.kind == kindAlterExact {
			b = appendBytes(b, fieldAlteredID, c.id[:])
		}
		if c.alter.security != nil {
			b = appendBytes(b, fieldSecurity, c.alter.security)
		}
		b = appendOptional(b, fieldRevsLimit, c.alter.revsLimit)
		b = appendOptional(b, fieldPurgedInfosLimit, c.alter.purgedInfosLimit)
	case kindConfig:
		b = c.config.appendBinary(b)
	case kindPutNode, kindAmendNode:
		b = appendBytes(b, fieldNodeBody, c.node.appendBinary(nil))
	case kindDrain:
		b = appendFlag(appendText(b, fieldName, c.name), fieldDraining, c.node.Draining)
	case kindZone:
		b = appendText(appendText(b, fieldName, c.name), fieldZone, c.node.Zone)
	case kindReplace, kindTakeOver:
		b = appendText(appendText(b, fieldName, c.name), fieldBy, c.node.Name)
	}
	return b
}

func (c configCommand) appendBinary(b []byte) []byte {
	b = appendNumber(b, fieldOp, uint64(c.op))
	b = appendText(b, fieldNode, c.node)
	b = appendText(b, fieldSection, c.section)
	b = appendText(b, fieldKey, c.key)
	return appendText(b, fieldValue, c.value)
}

func decodeCommand(b []byte) (*command, error) {
	if len(b) < 2 || b[0] != commandVersion {
		return nil, fmt.Errorf("%w: version of a log entry", errMalformed)
	}
	c := &command{kind: kind(b[1])}
	var err error
	switch body := b[2:]; c.kind {
	case kindInit:
		err = eachField(body, func(f field) error {
			switch f.num {
			case fieldUUID:
				c.init.uuid = f.text()
			case fieldSecret:
				c.init.secret = f.text()
			}
			return nil
		})
	case kindCreate, kindCreateHere:
		err = c.decodeCreate(body)
	case kindDelete, kindDropNode:
		err = eachField(body, func(f field) error {
			if f.num == fieldName {
				c.name = f.text()
			}
			return nil
		})
	case kindDeleteExact:
		err = c.decodeDeleteExact(body)
	case kindAlter, kindAlterExact:
		err = c.decodeAlter(body)
	case kindConfig:
		c.config, err = decodeConfig(body)
	case kindPutNode, kindDrain, kindReplace, kindTakeOver, kindAmendNode, kindZone:
		err = c.decodeNode(body)
	default:
		err = fmt.Errorf("%w: log entry of unknown kind %d; a newer version wrote it", errMalformed, c.kind)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (c *command) decodeCreate(body []byte) error {
	err := eachField(body, func(f field) (err error) {
		if f.num == fieldDatabase {
			c.db, err = decodeDatabase(f.bytes)
		}
		return err
	})
	if err == nil && c.db == nil {
		err = fmt.Errorf("%w: creation without a database", errMalformed)
	}
	return err
}

func (c *command) decodeDeleteExact(body []byte) error {
	found := false
	err := eachField(body, func(f field) error {
		switch f.num {
		case fieldName:
			c.name = f.text()
		case fieldDatabaseID:
			found = copy(c.id[:], f.bytes) == len(c.id)
		}
		return nil
	})
	if err == nil && !found {
		err = fmt.Errorf("%w: deletion of one database without its id", errMalformed)
	}
	return err
}

func (c *command) decodeNode(body []byte) error {
	whole := c.kind == kindPutNode || c.kind == kindAmendNode
	err := eachField(body, func(f field) (err error) {
		switch {
		case whole && f.num == fieldNodeBody:
			c.node, err = decodeNode(f.bytes)
		case whole:
		case f.num == fieldName:
			c.name = f.text()
		case f.num == fieldBy && (c.kind == kindReplace || c.kind == kindTakeOver):
			c.node.Name = f.text()
		case f.num == fieldDraining && c.kind == kindDrain:
			c.node.Draining = f.number != 0
		case f.num == fieldZone && c.kind == kindZone:
			c.node.Zone = f.text()
		}
		return err
	})
	if c.kind == kindDrain || c.kind == kindZone {
		c.node.Name = c.name
	}
	if err == nil && c.node.Name == "" {
		err = fmt.Errorf("%w: command %d without a node", errMalformed, c.kind)
	}
	return err
}

func (c *command) decodeAlter(body []byte) error {
	exact := false
	err := eachField(body, func(f field) error {
		switch f.num {
		case fieldName:
			c.name = f.text()
		case fieldSecurity:
			c.alter.security = append([]byte{}, f.bytes...)
		case fieldRevsLimit:
			c.alter.revsLimit = f.intPointer()
		case fieldPurgedInfosLimit:
			c.alter.purgedInfosLimit = f.intPointer()
		case fieldAlteredID:
			exact = copy(c.id[:], f.bytes) == len(c.id)
		}
		return nil
	})
	if err == nil && c.kind == kindAlterExact && !exact {
		err = fmt.Errorf("%w: change of one database without its id", errMalformed)
	}
	return err
}

func decodeConfig(body []byte) (c configCommand, err error) {
	err = eachField(body, func(f field) error {
		switch f.num {
		case fieldOp:
			c.op = configOp(f.number)
		case fieldNode:
			c.node = f.text()
		case fieldSection:
			c.section = f.text()
		case fieldKey:
			c.key = f.text()
		case fieldValue:
			c.value = f.text()
		}
		return nil
	})
	if err == nil && (c.op < configPut || c.op > configDrop) {
		err = fmt.Errorf("%w: operation %d on the configuration", errMalformed, c.op)
	}
	return c, err
}

// Field numbers of a database and a node; FORMAT of log and snapshot alike.
const (
	dbName             = 1
	dbSuffix           = 2 // unix seconds
	dbID               = 3
	dbN                = 4
	dbPartitioned      = 5
	dbNode             = 6 // repeated: the names that shards refer to by number
	dbShard            = 7 // repeated: begin, end, numbers of nodes, all varints
	dbSecurity         = 8
	dbRevsLimit        = 9
	dbPurgedInfosLimit = 10

	nodeName     = 1
	nodeHTTP     = 2
	nodeRPC      = 3
	nodeZone     = 5 // 4 was an address for Raft alone
	nodeDraining = 6
	nodeVersion  = 7
	nodeCommands = 8
)

func (d *Database) appendBinary(b []byte) []byte {
	b = appendText(b, dbName, d.Name)
	b = appendNumber(b, dbSuffix, uint64(d.Created))
	b = appendBytes(b, dbID, d.ID[:])
	b = appendNumber(b, dbN, uint64(d.N))
	if d.Partitioned {
		b = appendNumber(b, dbPartitioned, 1)
	}
	numbers := map[string]uint64{}
	for _, s := range d.Shards {
		for _, n := range s.Nodes {
			if _, ok := numbers[n]; !ok {
				numbers[n] = uint64(len(numbers))
				b = appendText(b, dbNode, n)
			}
		}
	}
	var buf []byte
	for _, s := range d.Shards {
		buf = protowire.AppendVarint(buf[:0], uint64(s.Begin))
		buf = protowire.AppendVarint(buf, uint64(s.End))
		for _, n := range s.Nodes {
			buf = protowire.AppendVarint(buf, numbers[n])
		}
		b = appendBytes(b, dbShard, buf)
	}
	if d.Security != nil {
		b = appendBytes(b, dbSecurity, d.Security)
	}
	b = appendNumber(b, dbRevsLimit, uint64(d.RevsLimit))
	return appendNumber(b, dbPurgedInfosLimit, uint64(d.PurgedInfosLimit))
}

func decodeDatabase(b []byte) (*Database, error) {
	d := &Database{}
	var names []string
	err := eachField(b, func(f field) error {
		switch f.num {
		case dbName:
			d.Name = f.text()
		case dbSuffix:
			d.Created = int64(f.number)
			d.Suffix = suffixOf(d.Created)
		case dbID:
			copy(d.ID[:], f.bytes)
		case dbN:
			d.N = f.int()
		case dbPartitioned:
			d.Partitioned = f.number != 0
		case dbNode:
			names = append(names, f.shared())
		case dbShard:
			s, err := decodeShard(f.bytes, names)
			d.Shards = append(d.Shards, s)
			return err
		case dbSecurity:
			d.Security = append([]byte{}, f.bytes...)
		case dbRevsLimit:
			d.RevsLimit = f.int()
		case dbPurgedInfosLimit:
			d.PurgedInfosLimit = f.int()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if d.Name == "" || d.Created <= 0 || !ring.Covers(d.Shards) {
		return nil, fmt.Errorf("%w: database %q", errMalformed, d.Name)
	}
	d.Shards = d.Shards[:len(d.Shards):len(d.Shards)]
	return d, nil
}

func decodeShard(b []byte, names []string) (ring.Shard, error) {
	begin, b := takeNumber(b)
	end, b := takeNumber(b)
	if b == nil || begin > end || end > 1<<32-1 {
		return ring.Shard{}, fmt.Errorf("%w: range of a shard", errMalformed)
	}
	s := ring.Shard{Range: ring.Range{Begin: uint32(begin), End: uint32(end)}}
	for len(b) > 0 {
		var i uint64
		if i, b = takeNumber(b); b == nil || i >= uint64(len(names)) || names[i] == "" {
			return ring.Shard{}, fmt.Errorf("%w: node of a shard", errMalformed)
		}
		s.Nodes = append(s.Nodes, names[i])
	}
	return s, nil
}

func (n Node) appendBinary(b []byte) []byte {
	b = appendText(b, nodeName, n.Name)
	b = appendText(b, nodeHTTP, n.HTTP)
	b = appendText(b, nodeRPC, n.RPC)
	b = appendText(b, nodeZone, n.Zone)
	b = appendFlag(b, nodeDraining, n.Draining)
	b = appendText(b, nodeVersion, n.Version)
	return appendNumber(b, nodeCommands, n.Commands)
}

func decodeNode(b []byte) (n Node, err error) {
	err = eachField(b, func(f field) error {
		switch f.num {
		case nodeName:
			n.Name = f.shared()
		case nodeHTTP:
			n.HTTP = f.text()
		case nodeRPC:
			n.RPC = f.text()
		case nodeZone:
			n.Zone = f.shared()
		case nodeDraining:
			n.Draining = f.number != 0
		case nodeVersion:
			n.Version = f.shared()
		case nodeCommands:
			n.Commands = f.number
		}
		return nil
	})
	if err == nil && n.Name == "" {
		err = fmt.Errorf("%w: node without a name", errMalformed)
	}
	return n, err
}
