package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/Khan/genqlient/graphql"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/metadef"
)

type exportCommand struct {
	remote
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
		listed, err := namespaceNames(run, c.client(), c.ResourceTypes)
		if err != nil {
			return c.explained(err)
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
		answer, err := client.ExportNamespaces(run.ctx, c.client(), chunk, nil, c.Portable)
		if err != nil {
			return c.explained(err)
		}
		if err := os.MkdirAll(c.Dir, 0o755); err != nil {
			return err
		}
		for _, text := range answer.ExportNamespaces {
			document, _, _ := metadef.ParseDocument(text)
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
	return run.printf("%s exported to %s\n", counted(len(names), "namespace"), c.Dir)
}

// namespaceNames returns the names of the namespaces of the resource types, nil
// for all.
func namespaceNames(run *session, from graphql.Client, resourceTypes []string) ([]string, error) {
	var names []string
	var after *string
	for {
		page, err := client.NamespaceNames(run.ctx, from, resourceTypes, after)
		if err != nil {
			return nil, err
		}
		for _, node := range page.Namespaces.Nodes {
			names = append(names, node.Name)
		}
		if !page.Namespaces.PageInfo.HasNextPage {
			return names, nil
		}
		after = page.Namespaces.PageInfo.EndCursor
	}
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
