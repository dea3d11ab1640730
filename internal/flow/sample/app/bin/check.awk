# What bin/check does. A test is right when
#   - in it and in all files it is about, every class, def, do and if has its end;
#   - what it expects ("# expects: METHOD in FILE") is defined there;
#   - the views it names, and those its controller renders by name, exist;
#   - whatever its controller and the concerns of it call or name in callbacks is
#     defined in one of them.

BEGIN {
  words("if unless else elsif end do def class module case when while until begin rescue ensure return yield self nil true false and or not in then next break super")
  words("include extend included private protected public before_action after_action around_action skip_before_action")
  words("helper_method rescue_from protect_from_forgery layout render redirect_to redirect_back head params session")
  words("cookies flash request response reset_session logger respond_to raise puts lambda proc rate_limit expires_in fresh_when")
  tests = ARGC - 1
  for (i = 1; i <= tests; i++) check(ARGV[i])
  if (problems) { print problems " problem" (problems > 1 ? "s" : "") " in " tests " test file" (tests > 1 ? "s" : ""); exit 1 }
  print "ok: " tests " test file" (tests > 1 ? "s" : "")
  exit 0
}

function words(list,   n, parts, i) { n = split(list, parts, " "); for (i = 1; i <= n; i++) known[parts[i]] = 1 }

function problem(where, what) { print where ": " what; problems++ }

# load reads a file once, and reports whether it is there.
function load(file,   line, n, got) {
  if (!(file in size)) {
    while ((got = (getline line < file)) > 0) text[file, ++n] = line
    close(file)
    size[file] = got < 0 ? -1 : n + 0
    if (got == 0) { balance(file); define(file) }
  }
  return size[file] >= 0
}

# bare is a line without texts and comments.
function bare(line) {
  gsub(/"[^"]*"/, "\"\"", line)
  gsub(/'[^']*'/, "''", line)
  sub(/#.*/, "", line)
  sub(/[ \t]+$/, "", line)
  return line
}

function balance(file,   i, line, depth) {
  for (i = 1; i <= size[file]; i++) {
    line = bare(text[file, i])
    if (line ~ /^ *(class|module|def|if|unless|case|while|until|begin)( |$)/ || line ~ /= *(if|unless|case|begin)( |$)/) depth++
    if (line ~ /(^|[ )])do( *\|[^|]*\|)?$/ && line !~ /^ *(while|until)/) depth++
    if (line ~ /^ *end([^A-Za-z0-9_?!:]|$)/ || line ~ /; *end$/) depth--
    if (depth < 0) { problem(file ":" i, "an end without a beginning"); return }
  }
  if (depth > 0) problem(file ":" size[file], depth " of its blocks " (depth > 1 ? "have" : "has") " no end")
}

function define(file,   i, line) {
  for (i = 1; i <= size[file]; i++) {
    line = bare(text[file, i])
    if (line ~ /^ *def /) { sub(/^ *def (self\.)?/, "", line); sub(/[^A-Za-z0-9_?!].*/, "", line); defined[file, line] = 1 }
    else if (line ~ /^ *(scope|has_many|has_one|belongs_to) :/) { sub(/^[^:]*:/, "", line); sub(/[^A-Za-z0-9_].*/, "", line); defined[file, line] = 1 }
  }
}

# path is where Rails looks for a constant: Blog::PostsController is blog/posts_controller.
function path(name,   out, i, c, before) {
  gsub(/::/, "/", name)
  for (i = 1; i <= length(name); i++) {
    c = substr(name, i, 1)
    if (c ~ /[A-Z]/ && before ~ /[a-z0-9]/) out = out "_"
    out = out tolower(c)
    before = c
  }
  return out
}

function check(test,   i, line, part, subject) {
  if (!load(test)) { problem(test, "there is no such file"); return }
  subject = test
  sub(/^test\//, "app/", subject)
  sub(/_test\.rb$/, ".rb", subject)
  if (!load(subject)) problem(test, "it tests " subject ", which is not there")
  else if (subject ~ /_controller\.rb$/) controller(subject)
  for (i = 1; i <= size[test]; i++) {
    line = text[test, i]
    if (line ~ /^ *# expects: [^ ]+ in [^ ]+$/) {
      split(substr(line, index(line, "expects: ") + 9), part, " ")
      if (!load(part[3])) problem(test ":" i, "it expects " part[1] " in " part[3] ", which is not there")
      else if (!((part[3], part[1]) in defined)) problem(test ":" i, "it expects " part[1] " in " part[3] ", which does not define it")
    }
    if (line ~ /assert_template "/) view(test ":" i, line, "assert_template")
  }
}

function view(where, line, verb,   name) {
  name = line
  sub(".*" verb " \"", "", name)
  sub(/".*/, "", name)
  if (name ~ /\// && (getline line < ("app/views/" name ".html.erb")) < 0) problem(where, "there is no view " name)
  close("app/views/" name ".html.erb")
}

# controller looks at a controller together with what it inherits and includes.
function controller(file,   i) {
  members = 0
  join(file, file)
  for (i = 1; i <= members; i++) names(family[i], file)
}

function join(file, from,   i, line) {
  for (i = 1; i <= members; i++) if (family[i] == file) return
  if (!load(file)) { problem(from, "it needs " file ", which is not there"); return }
  family[++members] = file
  for (i = 1; i <= size[file]; i++) {
    line = bare(text[file, i])
    if (line ~ /^ *class .* < .*Controller$/) { sub(/.* < /, "", line); join("app/controllers/" path(line) ".rb", file) }
    else if (line ~ /^ *include [A-Z]/) { sub(/^ *include /, "", line); join("app/controllers/concerns/" path(line) ".rb", file) }
  }
}

function has(name,   i) {
  for (i = 1; i <= members; i++) if ((family[i], name) in defined) return 1
  return 0
}

# names holds that whatever a file names without a receiver is known.
function names(file, user,   i, line, name, part, n, j, local) {
  split("", local)
  for (i = 1; i <= size[file]; i++) {
    line = bare(text[file, i])
    if (line ~ /^ *((skip_)?(before|after|around)_action|helper_method|rescue_from) /) callbacks(file, i, line, user)
    if (text[file, i] ~ /render "/) view(file ":" i, text[file, i], "render")
    if (line ~ /^ *def /) { # what is in brackets is its own
      name = line
      if (!sub(/^[^(]*\(/, "", name)) continue
      gsub(/[^A-Za-z0-9_]+/, " ", name)
      n = split(name, part, " ")
      for (j = 1; j <= n; j++) local[part[j]] = 1
      continue
    }
    while (match(line, /(do|\{) *\|[^|]+\|/)) {
      n = split(substr(line, RSTART, RLENGTH), part, /[ ,|{]+/)
      for (j = 1; j <= n; j++) local[part[j]] = 1
      line = substr(line, 1, RSTART - 1) " " substr(line, RSTART + RLENGTH)
    }
    if (match(line, /^ *[a-z_]+ (\|\||\+|-)?= /)) { name = line; sub(/^ */, "", name); sub(/ .*/, "", name); local[name] = 1 }
    gsub(/(::)?[A-Z][A-Za-z0-9_]*/, "0", line)
    gsub(/@+[a-z_0-9]+/, "0", line)
    gsub(/\.[a-z_0-9]+[?!]?/, " ", line)
    gsub(/[a-z_0-9]+:( |$)/, " ", line)
    gsub(/:[a-z_0-9]+[?!]?/, " ", line)
    while (match(line, /[A-Za-z_][A-Za-z0-9_]*[?!]?/)) {
      name = substr(line, RSTART, RLENGTH)
      line = substr(line, RSTART + RLENGTH)
      if (name ~ /^[a-z_]/ && name !~ /_(path|url)$/ && !(name in known) && !(name in local) && !has(name)) undefined(file ":" i, name, user)
    }
  }
}

function callbacks(file, i, line, user,   named) {
  named = line
  if (line ~ /rescue_from/ || !sub(/, *(only|except|if|unless):.*/, "", named)) named = line
  gsub(/(only|except): *\[[^]]*\]/, "", named)
  while (match(named, /:[a-z_0-9]+[?!]?/)) {
    if (!has(substr(named, RSTART + 1, RLENGTH - 1))) undefined(file ":" i, substr(named, RSTART + 1, RLENGTH - 1), user)
    named = substr(named, RSTART + RLENGTH)
  }
}

function undefined(where, name, user) {
  problem(where, name " is defined neither in " user " nor in what it inherits and includes")
}
