#!/bin/bash
# sendbox-fs through the guest's pump, compared with a plain directory and at work
# with git, npm, SQLite, gcc and tar.
# Wants: SB_BUILD. Needs root and /dev/fuse.
set -u
export LC_ALL=C
n=0
bad=0
ok() { n=$((n + 1)); echo "ok $n - $1"; }
not_ok() {
	n=$((n + 1)); bad=1; echo "not ok $n - $1"; shift
	printf '%s\n' "$@" | head -n 30 | sed 's/^/# /'
}
is() { if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "got:  $2" "want: $3"; fi; }
has() { if command -v "$1" >/dev/null; then return 0; fi; n=$((n + 1)); echo "ok $n - $2 # SKIP no $1"; return 1; }

if [ "$(id -u)" != 0 ] || ! [ -r /dev/fuse ]; then echo "1..0 # SKIP needs root and /dev/fuse"; exit 0; fi
U=54322
D=$(mktemp -d /tmp/sb-fs.XXXXXX)
trap 'rm -rf "$D"' EXIT
chmod 755 "$D"
mkdir "$D/src" "$D/mnt" "$D/plain" "$D/home" "$D/bin"
# where the other identity can reach them, too
cp "$SB_BUILD"/tests/integration/fs_{cases,fsx,mount} "$SB_BUILD/host/fs/sendbox-fs" "$D/bin"
I=$D/bin
FS=$D/bin/sendbox-fs
chown $U:$U "$D/src" "$D/plain" "$D/home"

# m [SERVER OPTION]... -- COMMAND: as the owner, the current folder is the mount
m() {
	local opts=()
	while [ "$1" != -- ]; do opts+=("$1"); shift; done
	shift
	timeout 240 "$I/fs_mount" ${FM:-} "$FS" "$D/mnt" --open "$D/src" --root 4 --as $U:$U --map $U:$U:$U:$U "${opts[@]}" -- \
		setpriv --reuid=$U --regid=$U --clear-groups env HOME="$D/home" D="$D" sh -c "cd '$D/mnt' && \"\$@\"" sh "$@"
}
plain() { setpriv --reuid=$U --regid=$U --clear-groups env HOME="$D/home" "$@"; }
fresh() { rm -rf "$D/src" "$D/plain"; install -d -o $U -g $U "$D/src" "$D/plain"; }

plain "$I/fs_cases" "$D/plain" >"$D/want" 2>&1
m -- "$I/fs_cases" . >"$D/got" 2>&1
if d=$(diff "$D/want" "$D/got"); then ok "the list of operations ends as on a plain directory"; else not_ok "the list of operations" "$d"; fi
fresh
FM=-d m -- "$I/fs_cases" . >"$D/got" 2>&1
if d=$(diff "$D/want" "$D/got"); then ok "the same with the server on /dev/fuse itself"; else not_ok "the same on /dev/fuse" "$d"; fi
fresh
m --cache long -- "$I/fs_cases" . >"$D/got" 2>&1
if d=$(diff "$D/want" "$D/got"); then ok "the same with long caching"; else not_ok "the same with long caching" "$d"; fi
fresh

( ulimit -n 1000; m -- "$I/fs_cases" . ) >"$D/got" 2>&1
if d=$(diff "$D/want" "$D/got"); then ok "the same with few descriptors"; else not_ok "the same with few descriptors" "$d"; fi
fresh
r=$(ulimit -n 1000; m -- sh -ec 'for d in $(seq 20); do mkdir d$d; for f in $(seq 150); do echo $d.$f >d$d/f$f; done; done; ls -lR | grep -c "f[0-9]"; cat d*/f* | sort -u | wc -l; mv d1 moved; cat moved/f7; rm -rf ./*; ls' 2>&1)
is "a tree larger than the descriptors" "$r" "3000
3000
1.7"
fresh

for seed in 1 2 3; do
	r=$(m -- "$I/fs_fsx" . "$D/plain" $seed 2000 2>&1); is "random operations, seed $seed" "$?:$r" "0:"
done
fresh

if has git "git"; then
	r=$(m -- sh -ec 'git config --global user.email a@b.c; git config --global user.name n; git init -q g; cd g
		for i in $(seq 200); do echo $i >f$i; done; git add .; git commit -qm one; echo x >>f1; git commit -qam two
		git status --short; git gc -q; git fsck --strict; git worktree add -q ../w; cd ..; git clone -q g h; cd h; git log --oneline | wc -l; cat f1; git stash list' 2>&1)
	is "git: init, commit, gc, fsck, worktree, clone" "$r" "2
1
x"
	is "git: the host sees the same" "$(plain git -C "$D/src/h" status --short; plain git -C "$D/src/h" fsck 2>&1)" ""
fi
if has sqlite3 "sqlite3"; then
	for mode in wal delete truncate; do
		r=$(m -- sqlite3 db-$mode "pragma journal_mode=$mode; create table t(a); begin; with recursive c(x) as (select 1 union all select x+1 from c where x<5000) insert into t select x from c; commit; select sum(a) from t; pragma integrity_check;" 2>&1)
		is "sqlite3 with journal $mode" "$r" "$mode
12502500
ok"
	done
fi
if has npm "npm"; then
	r=$(m -- sh -ec 'mkdir p q; cd p; echo "{\"name\":\"p\",\"version\":\"1.0.0\",\"bin\":{\"p\":\"x.js\"}}" >package.json; printf "#!/usr/bin/env node\nconsole.log(42)\n" >x.js; chmod 755 x.js
		npm pack --silent >/dev/null; cd ../q; echo "{\"name\":\"q\",\"version\":\"1.0.0\"}" >package.json; npm install --offline --silent --no-audit --no-fund ../p/p-1.0.0.tgz; node_modules/.bin/p' 2>&1)
	is "npm: pack, install, run" "$(printf '%s' "$r" | tail -n 1)" 42
fi
if has gcc "gcc"; then
	r=$(m -- sh -ec 'echo "int puts(const char *); int main(void) { return puts(\"built\") < 0; }" >t.c; gcc -O1 -c t.c; ar rcs l.a t.o; gcc -o t t.o; ./t' 2>&1)
	is "gcc: compile, archive, link, run" "$r" built
fi
r=$(m -- sh -ec 'mkdir tt; for i in $(seq 300); do echo $i >tt/$i; done; ln -s 1 tt/link; ln tt/2 tt/hard; tar cf t.tar tt; mkdir x; tar xf t.tar -C x; diff -r tt x/tt && cp -a x/tt y && diff -r tt y && rm -rf x tt y && echo same' 2>&1)
is "tar, cp -a, diff, rm -rf" "$r" same

echo single >"$D/src/one"; chown $U:$U "$D/src/one"; : >"$D/file"
r=$(timeout 60 "$I/fs_mount" -f "$FS" "$D/file" --open "$D/src/one" --file 4 --as $U:$U --map $U:$U:$U:$U -- setpriv --reuid=$U --regid=$U --clear-groups sh -ec "cat $D/file; echo changed >$D/file; stat -c %F $D/file" 2>&1)
is "a single file" "$r $(cat "$D/src/one")" "single
regular file changed"
fresh; echo public >"$D/src/public"; echo private >"$D/src/private"; mkdir "$D/src/closed"; chmod 644 "$D/src/public"; chmod 600 "$D/src/private"; chmod 700 "$D/src/closed"; chown -R $U:$U "$D/src"
r=$(timeout 60 "$I/fs_mount" -r "$FS" "$D/mnt" --open "$D/src" --root 4 --ro --root-is-root --as $U:$U -- \
	sh -c "cat $D/mnt/public; cat $D/mnt/private 2>&1 | grep -o denied; ls $D/mnt/closed 2>&1 | grep -o denied" 2>&1)
is "an image shows what everybody may read, though its server may read more" "$r" "public
denied
denied"
r=$(timeout 60 "$I/fs_mount" -r "$FS" "$D/mnt" --open /usr/bin --open /etc/debian_version --tree usr/bin=4 --tree etc/debian_version=5 --root-is-root --cache long --as 65534:65534 -- \
	sh -c "cd $D/mnt && ls; ls etc usr; stat -c '%u %a' . usr; cmp etc/debian_version /etc/debian_version && cmp usr/bin/env /usr/bin/env && usr/bin/env true && echo same; touch usr/x 2>&1 | grep -o Read-only" 2>&1)
is "a virtual tree" "$r" "etc
usr
etc:
debian_version

usr:
bin
0 555
0 555
same
Read-only"

# the host edits while the guest has things cached
fresh
echo old >"$D/src/a"; chown $U:$U "$D/src/a"
cat >"$D/edit.sh" <<'EOS'
wait_for() { for i in $(seq 100); do [ "$(eval "$1" 2>&1)" = "$2" ] && return 0; sleep 0.01; done; echo "after 1 s: $1 is '$(eval "$1" 2>&1)', not '$2'"; return 1; }
cat a >/dev/null; ls >/dev/null; cat new 2>/dev/null
: >"$D/go"
wait_for 'cat "$D/done"' 1 || exit
wait_for 'cat a' "much longer than before" && wait_for 'cat new' fresh && wait_for 'ls' "a
new" && echo seen
EOS
rm -f "$D/go" "$D/done"
( while ! [ -e "$D/go" ]; do sleep 0.01; done; echo "much longer than before" >"$D/src/a"; echo fresh >"$D/src/new"; echo 1 >"$D/done" ) &
chmod 777 "$D"
is "edits of the host are seen within a second" "$(m -- sh "$D/edit.sh" 2>&1)" seen
wait
for fm in "" -d; do
	rm -f "$D/go"
	printf %37s '' >"$D/src/a"
	( while ! [ -e "$D/go" ]; do sleep 0.01; done; i=0; while [ -e "$D/go" ] && [ $i -lt 200 ]; do i=$((i + 1)); head -c $((i * 37)) /dev/zero | tr '\0' "\\$((i % 7 + 101))" >"$D/src/.t"; mv "$D/src/.t" "$D/src/a"; done; rm -f "$D/go" ) &
	r=$(FM=$fm m -- sh -c ': >"$D/go"; while [ -e "$D/go" ]; do cat a >"$D/home/c" 2>/dev/null || continue; [ "$(fold -w1 "$D/home/c" | sort -u | wc -l)" -le 1 ] || echo torn; s=$(wc -c <"$D/home/c"); [ $((s % 37)) = 0 ] || echo "cut at $s"; done' 2>&1 | sort | uniq -c)
	is "no torn read of a file that the host replaces${fm:+, on /dev/fuse}" "$r" ""
	wait
done

echo "1..$n"
exit $bad
