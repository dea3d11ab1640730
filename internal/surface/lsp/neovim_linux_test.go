package lsp_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// script drives Neovim. It starts the server as docs/editors.md says, and works on the file app/user.rb,
// which an agent holds until the file "asked" appears.
const script = `
local dir, program = vim.env.BLOG_DIR, vim.env.BLOG_PROGRAM
local heard = {}
vim.lsp.handlers['window/showMessage'] = function(_, result) table.insert(heard, result.message) end

local function log(text) vim.fn.writefile({ text }, dir .. '/log', 'a') end
local function await(what, done)
  if not vim.wait(60000, done, 20) then
    log('no ' .. what .. '; heard: ' .. table.concat(heard, ' | '))
    vim.cmd('cquit 1')
  end
end
local function hears(text)
  await(text, function()
    for _, m in ipairs(heard) do if m:find(text, 1, true) then return true end end
  end)
end
local function run(command)
  local params = { textDocument = { uri = vim.uri_from_bufnr(0) }, range = { start = { line = 0, character = 0 }, ['end'] = { line = 0, character = 0 } }, context = { diagnostics = {} } }
  local answers = vim.lsp.buf_request_sync(0, 'textDocument/codeAction', params, 60000)
  for _, answer in pairs(answers or {}) do
    for _, action in ipairs(answer.result or {}) do
      if action.command.command == command then
        vim.lsp.buf.execute_command(action.command)
        return
      end
    end
  end
  log('not offered: ' .. command)
  vim.cmd('cquit 1')
end

vim.cmd('edit app/user.rb')
local client = vim.lsp.start_client({ name = 'lockkeeper', cmd = { program, 'lsp' }, root_dir = dir })
vim.lsp.buf_attach_client(0, client)
await('diagnostic', function() return #vim.diagnostic.get(0) == 1 end)
log(vim.diagnostic.get(0)[1].source .. ': ' .. vim.diagnostic.get(0)[1].message)
vim.api.nvim_buf_set_lines(0, 0, 0, false, { '# edited' })
hears('would disturb')
run('lockkeeper.ask')
hears('told at its next call')
vim.fn.writefile({}, dir .. '/asked')
hears('app/user.rb is free')
await('end of the diagnostic', function() return #vim.diagnostic.get(0) == 0 end)
run('lockkeeper.claim')
hears('is claimed by you')
vim.cmd('write')
vim.fn.writefile({}, dir .. '/claimed')
await('check of the claim', function() return vim.fn.filereadable(dir .. '/checked') == 1 end)
vim.cmd('qall!')
`

// A real Neovim shows the holder, warns, asks, hears that the file is free, claims it, and
// releases the claim when it ends.
func TestNeovim(t *testing.T) {
	nvim, err := exec.LookPath("nvim")
	if err != nil {
		t.Fatal("nvim was not found, and this test drives it; next: install it (on Debian: apt-get install neovim)")
	}
	blog := newBlog(t)
	agent := newOtter(t, blog.App)
	callsign := agent.claim("app/user.rb")
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.WriteFile(file("script.lua"), []byte(script), 0o644))
	cmd := exec.Command(nvim, "--headless", "-u", "NONE", "-i", "NONE", "-n", "-c", "luafile "+file("script.lua"))
	cmd.Dir, cmd.Stdout, cmd.Stderr = blog.Root, os.Stderr, os.Stderr
	cmd.Env = append(blog.Env, "BLOG_DIR="+dir, "BLOG_PROGRAM="+blog.Program(t))
	must(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	log := func() string {
		text, _ := os.ReadFile(file("log")) // missing if Neovim wrote nothing
		return string(text)
	}
	appears := func(name string) {
		t.Helper()
		look := time.NewTicker(20 * time.Millisecond)
		defer look.Stop()
		for {
			select {
			case err := <-ended:
				t.Fatalf("Neovim ended before %s (%v): %s", name, err, log())
			case <-look.C:
			}
			if _, err := os.Lstat(file(name)); err == nil {
				return
			}
		}
	}
	appears("asked")
	if news := agent.news(); len(news) != 1 {
		t.Errorf("the holder heard %q", news)
	}
	agent.release()
	appears("claimed")
	if got := read(t, in(blog, "app/user.rb")); got != "# edited\nclass User\nend\n" {
		t.Errorf("after the claim the file is %q", got)
	}
	if !agent.refused("app/user.rb") {
		t.Error("an agent can write the file that the person claimed")
	}
	must(t, os.WriteFile(file("checked"), nil, 0o644))
	if err := <-ended; err != nil {
		t.Fatalf("Neovim: %v: %s", err, log())
	}
	if got, want := log(), "lockkeeper: app/user.rb is held by "+callsign+" (pts/3) since "; len(got) < len(want) || got[:len(want)] != want {
		t.Errorf("Neovim showed %q", got)
	}
	e := start(t, blog.Env, "EDITOR-2") // it hears when the server of Neovim has ended
	user := uriOf(in(blog, "app/user.rb"))
	e.open(user)
	for e.titles(user) != "Claim this file, Show why this file is held or free" {
		e.hears(shown, "app/user.rb is free")
	}
	e.end()
}
