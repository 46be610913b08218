package archive

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
	"time"
)

// TestFormat holds the bytes of FORMAT.md. A change here is a new format.
func TestFormat(t *testing.T) {
	l := Label{KindTable, UUID{0xdb, 15: 1}, Range{1, 0x80000000}, 300}
	pack, _ := writePack(t, []item{{l, []byte("abc")}}, 9)
	_, page, err := goodPage().Encode()
	if err != nil {
		t.Fatal(err)
	}
	const (
		abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
		two = "0200000000000000000000000000000000000000000000000000000000000000"
	)
	for _, c := range []struct {
		name string
		got  []byte
		want string
	}{
		{
			"pack", pack, hexOf("DIVANPK1") + hexOf("abc") +
				"10 00 00 01 01 db000000000000000000000000000001 00000001 80000000 ac02 03" + abc + "617ca07a" +
				"000000000000000b 00000044 0000000000000001 93a8d3f5" + hexOf("DIVANEND"),
		},
		{
			"page", page, "10 05 01 ab000000000000000000000000000001 ac02" + strings.Replace(two, "02", "01", 1) +
				"01 0000fd00000000000000000000000000" + " 02" + hexOf("db") + "04 02" +
				"00000000 00000009 00 07000000000000000000000000000000 09 10 00 01 00 02 00 00 00 00 0000000000000003" +
				"01 00000000 00000014 07000000000000000000000000000000 02 01 01 01 00 08 14" + two +
				"01 04 00 08 14" + two + "01 03 00 08 14" + two +
				"0000000f 00000013 01 07000000000000000000000000000000 09 10 00 01 00 02 00 00 00 00 0000000000000003" +
				"01 00000000 00000014 07000000000000000000000000000000 02 01 01 01 00 08 14" + two + "00 00" +
				"02 0000000a 0000000e 00000014 ffffffff",
		},
		{"content", AppendContent(nil, Content{Sum{2}, 3}), two + "0000000000000003"},
	} {
		if got := hex.EncodeToString(c.got); got != strings.ReplaceAll(c.want, " ", "") {
			t.Errorf("%s is\n%s", c.name, got)
		}
	}
	key, id := &Key{1}, RunID{Seconds: 1e9, Nonce: [8]byte{0xab}}
	name := NewContentName(key)
	_, _ = name.Write([]byte("abc"))
	if got := name.Name().String(); got != "contents/d4/d4453fbf05f8142175ba3113fb66addc00f2631010851d1a6be7f7ff45e0ad17" {
		t.Error(got)
	}
	pages := []PageRef{{5, Object{Name: Name{Class: ClassPage}, Size: 6}}}
	header, err := (&Header{ID: id, Parent: &id, Index: 1, Term: 2, LeftOut: []string{"admins"}, Pages: pages}).Encode(key)
	if err != nil {
		t.Fatal(err)
	}
	repository, err := (&Repository{Made: time.Unix(1e9, 0).UTC(), Keys: []WrappedKey{{"age1", []byte("key")}}}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	mark, err := (&Mark{ID: id, Backups: []RunID{id}, Objects: []Name{PackName(UUID{0xab})}}).Encode(key)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		`{"format":1,"id":"20010909T014640Z-ab00000000000000","parent":"20010909T014640Z-ab00000000000000","raft_index"` +
			`:1,"raft_term":2,"aligned":false,"moments":0,"partial":0,"may_lack":0,"left_out":["admins"],"counts":{"databas` +
			`es":0,"shards":0,"documents":0,"deleted":0,"new_bytes":0,"all_bytes":0},"pages":[{"part":5,"name":"pages/00000` +
			`00000000000000000000000000000000000000000000000000000000000","size":6,"sha256":"000000000000000000000000000000` +
			`0000000000000000000000000000000000"}],"sha256":"ec676494dd729a95c3e673f3f38c948ce48f42bee93e0b7334f8aa789d9bbe` +
			`6a","hmac":"3914828d9a1ecbbc7acc9bb845eb48e22020542e3fe0bd2b40a9a59649bac123"}` + "\n",
		`{"format":1,"id":"00000000000000000000000000000000","made":"2001-09-09T01:46:40Z","cluster":"00000000000000000` +
			`000000000000000","keys":[{"recipient":"age1","key":"a2V5"}],"sha256":"632dd668d6387d53e682daa05e20f041fde5da62` +
			`e0017a81377afdde0b3bb9a3"}` + "\n",
		`{"format":1,"id":"20010909T014640Z-ab00000000000000","backups":["20010909T014640Z-ab00000000000000"],"objects"` +
			`:["packs/ab/ab000000000000000000000000000000"],"sha256":"a70b04d3475b6d221b35fd5fc68cc7192ff6fb3b747190c461b8b` +
			`060887f9e1e","hmac":"4881690422914388e806ed9d42784905150dad34d4fb268d3250e15fc3188d50"}` + "\n",
	} {
		if got := [][]byte{header, repository, mark}[i]; !bytes.Equal(got, []byte(want)) {
			t.Errorf("%s", got)
		}
	}
}

func hexOf(text string) string { return hex.EncodeToString([]byte(text)) }
