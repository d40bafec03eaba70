package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
)

type exportCommand struct {
	common
	Names         []string `name:"name" sep:"none" help:"Only the namespace of this name; can be given several times."`
	ResourceTypes []string `name:"resource-type" sep:"none" help:"Only namespaces that apply to this resource type; can be given several times."`
	Portable      bool     `help:"Leave the owners out, for import elsewhere: there the namespaces belong to the project of whoever imports them."`
	Dir           string   `arg:"" type:"path" help:"The folder to write to; it is created if it does not exist."`
}

// exportBatch is how many namespaces one request asks for.
const exportBatch = 20

// Run writes one file for each namespace. Files of the same names are replaced,
// others stay.
func (c *exportCommand) Run(run *session) error {
	names := slices.Compact(slices.Sorted(slices.Values(c.Names)))
	if len(names) == 0 || len(c.ResourceTypes) > 0 {
		listed, err := namespaceNames(run, c.ResourceTypes)
		if err != nil {
			return err
		}
		if len(names) > 0 {
			listed = slices.DeleteFunc(listed, func(name string) bool { return !slices.Contains(names, name) })
		}
		names = listed
	}
	files := fileNames(names)
	done := run.progress("exporting", len(names))
	defer done.end()
	for chunk := range slices.Chunk(names, exportBatch) {
		texts, err := c.texts(run, chunk)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(c.Dir, 0o755); err != nil {
			return err
		}
		for _, text := range texts {
			document, _, _ := metadef.ParseFile(text)
			if document == nil || files[document.Name] == "" {
				return errors.New("the server sent a definition file that is invalid or was not requested")
			}
			if err := os.WriteFile(filepath.Join(c.Dir, files[document.Name]), []byte(text), 0o644); err != nil {
				return err
			}
		}
		done.add(len(chunk))
	}
	done.end()
	if err := os.MkdirAll(c.Dir, 0o755); err != nil { // without namespaces, too
		return err
	}
	if run.out.isTable() {
		return run.printf("%s exported to %s\n", counted(len(names), "namespace"), c.Dir)
	}
	rows := lists.Map(names, func(name string) exportedFile { return exportedFile{filepath.Join(c.Dir, files[name]), name} })
	return list(run, columnsOf("file namespace"), rows)
}

// exportedFile is a file that was written.
type exportedFile struct {
	File      string `json:"file"`
	Namespace string `json:"namespace"`
}

// texts returns the files of namespaces: in one answer or, where that would be too
// large, one by one and in parts.
func (c *exportCommand) texts(run *session, names []string) ([]string, error) {
	answer, err := client.ExportNamespaces(run.ctx, run.api, names, nil, c.Portable)
	if err == nil {
		return answer.ExportNamespaces, nil
	}
	if !isTooComplex(err) {
		return nil, err
	}
	var texts []string
	for _, name := range names {
		text, err := c.textInParts(run, name)
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, nil
}

// exportAttempts is how often the export of a namespace that others change begins
// again.
const exportAttempts = 5

// textInParts returns the file of a namespace, read in parts.
func (c *exportCommand) textInParts(run *session, name string) (text string, err error) {
	for range exportAttempts {
		var parts []string
		if parts, err = c.parts(run, name); err == nil {
			document, _, problems := metadef.ParseParts(parts)
			if len(problems) > 0 {
				return "", fmt.Errorf("the server sent parts of a definition file that do not fit: %w", problems.Err())
			}
			return document.Text(), nil
		}
		if !isConcurrentUpdate(err) {
			break
		}
	}
	return "", err
}

// parts returns the parts of a namespace, all of one revision.
func (c *exportCommand) parts(run *session, name string) ([]string, error) {
	var parts []string
	var after *string
	for {
		answer, err := client.ExportNamespacePart(run.ctx, run.api, name, c.Portable, after)
		if err != nil {
			return nil, err
		}
		parts = append(parts, answer.ExportNamespacePart.Text)
		if after = answer.ExportNamespacePart.Next; after == nil {
			return parts, nil
		}
	}
}

// namespaceNames returns the names of the namespaces of the resource types, nil
// for all.
func namespaceNames(run *session, resourceTypes []string) ([]string, error) {
	var filter map[string]any
	if resourceTypes != nil {
		filter = map[string]any{"resourceTypes": resourceTypes}
	}
	found, err := run.named("namespace", filter, maxBegun)
	return lists.Map(found, func(of match) string { return of.name }), err
}

// maxFileName is the length in bytes of the longest name of a file, without its
// extension.
const maxFileName = 200

// fileNames returns the names of the files of namespaces, by namespace: letters
// and digits as they are, everything else as a dash. Names that are the same
// then, or differ in case only, and those that are cut, get a part of their
// hash.
func fileNames(names []string) map[string]string {
	plain := make(map[string]string, len(names))
	count := map[string]int{}
	for _, name := range names {
		plain[name] = plainName(name)
		count[strings.ToLower(plain[name])]++
	}
	files := make(map[string]string, len(names))
	for _, name := range names {
		file := plain[name]
		if count[strings.ToLower(file)] > 1 || len(file) > maxFileName {
			sum := sha256.Sum256([]byte(name))
			file = strings.ToValidUTF8(file[:min(len(file), maxFileName)], "") + "-" + hex.EncodeToString(sum[:4])
		}
		files[name] = file + ".json"
	}
	return files
}

func plainName(name string) string {
	file := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == '.' {
			return r
		}
		return '-'
	}, name)
	if file == "" || file[0] == '.' || file[0] == '-' {
		return "_" + file
	}
	return file
}
