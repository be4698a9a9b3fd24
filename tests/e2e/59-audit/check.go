// check INCLUSION CONSISTENCY HEADS KEY: the proofs of sendbox audit, and the last signed head, verified by
// golang.org/x/mod/sumdb.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/ioutil"
	"os"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type proof struct {
	Record, Size int64
	OldSize      int64 `json:"old_size"`
	Root, Leaf   tlog.Hash
	OldRoot      tlog.Hash `json:"old_root"`
	Hashes       []tlog.Hash
	Line         string
}

func must(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func load(path string) (p proof) {
	b, err := ioutil.ReadFile(path)
	must(err)
	must(json.Unmarshal(b, &p))
	return
}

func main() {
	i, c := load(os.Args[1]), load(os.Args[2])
	b, err := ioutil.ReadFile(os.Args[3])
	must(err)
	b = b[bytes.LastIndex(b, []byte("\nsendbox-audit-"))+1:]
	v, err := note.NewVerifier(os.Args[4])
	must(err)
	n, err := note.Open(b, note.VerifierList(v))
	must(err)
	head := strings.Split(n.Text, "\n")
	if head[1] != fmt.Sprint(i.Size) || head[2] != i.Root.String() {
		must(fmt.Errorf("the head is %q", n.Text))
	}
	if tlog.RecordHash([]byte(i.Line)) != i.Leaf {
		must(fmt.Errorf("the leaf is another one"))
	}
	must(tlog.CheckRecord(tlog.RecordProof(i.Hashes), i.Size, i.Root, i.Record, i.Leaf))
	must(tlog.CheckTree(tlog.TreeProof(c.Hashes), c.Size, c.Root, c.OldSize, c.OldRoot))
	fmt.Println("ok", i.Size)
}
