package indexer

import (
	"math"
	"strconv"
	"strings"

	"divan/shard/script"
	"divan/storage/doc"
)

// searchField decides what index(name, value, options) of _search makes. An error is a
// *script.Refusal.
func searchField(c *script.Call) (d decided, err error) {
	name, value := &c.Arguments[0], &c.Arguments[1]
	if err := checkName(name); err != nil {
		return d, err
	}
	switch value.Kind {
	case script.Text, script.Number, script.Boolean:
	default:
		return d, typeError("The value of a field must be a string, a number or a boolean.")
	}
	if err := checkOptions(&c.Options); err != nil {
		return d, err
	}
	d.name = name.Text
	switch d.store = stores(&c.Store); value.Kind {
	case script.Number:
		d.number(value.Number)
		d.of.Facet = d.of.Indexed && c.Facet.True
	case script.Boolean:
		d.text = strconv.AppendBool(nil, value.True)
		d.of.Indexed, d.of.Exact = true, true
	default:
		d.text = value.Text
		d.of.Facet = c.Facet.True && len(d.text) > 0
		d.of.Indexed = true
		switch c.Index.Kind {
		case script.Text:
			d.indexWord(string(c.Index.Text))
		case script.Boolean:
			d.of.Indexed = c.Index.True
		default:
		}
		if b := c.Boost.Number; d.of.Indexed && b > 0 && !math.IsInf(b, 0) && !math.IsNaN(b) {
			d.of.Boost = b
		}
	}
	return d, nil
}

// number makes the field that of a number: neither indexed nor stored when JSON has none
// for it.
func (d *decided) number(n float64) {
	if math.IsNaN(n) || math.IsInf(n, 0) {
		d.store = false
		return
	}
	d.of.IsNumber, d.of.Number, d.of.Indexed = true, n, true
}

// indexWord sets how a string is indexed, as a word says.
func (d *decided) indexWord(word string) {
	switch strings.ToLower(word) {
	case "no":
		d.of.Indexed = false
	case "not_analyzed", "not_analyzed_no_norms": // norms only change scores
		d.of.Exact = true
	}
}

// stored is the value as JSON.
func (d *decided) stored() []byte {
	if d.of.IsNumber {
		return doc.AppendFloat(nil, d.of.Number)
	}
	return doc.AppendString(nil, string(d.text))
}
