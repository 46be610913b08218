package quorum

import (
	"slices"
	"testing"

	"divan/storage/fault"
)

func TestFirst(t *testing.T) {
	missing, noCopy := fault.New(fault.NotFound, "missing"), fault.New(fault.NoCopy, "no_db_file")
	for _, tc := range []struct {
		name   string
		absent int
		heard  []error
		want   []Step
		err    error
	}{
		{name: "the first answer", heard: []error{nil}, want: []Step{Enough}},
		{name: "trouble", heard: []error{errDisk, errDown, nil}, want: []Step{Another, Another, Enough}, err: errDisk},
		{name: "a copy that is not there", heard: []error{errDown, noCopy}, want: []Step{Another, Another}, err: noCopy},
		{name: "a refusal", heard: []error{errDown, errConflict}, want: []Step{Another, Enough}, err: errConflict},
		{name: "an answer counts more than no copy", heard: []error{noCopy, missing}, want: []Step{Another, Enough}, err: missing},
		{name: "nothing there", heard: []error{missing}, want: []Step{Enough}, err: missing},
		{name: "not all have it", absent: 2, heard: []error{missing, nil}, want: []Step{Another, Enough}, err: missing},
		{name: "two have not", absent: 2, heard: []error{missing, errDown, missing}, want: []Step{Another, Another, Enough}, err: missing},
	} {
		t.Run(tc.name, func(t *testing.T) {
			q := NewFirst(tc.absent)
			var got []Step
			for _, err := range tc.heard {
				got = append(got, q.Take(err))
			}
			if !slices.Equal(got, tc.want) || q.Err() != tc.err { //nolint:errorlint // the very one
				t.Errorf("got %v, %v; want %v, %v", got, q.Err(), tc.want, tc.err)
			}
		})
	}
}
