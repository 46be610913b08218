package script

import (
	"bytes"
	"time"

	"divan/shard/fairqueue"
	"divan/storage/fault"
)

// A document takes up to sixty times its text in a VM, when it is all empty objects,
// and twice that while it is made read-only: what CouchDB takes at 2 MB would not fit.
// So a VM gets more memory for the moment of a large document. There are as many such
// rooms as may be in use at a time, those of validations and those of all others: a
// write waits for no index, which may need one for long. Who waits for a room gets it in
// the turns of databases and accounts, as seats.

// The weight of a text, in bytes of memory: textWeight for each of its bytes at most,
// and less where most of them are those of strings.
const (
	textWeight   = 128
	stringWeight = 6
	valueWeight  = 256 // for each byte that begins an object or a list, or parts two values
)

// roomSize is a size of rooms.
type roomSize struct {
	bytes int64
	rooms int
}

// roomSizes are the sizes of rooms, which take 512 MB together, and those of validations
// once more.
var roomSizes = [...]roomSize{{16 << 20, 8}, {192 << 20, 2}}

// rooms are the queues for each size.
type rooms [len(roomSizes)]*fairqueue.Queue

// errNoRoom refuses a call that has waited for a room for too long.
var errNoRoom = fault.New(fault.Busy, "Other large documents take all memory that functions have for them. Try again later.")

func newRooms() (r rooms) {
	for i, size := range roomSizes {
		r[i] = fairqueue.New(fairqueue.Options{Capacity: size.rooms, Shares: true, Busy: errNoRoom})
	}
	return r
}

// room is the memory that a VM has beyond its own.
type room struct {
	turn  fairqueue.Turn
	bytes int64 // 0: it has none
}

// weigh returns about how much memory texts take at most.
func weigh(texts [][]byte) (bytesOf int64) {
	for _, text := range texts {
		values := 0
		for _, c := range []byte("{[,:") {
			values += bytes.Count(text, []byte{c})
		}
		length := int64(len(text))
		bytesOf += min(length*textWeight, length*stringWeight+int64(values)*valueWeight)
	}
	return bytesOf
}

// makeRoom lets the vm have the memory that texts may take, until the call ends. It waits
// until there is a room; that is not the script's time, and others have the turn
// meanwhile. A room that the vm has already, and that is too small, it gives back first.
func (v *vm) makeRoom(texts ...[]byte) error {
	own, length := v.set.engine.o.Memory/2, 0
	for _, text := range texts {
		length += len(text)
	}
	if int64(length)*textWeight <= own {
		return nil
	}
	need, size := weigh(texts)-own, 0
	for size < len(roomSizes)-1 && need > roomSizes[size].bytes {
		size++
	}
	if need <= 0 || roomSizes[size].bytes <= v.room.bytes {
		return nil
	}
	v.leaveRoom()
	l, began := v.lease, time.Now()
	l.turn.Leave(began)
	if err := v.set.engine.rooms[l.kind.group()][size].Acquire(v.limits.done, &v.room.turn, l.flow, began, l.patience); err != nil {
		l.turn.Abandon()
		return err
	}
	v.room.bytes = roomSizes[size].bytes
	if err := l.turn.Return(v.limits.done, time.Now()); err != nil {
		v.leaveRoom()
		return err
	}
	v.limits.deadline = v.limits.deadline.Add(time.Since(began))
	v.limitMemory()
	return nil
}

// leaveRoom gives back what makeRoom took.
func (v *vm) leaveRoom() {
	if v.room.bytes == 0 {
		return
	}
	v.room.turn.Release(time.Now())
	v.room.bytes = 0
	v.limitMemory()
}

func (v *vm) limitMemory() { v.realm.limitMemory(v.set.engine.o.Memory + v.room.bytes) }
