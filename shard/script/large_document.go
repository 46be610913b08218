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
// allowances as may be in use at a time, those of validations and those of all others: a
// write waits for no index, which may need one for long. Who waits for an allowance gets it in
// the turns of databases and accounts, as slots.

// The weight of a text, in bytes of memory: textWeight for each of its bytes at most,
// and less where most of them are those of strings.
const (
	textWeight   = 128
	stringWeight = 6
	valueWeight  = 256 // for each byte that begins an object or a list, or parts two values
)

// allowanceSize is a size of allowances.
type allowanceSize struct {
	bytes      int64
	allowances int
}

// allowanceSizes are the sizes of allowances, which take 512 MB together, and those of validations
// once more.
var allowanceSizes = [...]allowanceSize{{16 << 20, 8}, {192 << 20, 2}}

// allowances are the queues for each size.
type allowances [len(allowanceSizes)]*fairqueue.Queue

// errNoAllowance refuses a call that has waited for an allowance for too long.
var errNoAllowance = fault.New(fault.Busy, "Other large documents take all memory that functions have for them. Try again later.")

func newAllowances() (r allowances) {
	for i, size := range allowanceSizes {
		r[i] = fairqueue.New(fairqueue.Options{Capacity: size.allowances, Shares: true, Busy: errNoAllowance})
	}
	return r
}

// allowance is the memory that a VM has beyond its own.
type allowance struct {
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

// takeAllowance lets the vm have the memory that texts may take, until the call ends. It waits
// until there is an allowance; that is not the script's time, and others have the turn
// meanwhile. An allowance that the vm has already, and that is too small, it gives back first.
func (v *vm) takeAllowance(texts ...[]byte) error {
	own, length := v.set.engine.o.Memory/2, 0
	for _, text := range texts {
		length += len(text)
	}
	if int64(length)*textWeight <= own {
		return nil
	}
	need, size := weigh(texts)-own, 0
	for size < len(allowanceSizes)-1 && need > allowanceSizes[size].bytes {
		size++
	}
	if need <= 0 || allowanceSizes[size].bytes <= v.allowance.bytes {
		return nil
	}
	v.returnAllowance()
	l, began := v.lease, time.Now()
	l.turn.Leave(began)
	if err := v.set.engine.allowances[l.kind.group()][size].Acquire(v.limits.done, &v.allowance.turn, l.flow, began, l.patience); err != nil {
		l.turn.Abandon()
		return err
	}
	v.allowance.bytes = allowanceSizes[size].bytes
	if err := l.turn.Return(v.limits.done, time.Now()); err != nil {
		v.returnAllowance()
		return err
	}
	v.limits.deadline = v.limits.deadline.Add(time.Since(began))
	v.limitMemory()
	return nil
}

// returnAllowance gives back what takeAllowance took.
func (v *vm) returnAllowance() {
	if v.allowance.bytes == 0 {
		return
	}
	v.allowance.turn.Release(time.Now())
	v.allowance.bytes = 0
	v.limitMemory()
}

func (v *vm) limitMemory() { v.realm.limitMemory(v.set.engine.o.Memory + v.allowance.bytes) }
