package script

import (
	"go.uber.org/zap"
	lib "modernc.org/libquickjs"

	"divan/storage/fault"
)

// promised is what a map function returned that goes on later: an async function
// does.
type promised struct {
	fn      int
	promise value
}

// returned takes what a map function has returned.
func (v *vm) returned(fn int, r value) {
	if isObject(r) && objectAt(addressOf(r)).Fclass_id == lib.EJS_CLASS_PROMISE {
		v.promises = append(v.promises, promised{fn, r})
		return
	}
	v.free(r)
}

// settleMaps runs what the map functions of a document have put off. Rows come
// from what they do before they return: one that is emitted later, or a function
// that ends later for want of stack, would lose rows.
func (v *vm) settleMaps(document []byte) error {
	v.host.emitted = false
	v.settle()
	last := len(v.functions) - 1
	if err := v.stopped(); err != nil {
		return &FunctionError{last, err}
	}
	if v.host.emitted {
		if len(v.promises) > 0 {
			last = v.promises[0].fn
		}
		return &FunctionError{last, &fault.Error{
			Kind: fault.BadFunction, Code: "late_emit", Reason: "The script emits a row when its map function has returned already.",
		}}
	}
	for _, p := range v.promises {
		if lib.XJS_PromiseState(v.tls, v.ctx, p.promise) != lib.EJS_PROMISE_REJECTED {
			continue
		}
		e := lib.XJS_PromiseResult(v.tls, v.ctx, p.promise)
		t := v.describe(e)
		v.free(e)
		if err := t.fatal(); err != nil {
			return &FunctionError{p.fn, err}
		}
		v.set.engine.o.Logger.Info("a map function raised an exception after its rows", zap.String("error", bounded(t.Error())), zap.String("document", documentID(document)))
	}
	return nil
}

func (v *vm) dropPromises() {
	for _, p := range v.promises {
		v.free(p.promise)
	}
	v.promises = v.promises[:0]
}
