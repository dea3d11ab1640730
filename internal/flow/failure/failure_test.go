package failure

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// outputs are excerpts of the output of test runners, with the names of the failed tests.
var outputs = map[string]struct {
	output string
	tests  []string
}{
	"go": {`=== RUN   TestA
--- FAIL: TestA (0.01s)
    --- FAIL: TestA/empty_name (0.00s)
        a_test.go:12: got 1, want 2
FAIL
FAIL	example.com/m/a	0.012s
ok  	example.com/m/b	0.003s
--- FAIL: TestA (0.00s)
FAIL
FAIL	example.com/m/c	0.004s
FAIL`, []string{"example.com/m/a.TestA", "example.com/m/a.TestA/empty_name", "example.com/m/c.TestA"}},
	"go build": {"# example.com/m/a\n./a.go:3:5: undefined: x\nFAIL\texample.com/m/a [build failed]\nFAIL", []string{"error in ./a.go : undefined: x", "example.com/m/a [build failed]"}},
	"go panic": {"panic: boom\n\ngoroutine 1 [running]:\nFAIL\texample.com/m/a\t0.010s\nFAIL", []string{"example.com/m/a"}},
	"go json":  {`{"Time":"2026-01-02T03:04:05Z","Action":"fail","Package":"m/a","Test":"TestA","Elapsed":0.1}` + "\n" + `{"Action":"fail","Package":"m/a"}`, []string{"m/a", "m/a.TestA"}},
	"pytest": {`=========================== short test summary info ============================
FAILED tests/test_a.py::test_sum - assert 3 == 4
FAILED tests/test_a.py::TestB::test_x[a b] - ValueError: 12
ERROR tests/test_c.py - ModuleNotFoundError: No module named 'x'
========================= 2 failed, 1 error in 0.03s ==========================`,
		[]string{"error in tests/test_c.py ModuleNotFoundError: No module named 'x'", "tests/test_a.py::TestB::test_x[a b]", "tests/test_a.py::test_sum"}},
	"unittest": {"======\nFAIL: test_sum (test_a.TestA.test_sum)\n------\nERROR: test_x (test_a.TestA.test_x)\n", []string{"test_sum (test_a.TestA.test_sum)", "test_x (test_a.TestA.test_x)"}},
	"rspec": {"Failed examples:\n\nrspec ./spec/models/user_spec.rb:12 # User is valid\nrspec './spec/a_spec.rb[1:2:3]' # A has b\nAn error occurred while loading ./spec/b_spec.rb.\n",
		[]string{"./spec/a_spec.rb  # A has b", "./spec/models/user_spec.rb  # User is valid", "error in ./spec/b_spec.rb"}},
	"minitest": {"  1) Failure:\nUserTest#test_is_valid [test/models/user_test.rb:5]:\nExpected false to be truthy.\n\nError:\nAdmin::PostTest#test_x:\nNoMethodError: x\n",
		[]string{"Admin::PostTest#test_x", "UserTest#test_is_valid"}},
	"jest": {"FAIL src/sum.test.js (5.2 s)\n  Sum\n    ✕ adds (3 ms)\n\n  ● Sum › adds\n\n    expect(received).toBe(expected)\n\nFAIL src/b.test.js\n  ● Test suite failed to run\n",
		[]string{"src/b.test.js Test suite failed to run", "src/sum.test.js Sum › adds"}},
	"vitest": {" ❯ src/sum.test.ts (2 tests | 1 failed) 5ms\n   × src/sum.test.ts > Sum > adds 3ms\n FAIL  src/sum.test.ts > Sum > adds\nAssertionError: expected 3 to be 4\n", []string{"src/sum.test.ts > Sum > adds"}},
	"mocha":  {"  1 passing (12ms)\n  2 failing\n\n  1) Sum\n       of two\n         adds:\n     AssertionError: 3 == 4\n  2) lists:\n     Error: x\n", []string{"Sum of two adds", "lists"}},
	"cargo":  {"running 2 tests\ntest tests::adds ... FAILED\ntest tests::subtracts ... ok\n\nfailures:\n    tests::adds\n", []string{"tests::adds"}},
	"maven":  {"[ERROR] com.example.SumTest.adds -- Time elapsed: 0.012 s <<< FAILURE!\norg.opentest4j.AssertionFailedError\nsubtracts(com.example.SumTest)  Time elapsed: 0.001 sec  <<< ERROR!\n", []string{"com.example.SumTest.adds", "subtracts(com.example.SumTest)"}},
	"gradle": {"SumTest > adds() FAILED\n    java.lang.AssertionError\n", []string{"SumTest > adds()"}},
	"junit":  {"<testsuite>\n<testcase name=\"ok\" classname=\"a.B\" time=\"0.1\"/>\n<testcase classname=\"a.B\" name=\"adds\" time=\"0.2\">\n<failure message=\"x\">y</failure>\n</testcase></testsuite>", []string{"a.B.adds"}},
	"none":   {"make: *** [Makefile:3: test] Error 2\nE: 3 FAILED of 5\nall done", nil},
}

func TestNamesOfTests(t *testing.T) {
	for runner, o := range outputs {
		if got := testsIn(o.output); !slices.Equal(got, o.tests) {
			t.Errorf("%s: got\n%q\nwant\n%q", runner, got, o.tests)
		}
	}
}

// The real programs on this machine print what the patterns expect.
func TestRealOutput(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module example.com/m\n",
		"a_test.go": "package m\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) { t.Run(\"sub\", func(t *testing.T) { t.Error(1) }) }\n",
		"test_a.py": "import unittest\n\nclass A(unittest.TestCase):\n    def test_sum(self):\n        self.assertEqual(1, 2)\n",
		"a.test.js": "const test = require('node:test')\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for command, want := range map[string]string{
		"go test ./...":          "example.com/m.TestA example.com/m.TestA/sub",
		"python3 -m unittest -q": "test_sum (test_a.A.test_sum)",
	} {
		argv := strings.Fields(command)
		if _, err := exec.LookPath(argv[0]); err != nil {
			continue
		}
		cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err == nil {
			t.Fatalf("%s passed", command)
		}
		if got := Of(command, 1, false, string(out), dir); strings.Join(got.Tests, " ") != want {
			t.Errorf("%s: got %q from\n%s", command, got.Tests, out)
		}
	}
}

// Parts of the output that differ from run to run do not change the failure.
func TestSameFailure(t *testing.T) {
	one := Of("make test", 2, false, "\x1b[31mconnecting to 127.0.0.1:5432\x1b[0m\n/work/a1/tree/app/x.rb:12: object 0x7f3a9c at 2026-01-02 03:04:05\nfailed after 1.2s, see /tmp/x81/log\n", "/work/a1", "/work/a1/tree")
	two := Of("make test", 2, false, "connecting to 127.0.0.1:5433\n/work/b2/tree/app/x.rb:14: object 0x55d1 at 2026-01-02 04:00:00\nfailed after 900ms, see /tmp/y/log\n", "/work/b2", "/work/b2/tree")
	if !two.IsIn([]Failure{one}) || !slices.Equal(one.Parts(), two.Parts()) {
		t.Errorf("%q\n%q", one.Text, two.Text)
	}
	for name, other := range map[string]Failure{
		"another text":    Of("make test", 2, false, "undefined method x\n"),
		"another exit":    Of("make test", 1, false, one.Text),
		"another command": Of("make ci", 2, false, one.Text),
		"names":           Of("make test", 2, false, outputs["cargo"].output),
		"a time limit":    Of("make test", 2, true, one.Text),
	} {
		if other.IsIn([]Failure{one}) {
			t.Errorf("%s: %+v", name, other)
		}
	}
}

// A failure is in an earlier one that had all its failing tests. With one more failing test it is not.
func TestSomeOfTheTests(t *testing.T) {
	before := []Failure{{Command: "a", Exit: 1, Tests: []string{"x", "y"}}, {Command: "b", Exit: 1, Tests: []string{"z"}}}
	for tests, want := range map[string]bool{"x": true, "x y z": true, "x w": false} {
		if got := (Failure{Command: "c", Exit: 2, Tests: strings.Fields(tests)}).IsIn(before); got != want {
			t.Errorf("%s: %v", tests, got)
		}
	}
	if (Failure{Command: "a", Exit: 1, Text: "x"}).IsIn(before) {
		t.Error("output without names is in output with names")
	}
	if (Failure{Command: "a", Exit: 1, TimedOut: true, Tests: []string{"x"}}).IsIn(before) {
		t.Error("a time limit is not a failing test")
	}
	if !(Failure{Command: "a", Exit: 124, TimedOut: true}).IsIn([]Failure{{Command: "a", Exit: 124, TimedOut: true, Text: "…"}}) {
		t.Error("the same time limit")
	}
}

// Versions and line numbers of an output do not make two failures different, but people read them.
func TestNumbersAreShown(t *testing.T) {
	f := Of("python3 -m pytest", 1, false, "/opt/3.11.8/bin/python3: No module named pytest\n\n")
	if !f.IsIn([]Failure{Of("python3 -m pytest", 1, false, "/opt/3.12.1/bin/python3: No module named pytest\n")}) {
		t.Error("another version is another failure")
	}
	if want := `"python3 -m pytest" ended with exit status 1: /opt/3.11.8/bin/python3: No module named pytest`; f.String() != want {
		t.Errorf("%s, want %s", f, want)
	}
}
