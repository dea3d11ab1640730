package hook

import (
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// redirect notes the file that a redirection writes.
func (r *reader) redirect(d *syntax.Redirect) {
	if d.N != nil && strings.HasPrefix(d.N.Value, "{") {
		r.sets(strings.Trim(d.N.Value, "{}"))
	}
	whole := true
	switch d.Op {
	case syntax.RdrIn, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc, syntax.DplIn:
		return
	case syntax.RdrOut, syntax.RdrClob, syntax.RdrAll, syntax.RdrInOut: // RdrInOut writes from the beginning
	case syntax.AppOut, syntax.AppAll:
		whole = false
	case syntax.DplOut: // >& also redirects to a file, unless a number follows
		if text, ok, _ := r.literal(d.Word); ok && strings.Trim(text, "0123456789-") == "" {
			return
		}
	default:
		r.opaque()
	}
	for _, file := range r.expand(d.Word) {
		if r.writes(whole, file); file == "" && whole {
			r.sweeps(d.Op.String())
		}
	}
}

func (r *reader) writes(whole bool, files ...string) {
	for _, f := range files {
		if f == "" || f == "-" {
			continue
		}
		file := absolute(r.dir, f)
		if isDescriptor(file) {
			r.opaque()
		}
		r.plan.Writes = append(r.plan.Writes, Touch{File: file, Whole: whole})
	}
}

// isDescriptor reports whether a path may refer to an open file of a process. Writing to it
// truncates that file, regardless of how it was opened.
func isDescriptor(file string) bool {
	device, is := strings.CutPrefix(file, "/dev/")
	return strings.HasPrefix(file, "/proc/") || is && device != "null" && device != "tty" && !strings.HasPrefix(device, "shm/") && !strings.HasPrefix(device, "tcp/") && !strings.HasPrefix(device, "udp/")
}

// curl notes the output files of curl, or the files named by the ends of its URLs.
func (r *reader) curl(args []string) {
	w := curlGrammar.read(args)
	files, remote := w.values("-o", "--output"), w.has("-O", "--remote-name", "--remote-name-all")
	for _, address := range w.all() {
		if at, _, _ := strings.Cut(address, "?"); remote && strings.Contains(at, "://") {
			files = append(files, path.Base(at))
		}
	}
	for _, dir := range w.values("--output-dir") {
		for i, f := range files {
			files[i] = filepath.Join(dir, f)
		}
	}
	r.writes(true, files...)
}

// truncate notes the files that the command shortens or extends. Extending replaces no content.
func (r *reader) truncate(args []string) {
	w := allowed("-s= -r= --size= --reference=").read(args)
	extends := func(size string) bool { return strings.HasPrefix(size, "+") || strings.HasPrefix(size, ">") }
	r.writes(!slices.ContainsFunc(w.values("-s", "--size"), extends), w.all()...)
}

// awk notes the files that awk writes with the extension inplace. The first operand is the
// program unless an option gives it.
func (r *reader) awk(args []string) {
	w := awkGrammar.read(args)
	operands := w.all()
	if !w.has("-f", "--file") && len(operands) > 0 {
		operands = operands[1:]
	}
	if slices.Contains(w.values("-i", "-l", "--include", "--load"), "inplace") {
		r.writes(false, slices.DeleteFunc(operands, func(o string) bool { return strings.Contains(o, "=") })...)
	}
}

// patch notes the output file of patch, or the files that the patch names.
func (r *reader) patch(args []string, s *syntax.Stmt) {
	const grammar allowed = "-d= -i= -o= -p= -F= -B= -D= -V= -Y= -z= -r= -C -b -c -e -E -f -l -n -N -R -s -t -u -T -Z --directory= --input= --output= --strip= --fuzz= --prefix= --ifdef= --version-control= " +
		"--basename-prefix= --suffix= --reject-file= --dry-run"
	w := grammar.read(args)
	outputs, inputs, strips := w.values("-o", "--output"), w.values("-i", "--input"), w.values("-p", "--strip")
	in := *r
	for _, dir := range w.values("-d", "--directory") {
		in.dir = absolute(r.dir, dir)
	}
	operands := w.all()
	switch in.writes(true, outputs...); {
	case w.has("--dry-run", "-C") || len(outputs) > 0:
		return
	case len(operands) > 0:
		in.writes(false, operands[0])
		return
	}
	text := r.input(s)
	for _, file := range inputs {
		text += contentOf(absolute(in.dir, file))
	}
	in.madeFrom(text)
	in.writes(false, patchedFiles(text, depthOf(strips, -1))...)
}

// madeFrom notes the files that were given to the command that makes the patch, if the patch itself is
// unknown.
func (r *reader) madeFrom(patch string) {
	if patch == "" || len(patchedFiles(patch, 0)) == 0 {
		r.plan.Names = append(r.plan.Names, slices.DeleteFunc(slices.Clone(r.fedBy), func(f string) bool { return !isThere(f) || isDir(f) })...)
	}
}

// depthOf returns the last number given with -p, or depth.
func depthOf(given []string, depth int) int {
	for _, p := range given {
		if n, err := strconv.Atoi(p); err == nil && n >= 0 {
			depth = n
		}
	}
	return depth
}

// gitApply returns the files named by the patches that git applies.
func (r *reader) gitApply(args []string, s *syntax.Stmt) (list []string) {
	w := allowed("-p= -C= --strip= --directory=").read(args)
	if slices.Equal(args, []string{"--cached"}) || slices.Equal(args, []string{"--cached", "-R"}) || slices.Equal(args, []string{"-R", "--cached"}) {
		if files := r.stashed(s); len(files) > 0 {
			return files
		}
	}
	text := r.input(s)
	for _, file := range w.all() {
		text += contentOf(absolute(r.dir, file))
	}
	r.madeFrom(text)
	below := ""
	for _, dir := range w.values("--directory") {
		below = dir
	}
	for _, file := range patchedFiles(text, depthOf(w.values("-p", "--strip"), 1)) {
		list = append(list, filepath.Join(below, file))
	}
	return list
}

// patchedFiles lists the files that a patch names, without the first depth directories of each
// name. -1 removes all directories.
func patchedFiles(text string, depth int) (list []string) {
	for line := range strings.Lines(text) {
		for _, head := range []string{"--- ", "+++ ", "rename to ", "rename from "} {
			name, is := strings.CutPrefix(strings.TrimRight(line, "\r\n"), head)
			name, _, _ = strings.Cut(name, "\t")
			parts := strings.Split(name, "/")
			switch {
			case !is || name == "/dev/null" || name == "":
				continue
			case strings.HasPrefix(head, "rename"):
			case depth < 0:
				name = parts[len(parts)-1]
			case len(parts) > depth:
				name = strings.Join(parts[depth:], "/")
			}
			if !slices.Contains(list, name) {
				list = append(list, name)
			}
		}
	}
	return list
}

// input returns the known standard input of a patch: a here-document, an existing file, or what a
// program before it reads.
func (r *reader) input(s *syntax.Stmt) string {
	text := r.fed(s)
	for _, file := range r.fedBy {
		text += contentOf(file)
	}
	for _, d := range s.Redirs {
		if file, ok, _ := r.literal(d.Word); d.Op == syntax.RdrIn && ok {
			text += contentOf(absolute(r.dir, file))
		}
	}
	return text
}

// longestPatch limits how much of a patch file is read.
const longestPatch = 1 << 20

// contentOf returns the beginning of a regular file, or "" for anything else.
func contentOf(file string) string {
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, longestPatch)) // an unreadable file names nothing; the later comparison finds its effects
	return string(text)
}

// fed returns the text of a here-document, a here-string, or an echo or printf in the pipe before.
func (r *reader) fed(s *syntax.Stmt) string { return fed(s) + r.piped }

// printed returns what an echo or printf with known words prints, or "".
func (r *reader) printed(s *syntax.Stmt) string {
	call, is := s.Cmd.(*syntax.CallExpr)
	if !is || len(call.Args) < 2 || len(s.Redirs) > 0 {
		return ""
	}
	var words []string
	for _, w := range call.Args {
		words = append(words, r.expand(w)...)
	}
	switch words[0] {
	case "echo":
		return strings.Join(words[1:], " ") + "\n"
	case "printf":
		text, _, err := expand.Format(nil, words[1], words[2:])
		if err == nil {
			return text
		}
	}
	return ""
}

func fed(s *syntax.Stmt) string {
	var b strings.Builder
	for _, d := range s.Redirs {
		w := d.Hdoc
		if d.Op == syntax.WordHdoc {
			w = d.Word
		}
		if w == nil {
			continue
		}
		syntax.Walk(w, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.Lit:
				b.WriteString(n.Value)
			case *syntax.SglQuoted:
				b.WriteString(n.Value)
			}
			return true
		})
	}
	return b.String()
}
