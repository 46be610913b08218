package migrate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"divan/cmd/divan/httpclient"
	"divan/httpapi/guard"
	"divan/shard/script"
	"divan/shard/search"
	"divan/shard/view/reduce"
	"divan/storage/doc"
	"divan/storage/fault"
)

// findings are lines about the design documents of a database.
type findings struct {
	different []string // what is not the same here
	failing   []string // what fails at the source as well
}

// designs looks for what is different with the design documents of a database
// here.
func (m *migration) designs(ctx context.Context, db *database) (findings, error) {
	var page struct {
		Rows []struct {
			ID  string
			Doc json.RawMessage
		}
	}
	if err := m.source.Get(ctx, path(db.name)+`/_all_docs?startkey=%22_design%2F%22&endkey=%22_design0%22&include_docs=true`, &page); err != nil {
		return findings{}, err
	}
	var out findings
	db.own, db.judges = 0, nil
	for _, row := range page.Rows {
		if row.ID == builtIn(db.name) {
			db.own++
			continue
		}
		if !db.listed {
			db.designs = append(db.designs, row.ID)
		}
		body, err := doc.Canonical(nil, row.Doc)
		if err != nil {
			return out, fmt.Errorf("%s of %s: %w", row.ID, db.name, err)
		}
		if source := doc.Lookup(body, "validate_doc_update"); source != nil && m.cfg.Continuous {
			db.judges = append(db.judges, row.ID)
		}
		found, err := examine(ctx, m.scripts, body, db.source.Props.Partitioned, m.source.modern)
		if err != nil {
			return out, fmt.Errorf("%s of %s: %w", row.ID, db.name, err)
		}
		if err := m.largeReductions(ctx, db.name, row.ID, body, &found); err != nil {
			return out, err
		}
		for _, f := range found.different {
			out.different = append(out.different, row.ID+": "+f)
		}
		for _, f := range found.failing {
			out.failing = append(out.failing, row.ID+": "+f)
		}
	}
	db.listed = true
	return out, nil
}

// examine looks at one design document. What does not compile here fails at the
// source as well when its JavaScript is modern.
func examine(ctx context.Context, scripts *script.Engine, body []byte, partitioned, modern bool) (findings, error) {
	var out findings
	compiles := func(source string) error { return scripts.CheckFunction(ctx, "", source) }
	if err := guard.CheckDesignDoc(compiles, body, partitioned); err != nil {
		out.different = append(out.different, "is refused here: "+reason(err))
	}
	for _, name := range []string{"st_indexes", "fulltext"} {
		if value := doc.Lookup(body, name); doc.IsObject(value) && string(value) != "{}" {
			out.different = append(out.different, "its indexes ("+name+") are not built here")
		}
	}
	for _, x := range search.ParseAll(body, partitioned) {
		if x.Err != nil {
			out.different = append(out.different, fmt.Sprintf("its full-text index %s is not built here: %s", x.Name, reason(x.Err)))
		}
	}
	if language, ok := doc.Unquote(doc.Lookup(body, "language")); ok && !script.Speaks(language) {
		if language != "query" {
			out.different = append(out.different, fmt.Sprintf("its language is %s: its functions do not run here", language))
		}
		return out, nil
	}
	err := eachFunction(body, func(name, source string, isView bool) error {
		err := compiles(source)
		switch {
		case err == nil:
			out.different = append(out.different, otherwise(name, source)...)
		case !fault.Is(err, fault.CompilationError):
			return err
		case !isView: // that of a view has refused the document
			effect := ""
			if name == "validate_doc_update" {
				effect = ", so that no document can be written"
			}
			if modern {
				out.failing = append(out.failing, fmt.Sprintf("%s does not compile%s: %s", name, effect, reason(err)))
				return nil
			}
			out.different = append(out.different, fmt.Sprintf("%s does not compile here%s: %s", name, effect, reason(err)))
		}
		return nil
	})
	return out, err
}

// eachFunction calls fn for each function of a design document in JavaScript.
func eachFunction(body []byte, fn func(name, source string, isView bool) error) error {
	one := func(name string, value []byte, isView bool) error {
		source, ok := doc.Unquote(value)
		if !ok || isView && strings.HasPrefix(source, "_") {
			return nil
		}
		return fn(name, source, isView)
	}
	return doc.EachMember(body, func(kind string, value []byte) error {
		switch kind {
		case "validate_doc_update", "rewrites":
			return one(kind, value, false)
		case "filters", "updates", "lists", "shows", "views", "indexes", "nouveau":
		default:
			return nil
		}
		if !doc.IsObject(value) {
			return nil
		}
		return doc.EachMember(value, func(name string, value []byte) error {
			switch kind {
			case "views", "indexes", "nouveau":
			default:
				return one(kind+"."+name, value, false)
			}
			if kind == "views" && name == "lib" || !doc.IsObject(value) {
				return nil
			}
			return doc.EachMember(value, func(part string, source []byte) error {
				switch {
				case kind == "views" && (part == "map" || part == "reduce"):
					return one("views."+name+"."+part, source, true)
				case kind != "views" && part == "index":
					return one(kind+"."+name+".index", source, false)
				}
				return nil
			})
		})
	})
}

// otherwise finds what compiles, but is not there in the JavaScript of today.
// It is a matter of old versions of SpiderMonkey.
func otherwise(name, source string) []string {
	var out []string
	for _, gone := range []struct{ pattern, what string }{
		{`\btoSource\s*\(`, "toSource()"},
		{`\buneval\s*\(`, "uneval()"},
		{`\.toLocaleFormat\s*\(`, "Date.toLocaleFormat()"},
		{`__noSuchMethod__`, "__noSuchMethod__"},
		{`\bArray\.(concat|every|filter|forEach|indexOf|join|lastIndexOf|map|pop|push|reduce|reverse|shift|slice|some|sort|splice)\s*\(`, "functions of arrays as members of Array"},
		{`\bString\.(charAt|indexOf|match|replace|search|slice|split|substr|substring|toLowerCase|toUpperCase|trim)\s*\(`, "functions of strings as members of String"},
	} {
		if regexp.MustCompile(gone.pattern).MatchString(source) {
			out = append(out, fmt.Sprintf("%s uses %s, which the JavaScript here does not have", name, gone.what))
		}
	}
	return out
}

// largeReductions finds views whose reduction is so large that reduce_limit will
// soon refuse it, or does so already. It looks at what the source has built, and
// makes it build nothing.
func (m *migration) largeReductions(ctx context.Context, db, id string, body []byte, out *findings) error {
	views := doc.Lookup(body, "views")
	if !doc.IsObject(views) {
		return nil
	}
	limit := reduce.DefaultLimit().Threshold
	return doc.EachMember(views, func(name string, view []byte) error {
		source, ok := doc.Unquote(doc.Lookup(view, "reduce"))
		if !ok || strings.HasPrefix(source, "_") && source != "_sum" { // the other built-in ones stay small
			return nil
		}
		var result struct {
			Rows []struct{ Value json.RawMessage }
		}
		err := m.source.Get(ctx, fmt.Sprintf("%s/_design/%s/_view/%s?stale=ok&limit=1",
			path(db), url.QueryEscape(strings.TrimPrefix(id, doc.DesignPrefix)), url.QueryEscape(name)), &result)
		switch {
		case httpclient.Status(err) >= http.StatusBadRequest:
			return nil // it does not work there either, or it is of a partition
		case err != nil:
			return err
		case len(result.Rows) == 0:
			return nil
		}
		value := result.Rows[0].Value
		if bytes.Contains(value, []byte(`"reduce_overflow_error"`)) || bytes.Contains(value, []byte(`"builtin_reduce_error"`)) {
			out.failing = append(out.failing, fmt.Sprintf("views.%s.reduce gives an error: %s", name, value))
		} else if len(value) > limit/2 {
			out.different = append(out.different, fmt.Sprintf("views.%s.reduce gives %d bytes; the limit is %d (reduce_limit_threshold)", name, len(value), limit))
		}
		return nil
	})
}
