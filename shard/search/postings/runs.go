package postings

// Run is the summary of its documents in the head of a run: enough to bound their scores
// without a look at them.
type Run struct {
	Docs        int    // dead ones too
	First, Last uint32 // offsets
	Highest     uint32 // frequency
	Shortest    byte   // length, as LengthByte; 0: it is not known
	value       []byte
}

// Runs walks over the runs of a list. The zero value is an empty list.
type Runs struct {
	rest []byte
	next uint32 // what the next run begins at, or behind it
	bad  bool
}

// Next returns the next run; ok is false behind the last one.
func (s *Runs) Next() (of Run, ok bool) {
	if len(s.rest) == 0 {
		return Run{}, false
	}
	r, rest, ok := cutRun(s.rest)
	if !ok || r.first < s.next {
		s.bad, s.rest = true, nil
		return Run{}, false
	}
	value := s.rest[:len(s.rest)-len(rest)]
	s.rest, s.next = rest, r.last+1
	return Run{r.docs, r.first, r.last, r.highest, r.shortest, value}, true
}

// Err returns fault.Corruption when the list was damaged; it seems to end there.
func (s *Runs) Err() error {
	if s.bad {
		return errDamaged()
	}
	return nil
}

// ResetTo begins a list anew, of the documents of a run.
func (l *List) ResetTo(r *Run) { l.Reset(r.value) }

// RunsOf returns the runs of the value of a list, which must stay as it is.
func RunsOf(value []byte) Runs { return Runs{rest: value} }
