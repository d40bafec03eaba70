// Release builds the files of a version: an archive of the program for each
// platform with its software bill of materials, Debian packages, the package of
// the TypeScript client, and the checksums of all files. It builds the commit HEAD, not the
// files of the working tree.
//
//	make release VERSION=1.0.0
//
// Everything is built twice, in two folders, and must be equal. The second build
// has a separate build cache, so that it compiles every package again; -once
// omits it.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// options are the flags.
type options struct {
	version   string
	source    string // folder of the repository
	out       string // folder for the files
	platforms string
	once      bool
	client    bool // whether to pack the TypeScript client
}

// versionForm is the form of a semantic version, without build metadata.
var versionForm = regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	o := options{}
	flag.StringVar(&o.version, "version", "", "`VERSION` of the release, such as 1.0.0")
	flag.StringVar(&o.source, "source", "..", "`FOLDER` of the repository")
	flag.StringVar(&o.out, "out", "../build/release", "`FOLDER` for the files of the release")
	flag.StringVar(&o.platforms, "platforms", "linux/amd64,linux/arm64,darwin/arm64,windows/amd64",
		"comma-separated `LIST` of platforms")
	flag.BoolVar(&o.once, "once", false, "build once, and do not compare")
	flag.BoolVar(&o.client, "client", true, "pack the TypeScript client")
	flag.Parse()
	if err := release(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release writes the files of a release and their checksums.
func release(ctx context.Context, o options) error {
	if !versionForm.MatchString(o.version) {
		return fmt.Errorf("VERSION is %q, want a version such as 1.0.0", o.version)
	}
	folder, err := os.MkdirTemp("", "cadastre-release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	names, err := o.build(ctx, filepath.Join(folder, "first"), o.out)
	if err != nil {
		return err
	}
	if !o.once {
		second := filepath.Join(folder, "out")
		cache := "GOCACHE=" + filepath.Join(folder, "cache")
		if _, err := o.build(ctx, filepath.Join(folder, "second, elsewhere"), second, cache); err != nil {
			return err
		}
		if err := compare(names, o.out, second); err != nil {
			return err
		}
	}
	return writeChecksums(o.out, names)
}

// build clones the repository into folder, builds the release there, and writes
// the files to out. It returns their names.
func (o options) build(ctx context.Context, folder, out string, environment ...string) (names []string, err error) {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return nil, err
	}
	if _, err := o.run(ctx, ".", nil, "git", "clone", "--quiet", "--shared", o.source, folder); err != nil {
		return nil, err
	}
	seconds, err := o.run(ctx, folder, nil, "git", "log", "-1", "--format=%ct")
	if err != nil {
		return nil, err
	}
	var unix int64
	if _, err := fmt.Sscan(seconds, &unix); err != nil {
		return nil, err
	}
	for _, platform := range strings.Split(o.platforms, ",") {
		system, processor, ok := strings.Cut(platform, "/")
		if !ok {
			return nil, fmt.Errorf("the platform %q is not SYSTEM/PROCESSOR", platform)
		}
		base := fmt.Sprintf("cadastre_%s_%s_%s", o.version, system, processor)
		program := filepath.Join(folder, "cadastre")
		target := append([]string{"CGO_ENABLED=0", "GOFLAGS=", "GOOS=" + system, "GOARCH=" + processor}, environment...)
		if err := o.compile(ctx, folder, target, program); err != nil {
			return nil, err
		}
		name, err := archive(folder, out, base, system, time.Unix(unix, 0).UTC())
		if err != nil {
			return nil, err
		}
		bill := base + ".cdx.json"
		if err := writeBill(filepath.Join(out, bill), program, o.version, folder); err != nil {
			return nil, err
		}
		names = append(names, name, bill)
		if system == "linux" {
			name, err := o.debian(ctx, folder, out, processor, unix)
			if err != nil {
				return nil, err
			}
			names = append(names, name)
		}
	}
	if o.client {
		name, err := o.pack(ctx, filepath.Join(folder, "clients", "typescript"), out)
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

// mostBytes is the maximum size of a program. If a package calls methods by
// names that are not constants (reflect.Value.MethodByName), the linker keeps
// every exported method, and the program has 8 MB more. -ldflags=-dumpdep marks
// the functions with such calls as ReflectMethod.
const mostBytes = 45_000_000

// compile builds the program of a platform, without symbols. All packages have
// the same compiler flags. If packages differ in inlining, the program crashes:
// the linker keeps one copy of a generic function and perhaps the closures of
// another copy.
func (o options) compile(ctx context.Context, folder string, environment []string, program string) error {
	args := []string{"build", "-trimpath", "-buildvcs=true", "-ldflags",
		"-s -w -X main.release=" + o.version, "-o", program}
	if _, err := o.run(ctx, folder, environment, "go", append(args, ".")...); err != nil {
		return err
	}
	built, err := os.Stat(program)
	if err == nil && built.Size() > mostBytes {
		err = fmt.Errorf("the program has %d bytes, want %d at most", built.Size(), mostBytes)
	}
	return err
}

// debian writes the Debian package of the program in folder to out, and returns
// the name of the file.
func (o options) debian(ctx context.Context, folder, out, processor string, unix int64) (name string, err error) {
	name = fmt.Sprintf("cadastre_%s_%s.deb", o.version, processor)
	target, err := filepath.Abs(filepath.Join(out, name))
	if err != nil {
		return "", err
	}
	environment := []string{"VERSION=" + o.version, "ARCH=" + processor, fmt.Sprint("SOURCE_DATE_EPOCH=", unix)}
	_, err = o.run(ctx, folder, environment, "go", "tool", "-modfile=tools/package/go.mod", "nfpm", "package",
		"--config", "deploy/package/nfpm.yaml", "--packager", "deb", "--target", target)
	return name, err
}

// pack packs the TypeScript client in folder, with the version of the release,
// to out. It returns the name of the file.
func (o options) pack(ctx context.Context, folder, out string) (string, error) {
	absolute, err := filepath.Abs(out)
	if err != nil {
		return "", err
	}
	for _, command := range [][]string{
		{"npm", "ci", "--silent", "--no-audit", "--no-fund"},
		{"npm", "version", "--silent", "--no-git-tag-version", "--allow-same-version", o.version},
		{"npm", "pack", "--silent", "--pack-destination", absolute},
	} {
		if _, err := o.run(ctx, folder, nil, command[0], command[1:]...); err != nil {
			return "", err
		}
	}
	return "cadastre-client-" + o.version + ".tgz", nil
}

// run runs a program in a folder and returns its standard output, trimmed.
func (o options) run(ctx context.Context, folder string, environment []string, program string, args ...string) (
	string, error,
) {
	command := exec.CommandContext(ctx, program, args...)
	command.Dir, command.Env, command.Stderr = folder, append(os.Environ(), environment...), os.Stderr
	printed, err := command.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w", strings.Join(command.Args, " "), err)
	}
	return strings.TrimSpace(string(printed)), err
}

// compare returns an error for each file that two folders do not both have with
// the same content.
func compare(names []string, first, second string) (err error) {
	for _, name := range names {
		one, oneErr := os.ReadFile(filepath.Join(first, name))
		other, otherErr := os.ReadFile(filepath.Join(second, name))
		err = errors.Join(err, oneErr, otherErr)
		if !bytes.Equal(one, other) {
			err = errors.Join(err, fmt.Errorf("%s: the second build differs from the first", name))
		}
	}
	return err
}

// writeChecksums writes the file SHA256SUMS, which `sha256sum --check` reads.
func writeChecksums(folder string, names []string) error {
	var lines strings.Builder
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%x  %s\n", sha256.Sum256(content), name)
	}
	return os.WriteFile(filepath.Join(folder, "SHA256SUMS"), []byte(lines.String()), 0o644)
}
