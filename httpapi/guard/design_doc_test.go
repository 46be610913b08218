package guard

import (
	"strings"
	"testing"

	"divan/shard/script"
)

func TestCheckDesignDoc(t *testing.T) {
	scripts := script.New(script.Options{})
	defer func() {
		if err := scripts.Close(); err != nil {
			t.Error(err)
		}
	}()
	compiles := func(source string) error { return scripts.CheckFunction(t.Context(), "", source) }
	for body, want := range map[string]string{
		`{"views":{"v":{"map":"function ("}}}`:                                    "Compilation of the map function in the 'v' view failed: ",
		`{"views":{"v":{"map":"42"}}}`:                                            "Compilation of the map function in the 'v' view failed: Expression does not eval to a function. (42)",
		`{"views":{"v":{"map":""}}}`:                                              "missing function",
		`{"views":{"v":{"map":"function () {}","reduce":"function (k { }"}}}`:     "Compilation of the reduce function in the 'v' view failed: ",
		`{"filters":{"f":"function ("},"validate_doc_update":"}","rewrites":"("}`: "",
		`{}`:           "",
		`{"views":{}}`: "",
		`{"views":{"v":{"map":"function () {}","fold":5}}}`:               "",
		`{"views":{"lib":{"a":1}}}`:                                       "",
		`{"language":"cobol","views":{"v":{"map":"x","reduce":"_x"}}}`:    "",
		`{"language":"query","views":{"v":{"map":{},"reduce":"_count"}}}`: "",
		`{"views":{"v":{"map":"function () {}","reduce":"_summary"}}}`:    "",
		`{"views":5}`:                                                   "`views` field must have object type",
		`{"views":{"v":{"reduce":"_count"}}}`:                           "View `v` must contain map function",
		`{"views":{"v":"f"}}`:                                           "`views.v` field must have object type",
		`{"views":{"v":{"map":5}}}`:                                     "`views.v.map` field must have string type",
		`{"views":{"v":{"map":"function () {}","reduce":null}}}`:        "`views.v.reduce` field must have string type",
		`{"views":{"lib":"x","v":{"map":"function () {}"}}}`:            "`views.lib` field must have object type",
		`{"language":1,"views":{}}`:                                     "`language` field must have string type",
		`{"options":{"local_seq":1}}`:                                   "`options.local_seq` field must have boolean type",
		`{"options":{"partitioned":true}}`:                              "partitioned option cannot be true in a non-partitioned database.",
		`{"filters":{"f":1}}`:                                           "`filters.f` field must have string or object type",
		`{"rewrites":7}`:                                                "`rewrites` field must have array or string type",
		`{"views":{"v":{"map":"function () {}","reduce":"_top_0"}}}`:    "rank value must be between 1 and 100",
		`{"views":{"v":{"map":"function () {}","reduce":"_bottom_x"}}}`: "invalid rank reducer",
		`{"views":{"v":{"map":"function () {}","reduce":"_average"}}}`:  "`_average` is not a supported reduce function.",
	} {
		got := ""
		if err := CheckDesignDoc(compiles, []byte(body), false); err != nil {
			got = err.Error()
		}
		if got != want && (!strings.HasSuffix(want, ": ") || !strings.HasPrefix(got, want)) {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}
