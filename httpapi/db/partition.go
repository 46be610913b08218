package db

import (
	"net/http"
	"strconv"

	"divan/cluster"
	"divan/httpapi/core"
	"divan/storage/doc"
	"divan/storage/fault"
)

// noPartition answers for a path that names no partition.
func noPartition(c *core.Call) error {
	if err := requirePartitioned(c); err != nil {
		return err
	}
	return fault.New(fault.BadRequest, "invalid_partition_req")
}

// requirePartitioned refuses calls on partitions of a database that has none.
func requirePartitioned(c *core.Call) error {
	if !c.DB.Meta().Partitioned {
		return fault.New(fault.BadRequest, "database is not partitioned")
	}
	return nil
}

// getPartition answers GET /{db}/_partition/{partition}.
func getPartition(c *core.Call) error {
	in, err := c.DB.Partition(c.Request.Context(), c.Path[2])
	if err != nil {
		return err
	}
	out := doc.AppendString([]byte(`{"db_name":`), c.DBName)
	out = strconv.AppendInt(append(out, `,"sizes":{"active":`...), in.SizeActive, 10)
	out = strconv.AppendInt(append(out, `,"external":`...), in.SizeExternal, 10)
	out = doc.AppendString(append(out, `},"partition":`...), in.Name)
	out = strconv.AppendUint(append(out, `,"doc_count":`...), in.DocCount, 10)
	out = strconv.AppendUint(append(out, `,"doc_del_count":`...), in.DocDelCount, 10)
	return c.Response.SendJSON(http.StatusOK, append(out, '}'))
}

// nothingInPartition answers for what a partition does not have.
func nothingInPartition(c *core.Call) error {
	if err := requirePartitioned(c); err != nil {
		return err
	}
	if err := cluster.ValidatePartition(c.Path[2]); err != nil {
		return err
	}
	return fault.New(fault.NotFound, "missing")
}
