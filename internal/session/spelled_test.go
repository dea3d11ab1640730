package session

import "testing"

// A change is put back only where the command says it: never what a person typed meanwhile.
//
// shows: GP-5
func TestSpelled(t *testing.T) {
	const was = "class User\n  validates :name\nend\n"
	for name, test := range map[string]struct {
		command, is string
		gone, want  bool
	}{
		"written out":                 {`python3 -c "open('user.rb','w').write('class Guest\nend\n')"`, "class Guest\nend\n", false, true},
		"a heredoc of some program":   {"./put user.rb <<E\nclass User\n  has_one :account\nend\nE", "class User\n  has_one :account\nend\n", false, true},
		"a linter, and a person":      {"rubocop user.rb", "class User\n  # wait\n  validates :name\nend\n", false, false},
		"half of it is a person's":    {`python3 -c "open('user.rb','a').write('has_one :x')"`, was + "has_one :x\n# mine\n", false, false},
		"a person only removed lines": {"rubocop user.rb", "class User\nend\n", false, false},
		"a word that happens to fit":  {"./check --append user.rb", was + "end\n", false, false},
		"emptied":                     {`python3 -c "open('user.rb','w')"`, "", false, false},
		"removed":                     {`python3 -c "import os; os.remove('user.rb')"`, "", true, true},
		"removed by whom":             {"ruff format user.rb", "", true, false},
		"another is removed":          {"./rm other.rb; ./check user.rb", "", true, false},
	} {
		is := []byte(test.is)
		if test.gone {
			is = nil
		}
		if got := spelled(test.command, "app/user.rb", []byte(was), is); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
