package node

import (
	"net/http"

	"divan/httpapi/core"
	"divan/storage/doc"
	"divan/storage/fault"
)

// getLostShards answers GET /_node/{name}/_lost_shards: the copies of this node
// whose files are gone and that no other node has, and those that are being filled from
// other nodes.
func getLostShards(c *core.Call) error {
	out := core.AppendStrings([]byte(`{"lost":`), c.API.Deps.Coordinator.LostCopies())
	out = core.AppendStrings(append(out, `,"joining":`...), c.API.Deps.Coordinator.JoiningCopies())
	return c.Response.SendJSON(http.StatusOK, append(out, '}'))
}

// acceptLostShards answers POST /_node/{name}/_lost_shards: {"accept": […]} gives
// up what copies held whose files are gone. They are empty afterwards.
func acceptLostShards(c *core.Call) error {
	if err := c.Body.RequireJSON(); err != nil {
		return err
	}
	value, err := c.Body.ReadValue()
	if err != nil {
		return err
	}
	var names []string
	if doc.IsObject(value) {
		err = doc.EachMember(value, func(member string, list []byte) error {
			if member != "accept" || !doc.IsArray(list) {
				return errAccept()
			}
			return doc.EachElement(list, func(element []byte) error {
				name, ok := doc.Unquote(element)
				if !ok {
					return errAccept()
				}
				names = append(names, name)
				return nil
			})
		})
	}
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return errAccept()
	}
	for _, name := range names {
		if err := c.API.Deps.Coordinator.AcceptLoss(c.Request.Context(), name); err != nil {
			return err
		}
	}
	return c.Response.SendOK(http.StatusOK)
}

func errAccept() error {
	return fault.New(fault.BadRequest, "The body must be like {\"accept\": [\"shards/00000000-7fffffff/db.1763600000\"]}.")
}
