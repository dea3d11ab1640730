package hook

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The files that source text opens for writing are found, and whether it replaces them as a
// whole.
//
// shows: GP-5
func TestSpelledPrograms(t *testing.T) {
	dir := t.TempDir()
	for program, want := range map[string]string{
		`open('f','w').write('x')`:                 "WHOLE f",
		`open("f", "wb").write(b'x')`:              "WHOLE f",
		`open('f', mode='w')`:                      "WHOLE f",
		`open('f', encoding='utf-8', mode='w')`:    "WHOLE f",
		`open(r'f', 'w')`:                          "WHOLE f",
		`open('my file','w')`:                      "WHOLE my file",
		`io.open('f','w+')`:                        "WHOLE f",
		`open('f','a').write('x')`:                 "w f",
		`open('f','r+')`:                           "w f",
		`open('f','x')`:                            "w f",
		`open('f').read()`:                         "",
		`open('f','r').read(); print('w')`:         "",
		`open('f','rb')`:                           "",
		`print(open('f').read().replace('a','w'))`: "",
		`Path('f').write_text('x')`:                "WHOLE f",
		`pathlib.Path("f").write_bytes(b'x')`:      "WHOLE f",
		`Path('f').open('w').write('x')`:           "WHOLE f",
		`Path('f').read_text()`:                    "",
		`Path('f').unlink()`:                       "w f",
		`os.remove('f')`:                           "w f",
		`os.rename('f','g')`:                       "WHOLE g, w f",
		`shutil.copy('f','g')`:                     "WHOLE g",
		`with open('f') as a, open('g','w') as b: b.write(a.read())`:      "WHOLE g",
		`s=open('f').read(); open('f','w').write(s.replace('a','b'))`:     "w f",
		`p=Path('f'); p.write_text(p.read_text().replace('a','b'))`:       "",
		`require('fs').writeFileSync('f', 'x')`:                           "WHOLE f",
		`fs.writeFileSync("f", fs.readFileSync("f","utf8").replace(1,2))`: "w f",
		`fs.appendFileSync('f', 'x')`:                                     "w f",
		`fs.promises.writeFile('f','x')`:                                  "WHOLE f",
		`fs.createWriteStream('f')`:                                       "WHOLE f",
		`fs.createWriteStream('f', {flags: 'a'})`:                         "w f",
		`fs.writeFileSync('f', 'x', {flag: 'a'})`:                         "w f",
		`fs.readFileSync('f', 'utf8')`:                                    "",
		`fs.unlinkSync('f')`:                                              "w f",
		`fs.rmSync('f')`:                                                  "w f",
		`File.delete 'f'`:                                                 "w f",
		`shutil.rmtree('f')`:                                              "w f",
		`unlink "f"`:                                                      "w f",
		`Deno.writeTextFileSync('f', 'x')`:                                "WHOLE f",
		`Bun.write('f', 'x')`:                                             "WHOLE f",
		`File.write('f', 'x')`:                                            "WHOLE f",
		`File.open('f', 'w') { |f| f.puts 1 }`:                            "WHOLE f",
		`File.open('f', 'a') { |f| f.puts 1 }`:                            "w f",
		`File.read('f')`:                                                  "",
		`file_put_contents('f', 'x')`:                                     "WHOLE f",
		"fs.writeFileSync(`f`, 'x')":                                      "WHOLE f",
		`open(name,'w')`:                                                  "",
	} {
		for _, command := range []string{"python3 - <<'E'\n" + program + "\nE", "node -e $'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(program) + "'"} {
			t.Run(command, func(t *testing.T) {
				var got []string
				for _, w := range effectsOf(command, dir, os.LookupEnv).Writes {
					name, err := filepath.Rel(dir, w.File)
					if err != nil {
						t.Fatal(err)
					}
					if w.Whole {
						name = "WHOLE " + name
					} else {
						name = "w " + name
					}
					got = append(got, name)
				}
				slices.Sort(got)
				if text := strings.Join(slices.Compact(got), ", "); text != want {
					t.Errorf("got %q, want %q", text, want)
				}
			})
		}
	}
}
