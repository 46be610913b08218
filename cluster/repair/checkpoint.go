package repair

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math/bits"
	"slices"

	"divan/storage/fault"
)

// Prefix is the part of a copy's uuid that names the copy in sequences and in
// the ids of checkpoints.
type Prefix [7]byte

// PrefixOf returns the prefix of a copy's uuid.
func PrefixOf(uuid [16]byte) Prefix { return Prefix(uuid[:7]) }

// Entry says that everything the source held up to one of its sequences was
// durable in the target when that had reached one of its own.
type Entry struct {
	Source, Target uint64
}

// Checkpoint records what a source and a target are known to share. Both copies keep it as a local
// document, so that a copy that lost its end, be it restored from a backup or made anew, is
// noticed: only entries that both remember count.
type Checkpoint struct {
	Source, Target [16]byte // uuids of the copies
	History        []Entry  // newest first, both numbers falling
}

// checkpointText is the stored form.
type checkpointText struct {
	Source  string      `json:"source_uuid"`
	Target  string      `json:"target_uuid"`
	History [][2]uint64 `json:"history"`
}

// maxHistory bounds what is read: thin leaves two entries per power of two.
const maxHistory = 2 * 65

// CheckpointID returns the id of the local document that holds the checkpoint
// of a pair, in both copies. It is hidden from listings (semantics.md section
// 3).
func CheckpointID(source, target Prefix) string {
	return "_local/shard-sync-" + hashOf(source[:]) + "-" + hashOf(target[:])
}

func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

// encode returns the body of the local document.
func (c *Checkpoint) encode() []byte {
	text := checkpointText{
		Source: hex.EncodeToString(c.Source[:]), Target: hex.EncodeToString(c.Target[:]),
		History: make([][2]uint64, len(c.History)),
	}
	for i, e := range c.History {
		text.History[i] = [2]uint64{e.Source, e.Target}
	}
	out, _ := json.Marshal(text) // strings and numbers: it cannot fail
	return out
}

// DecodeCheckpoint reads the body of a checkpoint's local document. The error
// is fault.Corruption for anything that encode cannot have written.
func DecodeCheckpoint(body []byte) (Checkpoint, error) {
	var text checkpointText
	var c Checkpoint
	if err := json.Unmarshal(body, &text); err != nil {
		return Checkpoint{}, fault.Wrap(fault.Corruption, "checkpoint does not decode", err)
	}
	if !decodeUUID(&c.Source, text.Source) || !decodeUUID(&c.Target, text.Target) || len(text.History) > maxHistory {
		return Checkpoint{}, fault.New(fault.Corruption, "malformed checkpoint")
	}
	for i, pair := range text.History {
		e := Entry{Source: pair[0], Target: pair[1]}
		if i > 0 && (e.Source >= c.History[i-1].Source || e.Target > c.History[i-1].Target) {
			return Checkpoint{}, fault.New(fault.Corruption, "history of a checkpoint is not in order")
		}
		c.History = append(c.History, e)
	}
	return c, nil
}

func decodeUUID(dst *[16]byte, text string) bool {
	raw, err := hex.DecodeString(text)
	return err == nil && copy(dst[:], raw) == len(dst) && len(raw) == len(dst)
}

// position is a copy at one moment.
type position struct {
	uuid [16]byte
	seq  uint64
}

// shared returns the history from the newest entry on that both ends remember
// and that neither has fallen behind of; empty when they start from nothing.
func shared(own, other Checkpoint, source, target position) []Entry {
	for _, c := range []Checkpoint{own, other} {
		if c.Source != source.uuid || c.Target != target.uuid {
			return nil
		}
	}
	for i, e := range own.History {
		if e.Source <= source.seq && e.Target <= target.seq && slices.Contains(other.History, e) {
			return own.History[i:]
		}
	}
	return nil
}

// since is where a push goes on.
func since(history []Entry) uint64 {
	if len(history) == 0 {
		return 0
	}
	return history[0].Source
}

// extend adds the newest entry to a history and thins the rest, so that it
// stays short however long two copies live, and still holds an entry for about
// every distance back.
func extend(history []Entry, e Entry) []Entry {
	out := []Entry{e}
	for _, old := range history {
		if old.Source < e.Source && old.Target <= e.Target {
			out = append(out, old)
		}
	}
	return thin(out)
}

// thin keeps the newest and the oldest of the entries whose distance to the
// newest of all has the same number of binary digits. Of two entries that lie
// a distance of d apart from now, one is thus kept within a factor of four.
func thin(history []Entry) []Entry {
	if len(history) == 0 {
		return history
	}
	digits := func(i int) int { return bits.Len64(history[0].Source - history[i].Source) }
	out := history[:0:0]
	for i, e := range history {
		first := i == 0 || digits(i-1) != digits(i)
		last := i == len(history)-1 || digits(i+1) != digits(i)
		if first || last {
			out = append(out, e)
		}
	}
	return out
}
