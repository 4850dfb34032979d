# Reads objects.tsv, then lines "HEADER NAME". Complains about names without an owner, and about objects without a name.

function begins(name, word)
{
    return name == word || name == word "s" || index(name, word "_") == 1 || index(name, word "s_") == 1
}

# A word of the header's path, in the plural or singular.
function of_path(header, name,    words, count, i, word)
{
    sub(/\.(cu)?h$/, "", header)
    count = split(header, words, /[\/_]/)
    for (i = 1; i <= count; i++) {
        word = words[i]
        if (begins(name, word)) return 1
        if (sub(/ies$/, "y", word) || sub(/s$/, "", word)) if (begins(name, word)) return 1
    }
    return 0
}

# An object of the header, or of a folder above it.
function of_object(header, name,    object, found)
{
    for (object in owner)
        if (begins(name, object) && (header == owner[object] || index(header, owner[object] "/") == 1)) found = used[object] = 1
    return found
}

FNR == NR {
    if ($1 in owner) print "objects.tsv: '" $1 "' has two owners"
    owner[$1] = $2
    next
}

!of_path($1, tolower($2)) && !of_object($1, tolower($2)) {
    print $1 ": '" $2 "' begins with no word of its header's path and with no object of objects.tsv"
}

END {
    for (object in owner) if (!(object in used)) print "objects.tsv: no name of " owner[object] " needs '" object "'"
}
