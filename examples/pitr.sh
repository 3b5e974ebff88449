#!/bin/sh
# SPDX-License-Identifier: MIT
# pitr.sh -- point-in-time restore: bring an index back to the moment before a mistake.
#
# A directory tree is indexed (fileindex), the index is backed up, and goes on being
# updated.  Then somebody removes half of the tree, and an update takes it out of the index,
# too.  From the backup and the log files since, the index is restored to the moment before.
#
# usage: pitr.sh [DIR], where DIR is that of the built programs (default: .).  Exit status 0
# if what was restored is what was there.
set -eu
LC_ALL=C
export LC_ALL
top=$(cd "${1:-.}" && pwd)
work=$(mktemp -d)
trap 'cd /; rm -rf "$work"' EXIT
cd "$work"

say()
{
    printf '\n== %s\n' "$*"
}

run()
{
    printf '$ %s\n' "$*"
    command=$1
    shift
    if [ "$command" = fileindex ]; then command=examples/fileindex; fi
    "$top/$command" "$@"
}

# files N WHERE -- make N files.
files()
{
    mkdir -p "tree/$2"
    i=0
    while [ $i -lt "$1" ]; do
        echo "$2 $i" >"tree/$2/file$i"
        i=$((i + 1))
    done
}

say "An index of a tree; its log is kept from now on, for an archive; and a backup"
files 300 notes
files 50 letters
run fileindex build --quiet tree index
mkdir archive
run xarchive --move archive index
run xbackup index backup

say "Work goes on; log files that are not needed any more are moved away"
files 400 photos
run fileindex update --quiet tree index
echo changed >tree/notes/file7
run fileindex update --quiet tree index
run xarchive --move archive index

before=$(date -u +%Y-%m-%dT%H:%M:%S.%NZ)
run fileindex query index "$work/tree" >wanted
say "This is the moment to come back to: $before"
wc -l <wanted

say "The mistake: a directory goes, and the index is told so"
rm -r tree/photos
run fileindex update --quiet tree index
run fileindex query index "$work/tree" >spoilt
wc -l <spoilt

say "Restore: the backup, and all log files since"
cp -a backup restored
for file in archive/xac-* index/xac-log.* index/xac-data.*; do
    if [ -e "$file" ]; then cp -a "$file" restored/; fi
done
run xrecover --until "$before" restored
run fileindex check restored
run fileindex query restored "$work/tree" >found
wc -l <found

if ! sed 1d wanted >a || ! sed 1d found >b || ! cmp -s a b; then
    diff wanted found | head
    echo "pitr: the restored index is not what it was"
    exit 1
fi
if cmp -s found spoilt; then
    echo "pitr: the restored index has the mistake"
    exit 1
fi

say "A moment before the end of the backup is refused"
cp -a backup early
if run xrecover --until @1000000000 early; then
    echo "pitr: a backup was restored to before it was whole"
    exit 1
fi

say "The restored index is what it was, $(wc -l <b) paths"
