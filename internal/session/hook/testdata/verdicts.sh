# Makes the repository in which the commands of verdicts.txt are judged and run. otter holds held.txt, src/held.*
# and docs/held.md; the session has own.txt; notes.txt is a person's and not committed.
export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org
commit() { git add -A && git commit -qm "$1"; }
git init -q --bare -b main origin.git
git init -q --bare -b main upstream.git
git init -q -b main repo
cd repo
git config user.name a
git config user.email a@example.org
mkdir src docs mine
for f in held.txt own.txt free.txt other.txt src/held.py src/own.py src/held.ts docs/held.md docs/free.md mine/one.txt mine/two.txt; do
  printf 'x = 1\ny = 2\n' >"$f"
done
printf 'package  held\n' >src/held.go
printf 'package  own\n' >src/own.go
printf 'module example.org/x\ngo 1.20\n' >go.mod
printf '.lockkeeper/\nbuild/\n*.log\ntree/\n' >.gitignore
printf 'all:\n\t@echo built\nfmt:\n\tsed -i s/x/z/ held.txt\n' >Makefile
commit first
git tag start
git remote add origin ../origin.git
git remote add upstream ../upstream.git
git push -qu origin main
git push -q upstream main

git checkout -qb topic && printf 'package topic\n' >src/held.go && commit 'changes a held file'
git push -q upstream topic:main topic
git checkout -qb side start && printf 'side\n' >free.txt && commit 'changes a free file'
git push -q origin side:main
git checkout -q main && git fetch -q --all
git branch -f behind start

printf 'older\n' >other.txt && git stash push -qm older
git tag stashed 'stash@{0}'
git worktree add -q -b tree tree
printf 'x = 1\ny = 4\n' >held.txt && git tag heldstash "$(git stash create)" && git checkout -q held.txt
printf 'half of an edit\n' >held.txt
printf 'half = 1\n' >src/held.py
printf 'mine\n' >own.txt
printf 'a person wrote this\n' >notes.txt
mkdir build && printf 'o\n' >build/o && printf 'l\n' >a.log
git diff own.txt | sed 's/+mine/+ours/' >/dev/null
printf -- '--- a/free.txt\n+++ b/free.txt\n@@ -1,2 +1,2 @@\n-x = 1\n+x = 3\n y = 2\n' >build/free.patch
printf -- '--- a/src/held.ts\n+++ b/src/held.ts\n@@ -1,2 +1,2 @@\n-x = 1\n+x = 3\n y = 2\n' >build/held.patch
printf 'own.txt\n' >build/own.list
printf 'held.txt\n' >build/held.list
printf 'echo done\n' >build/harmless.sh
printf 'echo x >>held.txt\n' >build/harmful.sh
git clone -q ../origin.git ../clone
git -C ../clone config user.name a
git -C ../clone config user.email a@example.org
printf 'x\n' >>../clone/free.txt
