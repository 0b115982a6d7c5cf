// Judges logs with golang.org/x/mod/sumdb, which shares nothing with the implementation under test.
//
//	judge log [--since=FILE…] DIRECTORY ORIGIN VKEY [WITNESS]
//	                                            verifies a whole log, and that it continues what it was at older checkpoints:
//	                                            "ok SIZE", or "no PATH[, entry N]: reason" and exit code 1
//	judge check                                 for each line of the input, "inclusion SIZE ROOT INDEX LEAF HASHES" or
//	                                            "consistency OLD ROOT SIZE ROOT HASHES": "yes" or "no"
//	judge prove DIRECTORY SIZE ROOT             for each line of the input, "inclusion INDEX" or "consistency OLD": the hashes
//	judge sign KEY                              the input as a note that KEY has signed
//
// Hashes are in Base64, with commas between them.
package main

import (
	"bufio"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

func main() {
	arguments := os.Args[2:]
	var err error
	switch os.Args[1] {
	case "log":
		err = judgeLog(arguments)
	case "check":
		err = eachLine(check)
	case "prove":
		err = prove(arguments)
	case "sign":
		err = sign(arguments[0])
	default:
		err = errors.New("usage")
	}
	if err != nil {
		fmt.Println("no", err)
		os.Exit(1)
	}
}

// A directory of tiles: C2SP's paths instead of sumdb's, which have the height in them.
type directory string

func (directory) Height() int                     { return 8 }
func (directory) SaveTiles([]tlog.Tile, [][]byte) {}

func (d directory) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	var data [][]byte
	for _, tile := range tiles {
		bytes, err := d.read(path(strconv.Itoa(tile.L), tile.N, tile.W))
		if err != nil {
			return nil, err
		}
		if len(bytes) != tile.W*tlog.HashSize {
			return nil, fmt.Errorf("%s: a tile of %d bytes", path(strconv.Itoa(tile.L), tile.N, tile.W), len(bytes))
		}
		data = append(data, bytes)
	}
	return data, nil
}

func (d directory) read(name string) ([]byte, error) {
	bytes, err := os.ReadFile(filepath.Join(string(d), name))
	if err != nil {
		return nil, fmt.Errorf("%s: missing", name)
	}
	return bytes, nil
}

func path(kind string, index int64, width int) string {
	text := fmt.Sprintf("%03d", index%1000)
	for rest := index / 1000; rest > 0; rest /= 1000 {
		text = fmt.Sprintf("x%03d/%s", rest%1000, text)
	}
	if width < 256 {
		text += ".p/" + strconv.Itoa(width)
	}
	return "tile/" + kind + "/" + text
}

func judgeLog(arguments []string) error {
	var older []string
	for strings.HasPrefix(arguments[0], "--since=") {
		older = append(older, strings.TrimPrefix(arguments[0], "--since="))
		arguments = arguments[1:]
	}
	d := directory(arguments[0])
	tree, err := readCheckpoint(d, arguments[1], arguments[2], arguments[3:])
	if err != nil {
		return fmt.Errorf("checkpoint: %v", err)
	}
	if tree.N == 0 {
		if tree.Hash != sha256.Sum256(nil) {
			return errors.New("checkpoint: the root of no entries is another one")
		}
		return compareAll(tree, older, arguments[1], arguments[2], nil)
	}
	// Everything follows from the entries. TileHashReader alone would not do: before version 0.40 it passes over some tiles
	// (CVE-2026-56865), and Debian 12 has 0.7.
	var stored []tlog.Hash
	reader := tlog.HashReaderFunc(func(indexes []int64) (hashes []tlog.Hash, err error) {
		for _, index := range indexes {
			hashes = append(hashes, stored[index])
		}
		return hashes, nil
	})
	for first := int64(0); first < tree.N; first += 256 {
		width := min(256, tree.N-first)
		name := path("entries", first/256, int(width))
		bundle, err := d.read(name)
		if err != nil {
			return err
		}
		tiles, err := d.ReadTiles([]tlog.Tile{{H: 8, L: 0, N: first / 256, W: int(width)}})
		if err != nil {
			return err
		}
		for n := first; n < first+width; n++ {
			if len(bundle) < 2 || len(bundle) < 2+int(binary.BigEndian.Uint16(bundle)) {
				return fmt.Errorf("%s, entry %d: there is no such entry", name, n)
			}
			end := 2 + int(binary.BigEndian.Uint16(bundle))
			hash := tlog.RecordHash(bundle[2:end])
			if string(hash[:]) != string(tiles[0][32*(n-first):32*(n-first)+32]) {
				return fmt.Errorf("%s, entry %d: it does not fit its hash", name, n)
			}
			hashes, err := tlog.StoredHashes(n, bundle[2:end], reader)
			if err != nil {
				return err
			}
			stored = append(stored, hashes...)
			bundle = bundle[end:]
		}
		if len(bundle) > 0 {
			return fmt.Errorf("%s, entry %d: there is no such entry", name, first+width)
		}
	}
	for level := 1; tree.N>>(8*level) > 0; level++ {
		for first := int64(0); first < tree.N>>(8*level); first += 256 {
			tile := tlog.Tile{H: 8, L: level, N: first / 256, W: int(min(256, tree.N>>(8*level)-first))}
			expected, err := tlog.ReadTileData(tile, reader)
			if err != nil {
				return err
			}
			data, err := d.ReadTiles([]tlog.Tile{tile})
			if err != nil {
				return err
			}
			for place := 0; place < tile.W; place++ {
				if string(data[0][32*place:32*place+32]) != string(expected[32*place:32*place+32]) {
					return fmt.Errorf("%s: hash %d is another one", path(strconv.Itoa(level), tile.N, tile.W), place)
				}
			}
		}
	}
	root, err := tlog.TreeHash(tree.N, reader)
	if err != nil || root != tree.Hash {
		return errors.New("checkpoint: it has another root")
	}
	return compareAll(tree, older, arguments[1], arguments[2], reader)
}

// Whether the tree continues those of all older checkpoints: the last word on the log.
func compareAll(tree tlog.Tree, older []string, origin, key string, reader tlog.HashReader) error {
	for _, file := range older {
		if err := compare(tree, file, origin, key, reader); err != nil {
			return fmt.Errorf("checkpoint: %v", err)
		}
	}
	fmt.Println("ok", tree.N)
	return nil
}

// Whether the tree continues the one of an older checkpoint.
func compare(tree tlog.Tree, file, origin, key string, reader tlog.HashReader) error {
	bytes, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	older, err := openCheckpoint(bytes, origin, key, nil)
	if err != nil {
		return fmt.Errorf("%s: %v", file, err)
	}
	if older.N > tree.N {
		return fmt.Errorf("%d entries, after one of %d", tree.N, older.N)
	}
	if older.N == 0 {
		return nil
	}
	proof, err := tlog.ProveTree(tree.N, older.N, reader)
	if err != nil {
		return err
	}
	if tlog.CheckTree(proof, tree.N, tree.Hash, older.N, older.Hash) != nil {
		return fmt.Errorf("it does not continue one of %d", older.N)
	}
	return nil
}

func readCheckpoint(d directory, origin, key string, witnesses []string) (tlog.Tree, error) {
	bytes, err := d.read("checkpoint")
	if err != nil {
		return tlog.Tree{}, err
	}
	return openCheckpoint(bytes, origin, key, witnesses)
}

func openCheckpoint(bytes []byte, origin, key string, witnesses []string) (tlog.Tree, error) {
	verifiers := []note.Verifier{}
	verifier, err := note.NewVerifier(key)
	if err != nil {
		return tlog.Tree{}, err
	}
	verifiers = append(verifiers, verifier)
	for _, text := range witnesses {
		witness, err := newWitness(text)
		if err != nil {
			return tlog.Tree{}, err
		}
		verifiers = append(verifiers, witness)
	}
	opened, err := note.Open(bytes, note.VerifierList(verifiers...))
	if err != nil {
		return tlog.Tree{}, err
	}
	if len(opened.Sigs) != len(verifiers) {
		return tlog.Tree{}, fmt.Errorf("%d of %d signatures", len(opened.Sigs), len(verifiers))
	}
	lines := strings.Split(opened.Text, "\n")
	if len(lines) != 4 || lines[0] != origin {
		return tlog.Tree{}, errors.New("not the text of that log's checkpoint")
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil || size < 0 {
		return tlog.Tree{}, errors.New("no size")
	}
	root, err := tlog.ParseHash(lines[2])
	return tlog.Tree{N: size, Hash: root}, err
}

// The key of a witness (tlog-cosignature), which sumdb does not know.
type witness struct {
	name string
	hash uint32
	key  ed25519.PublicKey
}

func newWitness(text string) (witness, error) {
	parts := strings.SplitN(text, "+", 3)
	key, err := base64.StdEncoding.DecodeString(parts[2])
	if err != nil || len(key) != 33 || key[0] != 4 {
		return witness{}, errors.New("no key of a witness")
	}
	sum := sha256.Sum256(append([]byte(parts[0]+"\n"), key...))
	return witness{parts[0], binary.BigEndian.Uint32(sum[:]), key[1:]}, nil
}

func (w witness) Name() string    { return w.name }
func (w witness) KeyHash() uint32 { return w.hash }
func (w witness) Verify(text, signature []byte) bool {
	if len(signature) != 72 {
		return false
	}
	head := fmt.Sprintf("cosignature/v1\ntime %d\n", binary.BigEndian.Uint64(signature))
	return ed25519.Verify(w.key, append([]byte(head), text...), signature[8:])
}

func check(line string) (string, error) {
	words := strings.Split(line, " ")
	var size, other int64
	var root, hash tlog.Hash
	var hashes []tlog.Hash
	for place, target := range []interface{}{&other, &hash, &size, &root} {
		var err error
		switch target := target.(type) {
		case *int64:
			*target, err = strconv.ParseInt(words[1+place], 10, 64)
		case *tlog.Hash:
			*target, err = tlog.ParseHash(words[1+place])
		}
		if err != nil {
			return "", err
		}
	}
	for _, text := range strings.Split(words[5], ",") {
		if text == "" {
			continue
		}
		hash, err := tlog.ParseHash(text)
		if err != nil {
			return "", err
		}
		hashes = append(hashes, hash)
	}
	var err error
	if words[0] == "inclusion" {
		err = tlog.CheckRecord(hashes, size, root, other, hash)
	} else {
		err = tlog.CheckTree(hashes, size, root, other, hash)
	}
	if err != nil {
		return "no", nil
	}
	return "yes", nil
}

func prove(arguments []string) error {
	size, err := strconv.ParseInt(arguments[1], 10, 64)
	if err != nil {
		return err
	}
	root, err := tlog.ParseHash(arguments[2])
	if err != nil {
		return err
	}
	reader := tlog.TileHashReader(tlog.Tree{N: size, Hash: root}, directory(arguments[0]))
	return eachLine(func(line string) (string, error) {
		var kind string
		var number int64
		if _, err := fmt.Sscan(line, &kind, &number); err != nil {
			return "", err
		}
		var hashes []tlog.Hash
		var err error
		if kind == "inclusion" {
			hashes, err = tlog.ProveRecord(size, number, reader)
		} else {
			hashes, err = tlog.ProveTree(size, number, reader)
		}
		var texts []string
		for _, hash := range hashes {
			texts = append(texts, hash.String())
		}
		return strings.Join(texts, ","), err
	})
}

func sign(key string) error {
	signer, err := note.NewSigner(key)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	signed, err := note.Sign(&note.Note{Text: string(text)}, signer)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(signed)
	return err
}

func eachLine(answer func(string) (string, error)) error {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		text, err := answer(lines.Text())
		if err != nil {
			return err
		}
		fmt.Println(text)
	}
	return lines.Err()
}

func min(a, b int64) int64 {
	if a < b {
		return a
	}
	return b
}
