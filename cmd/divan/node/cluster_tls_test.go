package node

import (
	"os"
	"testing"
	"time"

	"go.uber.org/zap"

	"divan/cluster/config"
)

// Certificates that are replaced count for the next connection, broken ones do
// not.
func TestClusterCertificates(t *testing.T) {
	ca := newAuthority(t)
	ca.issue("node")
	s := config.Cluster{TLSCert: ca.file("node.pem"), TLSKey: ca.file("node.key"), TLSCA: ca.file("ca.pem")}
	c, err := newClusterTLS(s, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	first := c.current()
	if c.current() != first {
		t.Error("read again without need")
	}
	touch := func(n int) {
		for _, f := range []string{"node.pem", "node.key"} {
			at := time.Now().Add(time.Duration(n) * time.Hour)
			if err := os.Chtimes(ca.file(f), at, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	ca.issue("node")
	touch(1)
	second := c.current()
	if second == first || second.Certificates[0].Leaf.SerialNumber.Int64() != 3 {
		t.Error("the new certificate is not used")
	}
	ca.write("node.pem", "NONSENSE", nil)
	touch(2)
	if c.current() != second {
		t.Error("a broken certificate replaces a good one")
	}
	if _, err := newClusterTLS(s, zap.NewNop()); err == nil {
		t.Error("a broken certificate is accepted at the start")
	}
	var none *clusterTLS
	if none, err = newClusterTLS(config.Cluster{}, zap.NewNop()); err != nil || none.current() != nil {
		t.Errorf("TLS without certificates: %v", err)
	}
}
