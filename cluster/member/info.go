package member

import "encoding/json"

// Info is the information that a node gives about itself.
type Info struct {
	RPC      string `json:"r,omitempty"` // host:port of its cluster port
	HTTP     string `json:"h,omitempty"` // host:port of its HTTP interface
	Zone     string `json:"z,omitempty"`
	Version  string `json:"v,omitempty"` // of its program
	Draining bool   `json:"d,omitempty"` // it is about to stop
	Load     int    `json:"l,omitempty"` // requests under way
}

// encode returns the information in at most limit bytes. What does not fit is
// left out, the least needed first.
func (i Info) encode(limit int) []byte {
	for _, drop := range []func(){
		func() {}, func() { i.Version = "" }, func() { i.HTTP = "" }, func() { i.Load = 0 }, func() { i.Zone = "" }, func() { i.RPC = "" },
	} {
		drop()
		b, err := json.Marshal(i)
		if err == nil && len(b) <= limit {
			return b
		}
	}
	return nil
}

// decodeInfo returns what another node says, nothing when it is not understood.
func decodeInfo(b []byte) Info {
	var i Info
	if json.Unmarshal(b, &i) != nil {
		return Info{}
	}
	return i
}
