# shellcheck shell=bash
# Sourced by run: one session that does everything an agent may do to a folder, and fills its disk; what
# `sendbox diff` tells of it, and a tree that neither rsync nor find can tell from the one before.
full=$work/full was=$work/full.was
as mkdir "$full" "$was" 2>/dev/null || mkdir "$full" "$was"
bounded=
if [ "$(id -u)" = 0 ] && mount -t tmpfs -o size=24m,mode=755 none "$full" 2>/dev/null; then
	bounded=yes
	trap 'cd /; umount "$full"; rm -rf "$work"' EXIT
fi
[ "$SB_WHO" = user ] && chown $uid_user:$uid_user "$full" "$was"
cd "$full" || exit 1

as sh -ec '
	git init -q . && mkdir -p src/deep/er empty other keep
	seq 500 >src/lines; echo one >src/a; echo two >src/b; printf "#!/bin/sh\n" >src/script; chmod 750 src/script
	echo single >single; echo secret >secret; chmod 600 secret; printf aaaa >samesize; head -c 4000000 /dev/urandom >grown
	touch -d "2001-02-03 04:05:06.123456789" samesize src/a src/deep
	echo hard >src/h1; ln src/h1 src/h2; ln src/h1 other/h3; echo twin >t1; cp -p t1 t2; echo l >src/l1; ln src/l1 src/l2
	ln -s ../src/a other/link; ln -s nowhere dangling
	printf odd >"$(printf "od\377\nd")"; printf dash >-rf; printf esc >"$(printf "\033[2J")"; echo c >Case
	printf long >"$(printf "%0255d" 7)"
	truncate -s 3M holes; printf data | dd of=holes bs=1 seek=2000000 conv=notrunc status=none
	truncate -s 2M dense-then; setfattr -n user.k -v v src/b; setfattr -n user.gone -v v single
	setfattr -n user.d -v dir other; chmod 750 src/deep; chmod 1777 keep
	head -c 300000 /dev/urandom >binary; git add src && git -c user.name=n -c user.email=a@b commit -qm one
	find . -type d -name er -exec touch -d "1999-12-31 23:59:59.5" {} +'
as rsync -aHAXS "$full/" "$was/"
look() { (cd "$1" && find . -printf '%p %y %m %U %G %T@ %l %n ' \( -type d -printf '\n' -o -printf '%s\n' \) | LC_ALL=C sort); }
look "$full" >"$work/look.was"
[ "$SB_WHO" = user ] && chown $uid_user "$work/look.was"

cat >"$work/everything" <<'S'
rm -r src/deep; rm single "$(printf "od\377\nd")"; rmdir empty
mv src/b src/c; mv other elsewhere; mv Case CASE; mv -- -rf "$(printf '\033]0;evil\a')"
sed -i 's/^250$/changed/' src/lines; printf x | dd of=binary bs=1 seek=1000 conv=notrunc status=none
printf bbbb >samesize; touch -d '2001-02-03 04:05:06.123456789' samesize; echo over >"$(printf '\033[2J')"
chmod 777 src; chmod 000 secret; chmod 4755 src/script 2>/dev/null || chmod 755 src/script; chmod 700 keep
rm src/h2; echo apart >src/h2; ln src/a src/a2; rm src/l1; ln src/l2 src/l3; ln -f t1 t2; rm "$(printf '%0255d' 7)"
printf new >"$(printf 'n\376w\n\001')"; mkdir -- --; echo x >--/-f
python3 - <<'P'
import os
def attempt(f, *a):
    try: f(*a)
    except OSError as e: print("refused", f.__name__, a[1], e.errno)
attempt(os.setxattr, "src/c", "user.k", b"other"); attempt(os.setxattr, "src/a", "user.new", b"n"); attempt(os.removexattr, "elsewhere", "user.d")
for i in range(100): attempt(os.setxattr, "src/script", "user.%060d" % i, b"x") # their names are more than 4 KiB
P
mkdir -p .github/workflows .vscode; echo on >.github/workflows/ci.yml; echo '{}' >.vscode/tasks.json; echo '{}' >package.json
printf '#!/bin/sh\nid\n' >.git/hooks/post-commit; chmod 755 .git/hooks/post-commit; printf '[core]\n\tfsmonitor = id\n' >>.git/config; printf 'all:\n\tid\n' >Makefile
rm dangling; ln -s /etc/passwd dangling; rm holes; mkdir holes; echo h >holes/h; printf filled | dd of=dense-then bs=1 conv=notrunc status=none; truncate -s 5M sparse-new
mkfifo fifo; mkdir closed; echo z >closed/z; chmod 000 closed
head -c 1000000 /dev/zero >filler; cat /dev/zero >>grown
exit 7
S
[ "$bounded" ] || sed -i 's|cat /dev/zero >>grown|head -c 9000000 /dev/zero >>grown|' "$work/everything"
chmod 644 "$work/everything"
sb -- sh -c "$(cat "$work/everything")" >/dev/null 2>"$work/err"
is "one session does everything: its status" $? 7
if [ "$bounded" ] && [ "$SB_PROVIDER" = namespace ]; then
	is "... its disk is full" "$(df --output=avail -k "$full" | awk 'NR == 2 { print ($1 < 200) }')" 1
elif [ "$bounded" ]; then # the file server leaves the host some room
	like "... it wrote until it was refused" "$(cat "$work/err")" 'No space left|Disk quota exceeded'
fi
like "... what programs outside run is told" "$(cat "$work/err")" 'made, changed or removed [0-9]+ paths'
d=$(box diff 2>&1 | tr -d '\000')
for line in 'D src/deep/$' 'D src/deep/er/$' 'D single$' 'D od\\377\\012d$' 'D empty/$' 'D src/b$' 'A src/c$' 'D other/$' 'A elsewhere/$' 'A elsewhere/link$' 'D Case$' 'A CASE$' 'D -rf$' 'A \\033\]0;evil\\007$' 'M \\033\[2J$' 'M binary$' 'M samesize$' '^-250$' '^\+changed$' 'P src/  \(mode 0777, was 0755\)$' 'P secret  \(mode 0000, was 0600\)$|T secret  \(unreadable, was file' 'P src/script ' 'P keep/  \(mode 0700, was 1777\)$' 'M src/h2$' 'A src/a2$' 'D src/l1$' 'A src/l3$' 'D 0{254}7$' 'A n\\376w\\012\\001$' 'A --/$' 'A --/-f$' 'A \.github/workflows/ci\.yml' 'A \.vscode/tasks\.json' 'A package\.json' 'A \.git/hooks/post-commit' 'M \.git/config' 'A Makefile' '^\+/etc/passwd$' 'T holes/  \(directory, was file\)$' 'M dense-then$' 'A sparse-new$' 'A closed' 'A filler$' 'M grown$'; do
	like "diff tells $line" "$d" "$line"
done
# the file server of a micro-VM makes no FIFOs
[ "$SB_PROVIDER" = namespace ] && like "diff tells A fifo" "$d" 'A fifo  \(FIFO: not kept\)$'
like "... guarded paths first" "$(echo "$d" | sed -n 2p)" '^[AM] \.'
box undo >"$work/out" 2>&1
is "undo of everything: status" $? 0
unlike "... nothing failed" "$(cat "$work/out")" '^failed'
is "... rsync finds no difference" "$(rsync -aHAXc --dry-run --delete --itemize-changes "$was/" "$full/" 2>&1)" ""
is "... nor does find, to the nanosecond" "$(look "$full" | diff "$work/look.was" - 2>&1)" ""
is "... holes are holes" "$(stat -c %b holes dense-then | awk '{ n += $1 } END { print (n < 1000) }')" 1
is "... the journal is gone" "$(find "$SENDBOX_HOME/state/snapshots/undo" -type f ! -name '*.lock')" ""
is "... git agrees" "$(as git -c safe.directory='*' status --porcelain src)" ""
cd "$work/p" || exit 1
