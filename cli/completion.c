#include "cli/table.h"

#include <ctype.h>
#include <string.h>

// What a value in capitals is: a path, or something that only its writer knows.
typedef enum value_kind {
    VALUE_FREE,
    VALUE_WORDS,
    VALUE_FILE,
    VALUE_DIR,
    VALUE_WARNING
} value_kind;

static value_kind kind_of(const option_row *r)
{
    const char *value = r->value;
    const char *eq = strchr(value, '=');
    const char *v = eq ? eq + 1 : value;
    return r->takes == TAKES_GLUED          ? VALUE_WARNING
           : islower((unsigned char)*value) ? VALUE_WORDS
           : strncmp(v, "FILE", 4) == 0     ? VALUE_FILE
           : strncmp(v, "DIR", 3) == 0      ? VALUE_DIR
                                            : VALUE_FREE;
}

static void blank_words(FILE *to, const char *value)
{
    const char *word;
    size_t n;
    for (size_t i = 0; value_word(value, i, &word, &n); i++) {
        fprintf(to, "%s%.*s", i ? " " : "", (int)n, word);
    }
}

// ---- bash

static void bash_options(FILE *to)
{
    fputs("    case $command in\n", to);
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        fprintf(to, "    %s) options='", command_table[i]->name);
        const char *between = "";
        for (int id = 0; id < OPTION_COUNT; id++) {
            if (option_taken((option_id)id, command_table[i])) {
                fprintf(to, "%s%s", between, option_table[id].name);
                between = " ";
            }
        }
        fputs("' ;;\n", to);
    }
    fputs("    esac\n", to);
}

static void bash_values(FILE *to)
{
    fputs("    case $option in\n", to);
    for (int id = 0; id < OPTION_COUNT; id++) {
        const option_row *r = &option_table[id];
        if (r->takes == TAKES_NONE) {
            continue;
        }
        fprintf(to, "    %s) ", r->name);
        switch (kind_of(r)) {
        case VALUE_FREE: fputs("_nki_none", to); break;
        case VALUE_WORDS:
            fputs("_nki_words '", to);
            blank_words(to, r->value);
            fputs("'", to);
            break;
        case VALUE_FILE: fputs("_nki_files", to); break;
        case VALUE_DIR: fputs("_nki_dirs", to); break;
        case VALUE_WARNING: fputs("_nki_warnings", to); break;
        }
        fputs(" ;;\n", to);
    }
    fputs("    *) return 1 ;;\n    esac\n", to);
}

static void bash_positional(FILE *to)
{
    static const char *const how[] = {
        [WORDS_NONE] = "_nki_none",
        [WORDS_KERNEL] = "_nki_kernel",
        [WORDS_FILES] = "_nki_files",
        [WORDS_INSTRUCTIONS] = "_nki_words \"$(_nki_column 1 isa)\"",
        [WORDS_DIAGNOSTICS] = "_nki_words \"$(_nki_column 2 explain)\"",
        [WORDS_COMMANDS] = "_nki_words \"$commands\"",
        [WORDS_SHELLS] = "_nki_words 'bash zsh'",
    };
    fputs("    case $command in\n", to);
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        fprintf(to, "    %s) %s ;;\n", command_table[i]->name, how[command_table[i]->words]);
    }
    fputs("    esac\n", to);
}

// The word is taken from the line itself, since bash splits at the characters of COMP_WORDBREAKS;
// what it has split off is taken off the replies again.
static const char bash_head[] =
    "# bash completion of nki; made by `nki completion bash`.\n"
    "_nki_reply() {\n"
    "    local i cut=${word%\"${word##*[=:@]}\"}\n"
    "    for i in \"${!COMPREPLY[@]}\"; do COMPREPLY[i]=${lead}${COMPREPLY[i]}; done\n"
    "    for i in \"${!COMPREPLY[@]}\"; do COMPREPLY[i]=${COMPREPLY[i]#\"$cut\"}; done\n"
    "}\n"
    "_nki_words() { COMPREPLY=($(compgen -W \"$1\" -- \"$cur\")); }\n"
    "_nki_none() { COMPREPLY=(); }\n"
    "_nki_paths() { # compgen's arguments\n"
    "    local IFS=$'\\n'\n"
    "    compopt -o filenames 2>/dev/null\n"
    "    COMPREPLY=($(compgen \"$@\" -- \"$cur\"))\n"
    "}\n"
    "_nki_behind() { # what the value begins behind: NAME= or @\n"
    "    lead=${word%\"${cur##*$1}\"}\n"
    "    cur=${cur##*$1}\n"
    "}\n"
    "_nki_files() { _nki_behind =; _nki_paths -f; }\n"
    "_nki_dirs() { _nki_paths -d; }\n"
    "_nki_column() { \"${COMP_WORDS[0]}\" $2 2>/dev/null | awk -v n=\"$1\" '/^[a-z]/ {print $n}'; "
    "}\n"
    "_nki_warnings() {\n"
    "    local names=$(\"${COMP_WORDS[0]}\" explain 2>/dev/null | awk '/^warning/ {print $2}')\n"
    "    _nki_words \"error $names $(printf 'no-%s ' $names)\"\n"
    "}\n"
    "_nki_kernel() {\n"
    "    if [[ $cur == *@* ]]; then\n"
    "        _nki_behind @\n"
    "        _nki_paths -f -X '!*.npy'\n"
    "    else\n"
    "        _nki_paths -f -X '!*.@(nki|py|neff)'\n"
    "    fi\n"
    "    COMPREPLY+=($(compgen -d -- \"$cur\"))\n"
    "}\n";

static const char bash_main[] =
    "_nki() {\n"
    "    local line=${COMP_LINE:0:COMP_POINT} word cur lead= previous before "
    "command=${COMP_WORDS[1]}\n"
    "    word=${line##*[[:space:]]} cur=$word\n"
    "    before=${line%\"$word\"} before=${before%\"${before##*[![:space:]]}\"}\n"
    "    previous=${before##*[[:space:]]}\n"
    "    COMPREPLY=()\n"
    "    if ((COMP_CWORD <= 1)); then\n"
    "        _nki_words \"$commands --help --version\"\n"
    "    elif [[ $word == --*=* ]]; then\n"
    "        lead=${word%%=*}= cur=${word#*=}\n"
    "        _nki_value \"${word%%=*}\"\n"
    "    elif [[ $word == -W* ]]; then\n"
    "        lead=-W cur=${word#-W}\n"
    "        _nki_value -W\n"
    "    elif [[ $previous == -?* && $previous != *=* ]] && _nki_takes \"$previous\" && _nki_value "
    "\"$previous\"; then\n"
    "        :\n"
    "    elif [[ $word == -* ]]; then\n"
    "        _nki_words \"$options\"\n"
    "    else\n"
    "        _nki_positional\n"
    "    fi\n"
    "    _nki_reply\n"
    "}\n"
    "shopt -s extglob\n"
    "complete -F _nki nki\n";

void completion_bash(FILE *to)
{
    fputs(bash_head, to);
    fputs("_nki_value() {\n    local option=$1\n", to);
    bash_values(to);
    fputs("}\n_nki_takes() { # the next word is its value\n    case $1 in\n    ", to);
    const char *between = "";
    for (int id = 0; id < OPTION_COUNT; id++) {
        if (option_table[id].takes == TAKES_VALUE) {
            fprintf(to, "%s%s", between, option_table[id].name);
            between = " | ";
        }
    }
    fputs(") ;;\n    *) return 1 ;;\n    esac\n}\n_nki_positional() {\n", to);
    bash_positional(to);
    fputs("}\n", to);
    // The lists stand before what uses them.
    const char *body = strchr(bash_main, '\n') + 1;
    fprintf(to, "%.*s    local commands='", (int)(body - bash_main), bash_main);
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        fprintf(to, "%s%s", i ? " " : "", command_table[i]->name);
    }
    fputs("' options=\n", to);
    const char *rest = strchr(body, '\n') + 1;
    fwrite(body, 1, (size_t)(rest - body), to);
    bash_options(to);
    fputs(rest, to);
}

// ---- zsh

// In single quotes and brackets.
static void zsh_text(FILE *to, const char *text)
{
    for (; *text; text++) {
        if (*text == '\'') {
            fputs("'\\''", to);
        } else {
            fprintf(to, strchr("[]:\\", *text) ? "\\%c" : "%c", *text);
        }
    }
}

static void zsh_option(FILE *to, const option_row *r)
{
    static const char *const glue[] = {
        [TAKES_NONE] = "", [TAKES_VALUE] = "=", [TAKES_MAYBE] = "=-", [TAKES_GLUED] = "-"};
    bool is_short = strlen(r->name) == 2;
    fprintf(to, "            '*%s%s[", r->name,
            is_short && r->takes == TAKES_VALUE ? "+" : glue[r->takes]);
    zsh_text(to, r->text);
    fputs("]", to);
    if (r->takes != TAKES_NONE) {
        fputs(r->takes == TAKES_MAYBE ? "::" : ":", to);
        zsh_text(to, r->value);
        fputs(":", to);
        switch (kind_of(r)) {
        case VALUE_FREE: fputs(" ", to); break;
        case VALUE_WORDS:
            fputs("(", to);
            blank_words(to, r->value);
            fputs(")", to);
            break;
        case VALUE_FILE: fputs("_nki_file", to); break;
        case VALUE_DIR: fputs("_files -/", to); break;
        case VALUE_WARNING: fputs("_nki_warning", to); break;
        }
    }
    fputs("' \\\n", to);
}

static const char zsh_head[] =
    "#compdef nki\n"
    "# zsh completion of nki; made by `nki completion zsh`.\n"
    "_nki_column() { $nki $2 2>/dev/null | awk -v n=$1 '/^[a-z]/ {print $n}' }\n"
    "_nki_file() { compset -P '*='; _files }\n"
    "_nki_warning() {\n"
    "    local -a names=(${(f)\"$($nki explain 2>/dev/null | awk '/^warning/ {print $2}')\"})\n"
    "    compadd error $names no-$^names\n"
    "}\n"
    "_nki_kernel() {\n"
    "    if compset -P '*@'; then _files -g '*.npy'; else _files -g '*.(nki|py|neff)'; fi\n"
    "}\n"
    "_nki_instruction() { compadd ${(f)\"$(_nki_column 1 isa)\"} }\n"
    "_nki_diagnostic() { compadd ${(f)\"$(_nki_column 2 explain)\"} }\n"
    "_nki() {\n"
    "    local nki=$words[1]\n"
    "    local -a commands=(\n";

void completion_zsh(FILE *to)
{
    static const char *const how[] = {
        [WORDS_NONE] = NULL,
        [WORDS_KERNEL] = "_nki_kernel",
        [WORDS_FILES] = "_files",
        [WORDS_INSTRUCTIONS] = "_nki_instruction",
        [WORDS_DIAGNOSTICS] = "_nki_diagnostic",
        [WORDS_COMMANDS] = "_nki_command",
        [WORDS_SHELLS] = "(bash zsh)",
    };
    fputs(zsh_head, to);
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        fprintf(to, "        '%s:", command_table[i]->name);
        zsh_text(to, command_table[i]->summary);
        fputs("'\n", to);
    }
    fputs("    )\n"
          "    _nki_command() { _describe command commands }\n"
          "    if ((CURRENT == 2)); then\n"
          "        _nki_command\n"
          "        return\n"
          "    fi\n"
          "    shift words\n"
          "    ((CURRENT--))\n"
          "    case $words[1] in\n",
          to);
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        const command *c = command_table[i];
        fprintf(to, "    %s)\n        _arguments \\\n", c->name);
        for (int id = 0; id < OPTION_COUNT; id++) {
            if (option_taken((option_id)id, c)) {
                zsh_option(to, &option_table[id]);
            }
        }
        fprintf(to, "            '*:word:%s'\n        ;;\n", how[c->words] ? how[c->words] : " ");
    }
    fputs("    esac\n}\n_nki \"$@\"\n", to);
}
