package db

import (
	"context"
	"net/http"
	"strconv"

	"divan/cluster"
	"divan/httpapi/core"
	"divan/httpapi/listing"
	"divan/storage/doc"
	"divan/storage/fault"
)

// getAllDBs answers GET /_all_dbs.
func getAllDBs(c *core.Call) error {
	names, err := databaseNames(c)
	if err != nil {
		return err
	}
	out := core.AppendStrings(make([]byte, 0, 16+16*len(names)), names)
	tag := core.HashOf(out)
	c.Response.SetETag(tag)
	if core.ETagMatches(c.Request, `"`+tag+`"`) {
		return c.Response.SendEmpty(http.StatusNotModified)
	}
	return c.Response.SendJSON(http.StatusOK, out)
}

// databaseNames returns the names that the view-like parameters of the query
// string select.
func databaseNames(c *core.Call) ([]string, error) {
	v, err := listing.ParseQuery(c.Query)
	if err != nil {
		return nil, err
	}
	r := cluster.NameRange{InclusiveEnd: v.InclusiveEnd, Descending: v.Descending, Skip: v.Skip, Limit: v.Limit}
	from, to := keyBound(v.StartKey), keyBound(v.EndKey)
	// The side of all names on which a key that is no string lies is known, so
	// that it bounds everything or nothing.
	lower, upper := from, to
	if v.Descending {
		lower, upper = to, from
	}
	if lower.side > 0 || upper.side < 0 {
		return nil, nil
	}
	r.StartKey, r.EndKey = from.name, to.name
	return c.API.Deps.Coordinator.Names(c.Request.Context(), r)
}

// bound is where a key lies among names: at one, or on one side of all of
// them.
type bound struct {
	name *string
	side int // with a nil name: -1 before all names, 1 after them, 0 no bound
}

// keyBound compares a JSON key with names as views do: null, booleans and
// numbers sort before strings, arrays and objects after them.
func keyBound(key []byte) bound {
	if key == nil {
		return bound{}
	}
	if name, ok := doc.Unquote(key); ok {
		return bound{name: &name}
	}
	if doc.IsArray(key) || doc.IsObject(key) {
		return bound{side: 1}
	}
	return bound{side: -1}
}

// getDBsInfo answers GET /_dbs_info: the same names as _all_dbs with what each
// database tells about itself. One that vanishes meanwhile is passed over.
func getDBsInfo(c *core.Call) error {
	names, err := databaseNames(c)
	if err != nil {
		return err
	}
	c.Response.SetETag(core.RandomHex(16))
	return streamInfos(c, names, false)
}

// postDBsInfo answers POST /_dbs_info: databases by name, in that order.
func postDBsInfo(c *core.Call) error {
	if err := c.Body.RequireJSON(); err != nil {
		return err
	}
	body, err := c.Body.ReadJSON()
	if err != nil {
		return err
	}
	names, err := parseInfoKeys(body)
	if err != nil {
		return err
	}
	if len(names) > c.Config.Chttpd.MaxDBsInfo {
		return fault.New(fault.BadRequest, "too_many_keys")
	}
	return streamInfos(c, names, true)
}

// parseInfoKeys reads {"keys":[…]}; an item that is no string names no
// database.
func parseInfoKeys(body []byte) ([]string, error) {
	var keys []byte
	err := doc.EachMember(body, func(name string, value []byte) error {
		if name == "keys" {
			keys = value
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case keys == nil:
		return nil, fault.New(fault.BadRequest, "`keys` member must exist.")
	case !doc.IsArray(keys):
		return nil, fault.New(fault.BadRequest, "`keys` member must be an array.")
	}
	var names []string
	err = doc.EachElement(keys, func(value []byte) error {
		name, ok := doc.Unquote(value)
		if !ok {
			return fault.New(fault.BadRequest, "`keys` member must be an array of strings.")
		}
		names = append(names, name)
		return nil
	})
	return names, err
}

// streamInfos writes the array of _dbs_info. With missing, a database that is
// not there is listed as such. One that cannot tell now does not keep the others
// from doing so.
func streamInfos(c *core.Call, names []string, missing bool) error {
	out := c.Stream("")
	out.Buf = append(out.Buf, '[')
	first := true
	for _, name := range names {
		info, err := infoOf(c.Request.Context(), c, name)
		gone := fault.Is(err, fault.NotFound)
		if c.Request.Context().Err() != nil {
			return err
		}
		if gone && !missing {
			continue
		}
		if !first {
			out.Buf = append(out.Buf, ',')
		}
		first = false
		out.Buf = doc.AppendString(append(out.Buf, `{"key":`...), name)
		switch {
		case gone:
			out.Buf = append(out.Buf, `,"error":"not_found"}`...)
		case err != nil:
			f := c.Describe(err)
			c.LogFailure(f, err)
			out.Buf = append(doc.AppendString(append(out.Buf, `,"error":`...), f.Name), '}')
		default:
			out.Buf = append(out.Buf, `,"info":`...)
			out.Buf = append(AppendInfo(out.Buf, info), '}')
		}
		if err := out.Spill(); err != nil {
			return err
		}
	}
	out.Buf = append(out.Buf, "]\n"...)
	return out.Close()
}

// infoOf asks a database for its information; the error for one that is not
// there is fault.NotFound.
func infoOf(ctx context.Context, c *core.Call, name string) (*cluster.Info, error) {
	var info *cluster.Info
	err := c.API.Deps.Coordinator.Do(ctx, name, func(d *cluster.DB) (err error) {
		info, err = d.Info(ctx)
		return err
	})
	return info, err
}

// AppendInfo appends database information (api.md section 8.2).
func AppendInfo(dst []byte, in *cluster.Info) []byte {
	dst = doc.AppendString(append(dst, `{"instance_start_time":`...), in.InstanceStart)
	dst = doc.AppendString(append(dst, `,"db_name":`...), in.Name)
	dst = doc.AppendString(append(dst, `,"purge_seq":`...), in.PurgeSeq)
	dst = doc.AppendString(append(dst, `,"update_seq":`...), in.UpdateSeq)
	dst = strconv.AppendInt(append(dst, `,"sizes":{"file":`...), in.SizeFile, 10)
	dst = strconv.AppendInt(append(dst, `,"external":`...), in.SizeExternal, 10)
	dst = strconv.AppendInt(append(dst, `,"active":`...), in.SizeActive, 10)
	if in.Partitioned {
		dst = append(dst, `},"props":{"partitioned":true},"doc_del_count":`...)
	} else {
		dst = append(dst, `},"props":{},"doc_del_count":`...)
	}
	dst = strconv.AppendUint(dst, in.DocDelCount, 10)
	dst = strconv.AppendUint(append(dst, `,"doc_count":`...), in.DocCount, 10)
	dst = strconv.AppendInt(append(dst, `,"disk_format_version":`...), int64(in.DiskFormat), 10)
	dst = strconv.AppendBool(append(dst, `,"compact_running":`...), in.CompactRunning)
	for _, m := range []struct {
		name  string
		value int
	}{{`,"cluster":{"q":`, in.Q}, {`,"n":`, in.N}, {`,"w":`, in.W}, {`,"r":`, in.R}} {
		dst = strconv.AppendInt(append(dst, m.name...), int64(m.value), 10)
	}
	return append(dst, "}}"...)
}
