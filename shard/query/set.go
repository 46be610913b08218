package query

// set is the argument of $in and $nin.
type set struct {
	kinds   uint16               // bit k: a value of that kind is in it
	numbers map[float64]struct{} // the numbers that are doubles
	large   map[string]struct{}  // the others, all integers, as they are written
	texts   map[string]struct{}  // the strings, as they are written
	keys    map[string]struct{}  // collation keys of strings, arrays and objects
	odd     bool                 // a string that is not plain is in it
}

func newSet(array []byte) (*set, error) {
	s := &set{
		numbers: map[float64]struct{}{}, large: map[string]struct{}{}, texts: map[string]struct{}{}, keys: map[string]struct{}{},
	}
	for e := (elements{text: array}); e.next(); {
		l, err := newLiteral(e.value)
		if err != nil {
			return nil, err
		}
		s.kinds |= 1 << l.kind
		switch l.kind {
		case kindNumber:
			if l.num.digits != nil {
				s.large[string(l.num.digits)] = struct{}{}
			} else {
				s.numbers[l.num.double] = struct{}{}
			}
		case kindString:
			s.texts[string(l.text)] = struct{}{}
			s.odd = s.odd || !l.plain
		default:
		}
		if l.key != nil {
			s.keys[string(l.key)] = struct{}{}
		}
	}
	return s, nil
}

// member reports whether a value equal to v is in the set.
func (w *Work) member(s *set, v []byte, raw bool) bool {
	k := kindOf(v)
	if s.kinds&(1<<k) == 0 {
		return false
	}
	switch k {
	case kindNumber:
		n := number(v)
		if n.digits != nil {
			_, ok := s.large[string(n.digits)]
			return ok
		}
		_, ok := s.numbers[n.double]
		return ok
	case kindString:
		_, ok := s.texts[string(v)]
		if ok || raw || !s.odd && plain(v) {
			return ok
		}
	case kindArray, kindObject:
	default:
		return true
	}
	_, ok := s.keys[string(w.key(v))]
	return ok
}
