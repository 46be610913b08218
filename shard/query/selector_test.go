package query

import "testing"

func TestMatch(t *testing.T) {
	const doc = `{"_id":"a","_rev":"1-x","n":2.5,"s":"apple","list":[{"k":1},{"k":2}],"o":{"p":1}}`
	for selector, want := range map[string]bool{
		`{}`:                                      true,
		`{"n":2.5}`:                               true,
		`{"n":{"$gt":2,"$lt":3},"s":"apple"}`:     true,
		`{"n":{"$not":{"$gt":2}}}`:                false,
		`{"o":{"p":1}}`:                           true,
		`{"o.p":{"$exists":true}}`:                true,
		`{"x":{"$ne":1}}`:                         false,
		`{"list":{"$elemMatch":{"k":2}}}`:         true,
		`{"list.1.k":2}`:                          true,
		`{"s":{"$regex":"^app"}}`:                 true,
		`{"$or":[{"n":1},{"_id":{"$gte":"a"}}]}`:  true,
		`{"s":{"$in":["pear","apple"]}}`:          true,
		`{"$nor":[{"s":"pear"},{"missing":"x"}]}`: false,
		`{"s":{"$regex":"(?=apple)a(p)\\1le"}}`:   true,
	} {
		s, err := Parse([]byte(selector))
		if err != nil {
			t.Errorf("%s: %v", selector, err)
			continue
		}
		if got := s.Match([]byte(doc)); got != want {
			t.Errorf("%s: %v, want %v", selector, got, want)
		}
	}
}
