package session

import "testing"

// A change is restored only if source text in the command proves it. A person's concurrent edit is
// never reverted.
//
// shows: GP-5
func TestSpelled(t *testing.T) {
	const was = "class User\n  validates :name\nend\n"
	const typed = was + "feature_enabled = true\n"
	for name, test := range map[string]struct {
		program, is string
		gone, want  bool
	}{
		"written out":                     {`open('user.rb','w').write('class Guest\nend\n')`, "class Guest\nend\n", false, true},
		"in several lines":                {"with open('user.rb', mode='a') as f:\n  f.write('''\nhas_one :account\n\"quoted\" = 'x'\n''')", was + "has_one :account\n\"quoted\" = 'x'\n", false, true},
		"in Perl":                         {`open(F, ">>", "../app/user.rb"); print F "has_one :account\n"`, was + "has_one :account\n", false, true},
		"in Node":                         {`require('fs').writeFileSync('app/user.rb', "has_one :account\n")`, "has_one :account\n", false, true},
		"half of it is a person's":        {`open('user.rb','a').write('has_one :x')`, was + "has_one :x\n# mine\n", false, false},
		"a line more, of those known":     {`open('user.rb','a').write('has_one :account\n')`, was + "has_one :account\nend\n", false, false},
		"a part of a line":                {`open('user.rb','a').write('no feature_enabled = true\n')`, typed, false, false},
		"a person only removed lines":     {`open('user.rb','w').write(text)`, "class User\nend\n", false, false},
		"a word that happens to fit":      {`open('user.rb','a').write('end')`, was + "end\n", false, false},
		"emptied":                         {`open('user.rb','w')`, "", false, false},
		"it waits for a person":           {`while "feature_enabled = true" not in open('user.rb').read(): sleep(1)`, typed, false, false},
		"it waits, and writes elsewhere":  {"while 'feature_enabled = true' not in open('user.rb').read(): sleep(1)\nopen('done','w').write('x')", typed, false, false},
		"it waits, and says so":           {`import sys; sys.stdout.write("feature_enabled = true" + open('user.rb').read())`, typed, false, false},
		"another file of the name":        {`open('lib/user.rb','a').write('feature_enabled = true\n')`, typed, false, false},
		"another file with such an end":   {`open('superuser.rb','a').write('feature_enabled = true\n')`, typed, false, false},
		"removed":                         {`import os; os.remove('user.rb')`, "", true, true},
		"a joined name":                   {`import os; os.remove('user.rb' + suffix)`, "", true, false},
		"removed by its path":             {`import pathlib; pathlib.Path('app/user.rb').unlink()`, "", true, true},
		"it waits until it is removed":    {`while os.path.exists('user.rb'): print('please remove user.rb')`, "", true, false},
		"another is removed":              {`os.remove('other.rb'); check('user.rb')`, "", true, false},
		"nothing is spelled, but a shell": {"", typed, false, false},
	} {
		is := []byte(test.is)
		if test.gone {
			is = nil
		}
		if got := spelled([]string{"print(1)", test.program}, "app/user.rb", []byte(was), is); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	halves := []string{`open('user.rb','a').write(text)`, `text = 'feature_enabled = true'`}
	if spelled(halves, "app/user.rb", []byte(was), []byte(typed)) {
		t.Error("two programs together prove what neither does")
	}
}
