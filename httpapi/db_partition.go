package httpapi

import (
	"net/http"
	"strconv"

	"divan/cluster"
	"divan/storage/doc"
	"divan/storage/fault"
)

// noPartition answers for a path that names no partition.
func noPartition(c *call) error {
	if err := c.requirePartitioned(); err != nil {
		return err
	}
	return fault.New(fault.BadRequest, "invalid_partition_req")
}

// requirePartitioned refuses calls on partitions of a database that has none.
func (c *call) requirePartitioned() error {
	if !c.db.Meta().Partitioned {
		return fault.New(fault.BadRequest, "database is not partitioned")
	}
	return nil
}

// getPartition answers GET /{db}/_partition/{partition}.
func getPartition(c *call) error {
	in, err := c.db.Partition(c.r.Context(), c.path[2])
	if err != nil {
		return err
	}
	out := doc.AppendString([]byte(`{"db_name":`), c.dbName)
	out = strconv.AppendInt(append(out, `,"sizes":{"active":`...), in.SizeActive, 10)
	out = strconv.AppendInt(append(out, `,"external":`...), in.SizeExternal, 10)
	out = doc.AppendString(append(out, `},"partition":`...), in.Name)
	out = strconv.AppendUint(append(out, `,"doc_count":`...), in.DocCount, 10)
	out = strconv.AppendUint(append(out, `,"doc_del_count":`...), in.DocDelCount, 10)
	return c.sendJSON(http.StatusOK, append(out, '}'))
}

// nothingInPartition answers for what a partition does not have.
func nothingInPartition(c *call) error {
	if err := c.requirePartitioned(); err != nil {
		return err
	}
	if err := cluster.ValidatePartition(c.path[2]); err != nil {
		return err
	}
	return fault.New(fault.NotFound, "missing")
}
