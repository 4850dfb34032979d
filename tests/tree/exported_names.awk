# Prints "HEADER NAME" for each name that a header exports: tags, enumerators, typedefs, macros, functions, variables.
# A scan of braces and words, not a parser: enough for headers in the style of this tree.

function put(name)
{
    if (name != "") print FILENAME, name
}

# Forgets the declaration that ended.
function forget()
{
    declaration = function_name = variable = pointer_name = previous = ""
    parentheses = 0
}

function open_brace(    words)
{
    if (declaration == "extern") { # extern "C" {
        linkage++
        forget()
        return
    }
    if (++depth == 1) in_function = declaration ~ /\(/
    is_enum[depth] = !in_function && since ~ /(^| )enum( [A-Za-z_0-9]+)?$/
    expected = is_enum[depth]
    if (depth > 1) return
    split(declaration, words, " ")
    if (declaration ~ /^(struct|union|enum) [A-Za-z_]+[^(]*$/) put(words[2])
    put(function_name)
    function_name = ""
}

function close_brace()
{
    since = ""
    if (depth == 0) linkage--
    else if (--depth == 0) {
        if (declaration ~ /\(/) forget() # the body of an inline function; a struct ends with its semicolon
        parentheses = 0
    }
}

# The variable before a comma or semicolon, or a function that is declared by the name of its type.
function put_variable()
{
    if (declaration ~ /^(extern|static) / || declaration ~ /^[A-Za-z_0-9]+ [^(]*$/ && declaration !~ /^(struct|union|enum|typedef|template) /)
        put(variable != "" ? variable : previous)
    variable = ""
}

function end_declaration()
{
    if (declaration ~ /^typedef/) put(pointer_name != "" ? pointer_name : function_name != "" ? function_name : previous)
    else if (function_name != "" && function_name != "static_assert") put(function_name)
    else put_variable()
    forget()
}

function see_enumerator(word)
{
    if (word == "(") nested++
    else if (word == ")") nested--
    else if (word == "," && !nested) expected = 1
    else if (expected && word ~ /^[A-Za-z_]/) {
        put(word)
        expected = 0
    }
}

function see_word(word)
{
    if (word == "(") {
        if (parentheses++ == 0 && function_name == "" && previous ~ /^[A-Za-z]/) function_name = previous
    } else if (word == ")") parentheses--
    else if ((word == "[" || word == "=") && variable == "" && parentheses == 0) variable = previous
    else if (word == "," && parentheses == 0 && function_name == "") put_variable()
    else if (word == "*" && previous == "(") pointer_name = "*"
    else if (word ~ /^[A-Za-z_]/ && pointer_name == "*") pointer_name = word
    if (word ~ /^[A-Za-z_(]/) declaration = declaration (declaration == "" ? "" : " ") word
    previous = word
}

function see(text,    word)
{
    while (match(text, /[A-Za-z_][A-Za-z0-9_]*|[{}();,=*]|\[/)) {
        word = substr(text, RSTART, RLENGTH)
        text = substr(text, RSTART + RLENGTH)
        if (word == "{") open_brace()
        else if (word == "}") close_brace()
        else if (is_enum[depth] && depth > 0) see_enumerator(word)
        else if (depth > 0) since = word ~ /^[A-Za-z_]/ ? since " " word : ""
        else {
            if (word == ";") end_declaration()
            else see_word(word)
            since = declaration
        }
        if (word == "{" || word == ";") since = ""
    }
}

FNR == 1 {
    depth = linkage = nested = in_comment = in_directive = 0
    since = ""
    forget()
}

{
    rest = $0
    clean = ""
    while (rest != "") {
        if (in_comment) {
            at = index(rest, "*/")
            if (!at) break
            rest = substr(rest, at + 2)
            in_comment = 0
        } else if (match(rest, /"(\\.|[^"\\])*"|'(\\.|[^'\\])*'|\/\/.*|\/\*/)) {
            in_comment = substr(rest, RSTART, RLENGTH) == "/*"
            clean = clean substr(rest, 1, RSTART - 1) " "
            rest = substr(rest, RSTART + RLENGTH)
        } else {
            clean = clean rest
            rest = ""
        }
    }
    if (in_directive || clean ~ /^[ \t]*#/) {
        if (!in_directive && match(clean, /^[ \t]*#[ \t]*define[ \t]+[A-Za-z_][A-Za-z0-9_]*/)) {
            word = substr(clean, 1, RLENGTH)
            sub(/.*[ \t]/, "", word)
            if (word !~ /^SPILLWAY_.*_C?U?H$/) put(word) # all but the guard
        }
        in_directive = clean ~ /\\[ \t]*$/
    } else see(clean)
}
