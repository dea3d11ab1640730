package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A component is one module, in the form of CycloneDX.
type component struct {
	Type     string    `json:"type"`
	Ref      string    `json:"bom-ref"`
	Name     string    `json:"name"`
	Version  string    `json:"version"`
	Licenses []license `json:"licenses,omitempty"`
	URL      string    `json:"purl,omitempty"`
}

type license struct {
	License struct {
		ID string `json:"id"`
	} `json:"license"`
}

// A bill is a bill of materials in the form of CycloneDX.
type bill struct {
	Schema   string `json:"$schema"`
	Format   string `json:"bomFormat"`
	Spec     string `json:"specVersion"`
	Version  int    `json:"version"`
	Metadata struct {
		Component component `json:"component"`
	} `json:"metadata"`
	Components []component `json:"components"`
}

func main() {
	name := flag.String("name", "", "the `name` of the programs together")
	version := flag.String("version", "", "their `version`")
	own := flag.String("license", "", "the SPDX `id` of their own license")
	texts := flag.String("licenses", "", "the `directory` for license texts")
	out := flag.String("o", "", "the `file` for the bill of materials")
	flag.Parse()
	if err := write(*name, *version, *own, *texts, *out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "bom:", err)
		os.Exit(1)
	}
}

func write(name, version, own, texts, out string, programs []string) error {
	modules, err := modulesOf(programs)
	if err != nil {
		return err
	}
	dirs, err := dirsOf(modules)
	if err != nil {
		return err
	}
	b := bill{Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", Format: "CycloneDX", Spec: "1.6", Version: 1}
	b.Metadata.Component = component{Type: "application", Ref: name, Name: name, Version: version, Licenses: licenses(own)}
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		ids, err := copyLicenses(dirs[path], filepath.Join(texts, filepath.FromSlash(path)))
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		url := "pkg:golang/" + path + "@" + modules[path]
		b.Components = append(b.Components, component{Type: "library", Ref: url, Name: path, Version: modules[path], Licenses: licenses(ids...), URL: url})
	}
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(out, append(text, '\n'), 0o644)
}

func licenses(ids ...string) []license {
	list := make([]license, len(ids))
	for i, id := range ids {
		list[i].License.ID = id
	}
	return list
}

// modulesOf returns the versions of all modules that the programs contain. The standard library is
// the module "std".
func modulesOf(programs []string) (map[string]string, error) {
	modules := map[string]string{}
	for _, p := range programs {
		info, err := buildinfo.ReadFile(p)
		if err != nil {
			return nil, fmt.Errorf("reading the modules of %s: %w", p, err)
		}
		modules["std"] = strings.TrimPrefix(info.GoVersion, "go")
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			modules[m.Path] = m.Version
		}
	}
	return modules, nil
}

// dirsOf returns the directories of the modules.
func dirsOf(modules map[string]string) (map[string]string, error) {
	args := []string{"list", "-m", "-f", "{{.Path}}\t{{.Dir}}"}
	for path, version := range modules {
		if path != "std" {
			args = append(args, path+"@"+version)
		}
	}
	list, err := exec.Command("go", args...).Output()
	if err != nil {
		return nil, fmt.Errorf("finding the modules: %w", err)
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("finding the standard library: %w", err)
	}
	dirs := map[string]string{"std": strings.TrimSpace(string(root))}
	for line := range strings.Lines(string(list)) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), "\t")
		dirs[path] = dir
	}
	return dirs, nil
}

// legal matches names of files with license texts and notices.
var legal = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)`)

// copyLicenses copies the license texts of a module, and returns the SPDX ids of the licenses.
func copyLicenses(from, to string) (ids []string, err error) {
	files, err := os.ReadDir(cmp.Or(from, "/nonexistent"))
	if err != nil {
		return nil, fmt.Errorf("%w; next: go mod download", err)
	}
	for _, f := range files {
		if f.IsDir() || !legal.MatchString(f.Name()) || strings.HasSuffix(f.Name(), ".go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(from, f.Name()))
		if err != nil {
			return nil, err
		}
		if err := os.MkdirAll(to, 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(to, f.Name()), text, 0o644); err != nil {
			return nil, err
		}
		if id := identify(string(text)); id != "" {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("no known license in %s; next: add its characteristic words to identify", from)
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// known lists licenses by the words that only they have, the more specific first.
var known = []struct{ id, words string }{
	{"Apache-2.0", "apache license version 2.0"},
	{"MPL-2.0", "mozilla public license version 2.0"},
	{"BSD-3-Clause", "neither the name"},
	{"BSD-2-Clause", "redistributions in binary form must reproduce"},
	{"ISC", "permission to use, copy, modify, and/or distribute this software"},
	{"MIT-0", "mit no attribution"},
	{"MIT", "permission is hereby granted, free of charge, to any person obtaining a copy"},
	{"Unlicense", "this is free and unencumbered software released into the public domain"},
}

// identify returns the SPDX id of a license text, or "".
func identify(text string) string {
	text = strings.Join(strings.Fields(strings.ToLower(text)), " ")
	text = strings.ReplaceAll(text, "license, version", "license version")
	for _, k := range known {
		if strings.Contains(text, k.words) {
			return k.id
		}
	}
	return ""
}
