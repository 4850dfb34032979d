#!/usr/bin/env bash
# Runs a command with a PATH of only the programs that a bare Debian system has after bootstrap: those of essential and
# required packages, of bootstrap's packages, and of the packages that these depend on. A test that calls another
# program then fails on every machine, not on a fresh one alone.
#
# usage: bare_path.sh SOURCE_FOLDER BUILD_FOLDER "TOOL..." COMMAND...
#
# TOOLs are taken from the caller's PATH, where they are there: a test that says "also uses: TOOL..." skips without
# them. The programs are links in BUILD_FOLDER/bare-path.NUMBER, made again after packages or bootstrap change.
# On a system without dpkg the PATH stays as it is.
set -euo pipefail

source=$1 build=$2
read -ra also <<<"$3"
shift 3
command -v dpkg-query >/dev/null || exec "$@"

# Names of the packages, one a line. Of alternatives the first that is installed counts, unless another is there anyway.
bare_packages() {
    # shellcheck disable=SC2016 # dpkg-query's own variables
    dpkg-query -W -f '${db:Status-Status}\t${Package}\t${binary:Package}\t${Essential}\t${Priority}\t${Provides}\t${Pre-Depends}, ${Depends}\n' |
        awk -F '\t' -v wanted="$("$source/bootstrap" packages)" '
        function plain(name) { gsub(/ |\(.*|:.*|\[.*/, "", name); return name }
        function add(name) { if (!(name in taken)) { taken[name] = 1; queue[last++] = name } }
        function provider(name) { return name in depends ? name : name in provided ? provided[name] : "" }
        $1 == "installed" {
            depends[$2] = $7
            full[$2] = $3
            if ($4 == "yes" || $5 == "required") add($2)
            for (n = split($6, names, ","); n > 0; n--)
                provided[plain(names[n])] = $2
        }
        END {
            for (n = split(wanted, names, "\n"); n > 0; n--)
                if (split(names[n], words, " ") && words[1] in depends) add(words[1]) # what it is for follows its name
            for (first = 0; first < last; first++) {
                print full[queue[first]]
                for (n = split(depends[queue[first]], groups, ","); n > 0; n--) {
                    count = split(groups[n], choices, "|")
                    chosen = ""
                    for (i = count; i > 0; i--) {
                        name = provider(plain(choices[i]))
                        if (name != "" && !(chosen in taken && !(name in taken))) chosen = name
                    }
                    if (chosen != "") add(chosen)
                }
            }
        }'
}

# Links to the programs of the packages, and those names that update-alternatives gives to one of them.
make_links() { # FOLDER
    local packages names path name
    mapfile -t packages < <(bare_packages)
    dpkg-query -L "${packages[@]}" | awk -F / '/^(\/usr)?\/s?bin\/[^\/]+$/ && !seen[$NF]++' >"$1/.programs"
    # shellcheck disable=SC2046 # names of programs hold no spaces
    ln -s $(<"$1/.programs") "$1/"
    mapfile -t names < <(find /usr/bin /usr/sbin -lname '/etc/alternatives/*')
    for path in "${names[@]}"; do
        name=${path##*/}
        path=$(update-alternatives --query "$(basename "$(readlink "$path")")" 2>/dev/null |
            sed -n 's/^Alternative: //p' | grep -xF -f <(sed 's|^/bin/|/usr&|' "$1/.programs") | head -n 1) || continue
        [[ -e $1/$name ]] || ln -s "$path" "$1/$name"
    done
}

key=$(stat -c '%Y %s' /var/lib/dpkg/status "$source/bootstrap" "${BASH_SOURCE[0]}" | cksum)
folder=$build/bare-path.${key%% *}
if [[ ! -d $folder ]]; then
    rm -rf "$build"/bare-path.*
    new=$(mktemp -d "$build/bare-path-new.XXXXXX")
    make_links "$new"
    mv -T "$new" "$folder" 2>/dev/null || rm -rf "$new" # another test was faster
fi
bare=$folder
if ((${#also[@]} > 0)); then
    more=$(mktemp -d "$build/bare-path-also.XXXXXX")
    trap 'rm -rf "$more"' EXIT
    for tool in "${also[@]}"; do
        path=$(type -P "$tool") && ln -s "$path" "$more/$tool"
    done
    bare=$bare:$more
    PATH=$bare "$@"
else
    PATH=$bare exec "$@"
fi
