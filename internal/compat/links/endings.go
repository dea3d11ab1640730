package links

import "strings"

// fileEndings are the extensions of files that software documentation commonly names.
var fileEndings = setOf(`
		md markdown mdx txt text rst adoc org tex bib pdf doc docx odt xls xlsx csv tsv
		html htm xhtml css scss sass less svg png jpg jpeg gif webp ico bmp mp3 mp4 webm wav woff woff2 ttf
		json jsonl json5 yaml yml toml ini cfg conf properties env xml xsd plist lock sum mod proto graphql avsc ipynb
		go py pyi rb erb rake gemspec js mjs cjs jsx ts tsx vue svelte java kt kts scala groovy gradle clj ex exs erl hs
		c h cc cpp cxx hpp hh m mm cs fs vb rs swift php pl pm lua r jl dart zig nim ml mli asm s v sv vhd
		sh bash zsh fish ps1 bat cmd sql psql tf hcl nix mk cmake bazel bzl dockerfile txtar tmpl tpl haml slim
		zip tar gz tgz bz2 xz jar war whl deb rpm db sqlite log patch diff`)

// sourceEndings are extensions of files that are often named without their directory, and
// are seldom names of methods.
var sourceEndings = setOf("go py rb rs java kt php swift c cc cpp h ts tsx js jsx mjs vue sh bash ps1 sql yaml yml toml ini css scss html txt rst adoc ipynb proto tf")

// sourceNames are files without an extension.
var sourceNames = setOf("Makefile Dockerfile Procfile Pipfile Gemfile Rakefile Vagrantfile Jenkinsfile LICENSE CODEOWNERS")

// productNames look like files and are names of programs.
var productNames = setOf("Node.js Next.js Nuxt.js Vue.js React.js Three.js Express.js Ember.js D3.js Chart.js Deno.js Nest.js Electron.js Alpine.js Socket.io")

func setOf(words string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(words) {
		set[word] = true
	}
	return set
}
