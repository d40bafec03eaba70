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

// namespacesAtOnce is the number of namespaces that one request exports or
// deletes. It is small enough for the operation time of a server.
const namespacesAtOnce = 20

// exportDefinitions writes one file for each namespace. It replaces files with
// the same names and keeps others.
func exportDefinitions(c *call) error {
	folder, names := c.text("dir"), slices.Compact(slices.Sorted(slices.Values(c.given["name"])))
	if types := c.given["resource-type"]; len(names) == 0 || len(types) > 0 {
		listed, err := c.namespaceNames(types)
		if err != nil {
			return err
		}
		names = slices.DeleteFunc(listed, func(name string) bool {
			return len(names) > 0 && !slices.Contains(names, name)
		})
	}
	files := fileNames(names)
	done := c.progress("exporting", len(names))
	for chunk := range slices.Chunk(names, namespacesAtOnce) {
		texts, err := c.definitionsOf(chunk)
		if err == nil {
			err = os.MkdirAll(folder, 0o755)
		}
		if err != nil {
			return err
		}
		for _, text := range texts {
			document, _, _ := metadef.ParseDocument(text)
			if document == nil || files[document.Name] == "" {
				return errors.New("the server sent a definition file that is invalid or was not requested")
			}
			if err := os.WriteFile(filepath.Join(folder, files[document.Name]), []byte(text), 0o644); err != nil {
				return err
			}
		}
		done.add(len(chunk))
	}
	if err := os.MkdirAll(folder, 0o755); err != nil { // even without namespaces
		return err
	}
	if c.out.isTable() {
		return c.printf("%s exported to %s\n", counted(len(names), "namespace"), folder)
	}
	return c.list("file namespace", lists.Map(names, func(name string) any {
		return map[string]any{"file": filepath.Join(folder, files[name]), "namespace": name}
	}))
}

// definitionsOf returns the files of namespaces from one answer. If the answer
// would be too large, it exports the namespaces one by one.
func (c *call) definitionsOf(names []string) (texts []string, err error) {
	answer, err := client.ExportNamespaces(c.ctx, c.api, names, nil, c.is("portable"))
	if err == nil {
		return answer.ExportNamespaces, nil
	}
	if client.Code(err) != client.QueryTooComplex {
		return nil, err
	}
	for _, name := range names {
		answer, err := client.ExportNamespaces(client.WithFileExport(c.ctx), c.api,
			[]string{name}, nil, c.is("portable"))
		if err != nil {
			return nil, err
		}
		texts = append(texts, answer.ExportNamespaces...)
	}
	return texts, nil
}

// namespaceNames returns the names of the namespaces for the resource types, or
// of all for nil.
func (c *call) namespaceNames(resourceTypes []string) ([]string, error) {
	var filter map[string]any
	if resourceTypes != nil {
		filter = map[string]any{"resourceTypes": resourceTypes}
	}
	found, err := c.named("namespace", filter, maxBegun)
	return lists.Map(found, func(of match) string { return of.name }), err
}

// maxFileName is the maximum length of a file name in bytes, without its hash
// and its extension.
const maxFileName = 200

// fileNames returns the file names of namespaces. It keeps letters, digits,
// dots and underscores, and replaces everything else with a dash. A name gets a
// part of its hash if it is cut, or equals another name ignoring case, and an
// underscore before a dot or dash at its beginning.
func fileNames(names []string) map[string]string {
	count, files := map[string]int{}, make(map[string]string, len(names))
	for _, name := range names {
		count[strings.ToLower(plainName(name))]++
	}
	for _, name := range names {
		file := plainName(name)
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

// unloadDefinitions deletes namespaces and reports on each. A namespace that
// stays, such as a protected one, makes the command fail. To delete all
// namespaces, it sends several requests with a transaction each, so that no
// request exceeds the operation time.
func unloadDefinitions(c *call) error {
	names, types, origin := c.given["names"], c.given["resource-type"], c.given["origin"]
	isChosen := len(names)+len(types)+len(origin) > 0
	switch {
	case c.is("all") && isChosen:
		return usagef("--all cannot be combined with names, --resource-type and --origin")
	case !c.is("all") && !isChosen:
		return usagef("nothing to unload: name namespaces, --resource-type, --origin or --all")
	}
	if err := c.confirmUnload(names, types, origin); err != nil {
		return err
	}
	input := map[string]any{"includeProtected": c.is("include-protected")}
	for name, list := range map[string][]string{"names": names, "resourceTypes": types} {
		if list != nil {
			input[name] = list
		}
	}
	if origin != nil {
		input["origin"] = origin[0]
	}
	inputs := []map[string]any{input}
	if c.is("all") {
		all, err := c.namespaceNames(nil)
		if err != nil {
			return err
		}
		inputs = nil
		for part := range slices.Chunk(all, namespacesAtOnce) {
			inputs = append(inputs, map[string]any{"names": part, "includeProtected": c.is("include-protected")})
		}
	}
	return c.unload(inputs)
}

// unload sends requests to delete namespaces, and shows the outcome for each.
func (c *call) unload(inputs []map[string]any) error {
	unloaded, failed, reports := 0, []string{}, []any{}
	done := c.progress("unloading", len(inputs))
	var err error
	for _, input := range inputs {
		var found any
		if found, err = c.query("UnloadNamespaces", map[string]any{"input": input}); err != nil {
			break
		}
		done.add(1)
		for _, report := range listOf(found, "") {
			reports = append(reports, report)
			if memberOf(report, "outcome") == string(client.UnloadOutcomeUnloaded) {
				unloaded++
				continue
			}
			failed = append(failed, wordOf(report, "namespace"))
			for _, problem := range listOf(report, "errors") {
				c.notef("%s: %s\n", wordOf(report, "namespace"), cell(problem, false))
			}
		}
	}
	if err != nil && unloaded == 0 {
		return err
	}
	if c.out.isTable() {
		err = errors.Join(err, c.printf("%s unloaded, %d failed\n", counted(unloaded, "namespace"), len(failed)))
	} else {
		err = errors.Join(err, c.list("namespace outcome errors", reports))
	}
	if len(failed) > 0 {
		stayed := counted(len(failed), "namespace")
		err = errors.Join(err, fmt.Errorf("%s not unloaded: %s", stayed, strings.Join(failed, ", ")))
	}
	return err
}

// confirmUnload asks whether to delete the chosen namespaces.
func (c *call) confirmUnload(names, types, origin []string) error {
	if c.is("all") {
		return c.confirm("all", "Delete all namespaces of %s, with everything in them?", c.server.address)
	}
	chosen := "namespaces"
	if len(names) > 0 {
		chosen = quoted(names)
	}
	if len(types) > 0 {
		chosen += " that apply to " + quoted(types)
	}
	if len(origin) > 0 {
		chosen += fmt.Sprintf(" of the origin %q", origin[0])
	}
	return c.confirm("yes", "Delete %s of %s, with everything in them?", chosen, c.server.address)
}
