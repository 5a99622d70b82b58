#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <nki/nki.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Exit statuses: the contract of docs/cli.md.
enum { EXIT_DONE = 0, EXIT_DIAG = 1, EXIT_USAGE = 2, EXIT_DIFFERS = 3, EXIT_OTHER = 4 };

enum { STAGE_MAX = 8 };

typedef enum memory_form { MEMORY_NONE, MEMORY_TEXT, MEMORY_SVG } memory_form;

typedef struct named_text {
    const char *name, *value;
} named_text;

// The command line after parsing. Lists are malloc'ed and live until the process ends.
typedef struct cli_opts {
    char **words;  // FILE, values, names: what is not an option, in order
    size_t word_count;
    char **tried;  // words of a `# try:` line, which the others point into
    const char *target;
    uint32_t grid, rank, threads, seed, repeat, warmup;
    const char **roots;
    size_t root_count;
    nki_env *env;
    size_t env_count;
    const char **warnings;
    size_t warning_count;
    named_text *expect;
    size_t expect_count;
    const char *dump, *stop_after, *out_dir, *out_file;
    const char *json_file, *csv_file, *perfetto_file, *html_file, *against;  // nki profile
    const char *as;  // nki bindgen
    named_text *trips, *machine;
    size_t trip_count, machine_count;
    bool instructions, list_schedule, verify, spill, fp32_store;
    memory_form memory_map;  // nki inspect
    const char **watches, **breaks;  // nki run, below too
    size_t watch_count, break_count;
    named_text *saves;
    size_t save_count;
    const char *commands;
    bool reorder;            // nki run --order
    uint64_t order_seed;
    nki_diag_format diag_format;
    int color;  // 0 or 1, after --color and the terminal were looked at
    bool quiet, verbose, help, parse_only, run_checks, times, print, raw, man;
    double rtol, atol;
    uint64_t memory_limit_bytes, step_limit;
} cli_opts;

// What the words of a command are, beside its options.
typedef enum command_words {
    WORDS_NONE,
    WORDS_KERNEL,  // a kernel file or a container, then NAME=VALUE
    WORDS_FILES,
    WORDS_INSTRUCTIONS,
    WORDS_DIAGNOSTICS,
    WORDS_COMMANDS,
    WORDS_SHELLS,
} command_words;

typedef struct command {
    const char *name;
    const char *usage;    // without "nki NAME"; one form a line
    const char *summary;  // a line
    const char *text;     // paragraphs with an empty line between; lines that begin with blanks stay
    command_words words;
    int (*run)(cli_opts *o);
} command;

#define COMMAND(name) extern const command command_##name;
#include "cli/commands.def"
#undef COMMAND

// Says what is wrong with the command line on standard error; returns EXIT_USAGE.
int usage_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
// A sentence about a file, memory or nki itself; returns EXIT_OTHER.
int other_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

// The same for a command that does not exist.
int unknown_command(const char *word);

// Parses the words after the command's name. Returns EXIT_DONE, or EXIT_USAGE after a message.
int opts_parse(const command *c, int argc, char **argv, cli_opts *o);
// The same for more words on top of what o holds (a file's `# try:` line).
int opts_more(const command *c, int argc, char **argv, cli_opts *o);

// ---- what commands on kernels share (session.c)

typedef struct session {
    cli_opts *o;
    nki_context *ctx;
    nki_diags *diags;
    nki_times times;
    size_t findings;  // of the run-time checks
} session;

int session_open(session *s, cli_opts *o);
void session_close(session *s);
// Shows the diagnostics recorded since the last time.
void session_show(session *s);
// Shows them and turns a status into an exit status with its sentence.
int session_result(session *s, nki_status st);

// FILE or FILE::KERNEL; "-" is standard input, read once.
typedef struct target_file {
    char *path, *kernel;  // kernel NULL: the file's one
    char *text;           // standard input's, else NULL
    size_t len;
} target_file;
int target_open(const char *word, target_file *t);
void target_close(target_file *t);
nki_source target_source(const target_file *t);

// The target that a container names, when none was given.
void target_from_container(cli_opts *o, const char *path);
// Reads and loads a container. Returns an exit status, after a message.
int session_load(session *s, const char *path, nki_kernel **k);

// Compile options with the dump sink of o.
nki_compile_opts session_compile_opts(session *s);
// Words of the file's `# try:` line, or NULL when there is none. malloc'ed, kept by the caller.
char **try_words(const target_file *t, int *count);

// Whether the path is that of a container file.
bool is_container(const char *path);
// All of a file, or of standard input for "-". NULL after a message in *why (static or errno's).
char *read_file(const char *path, size_t *len, const char **why);
// Writes a file, or standard output for "-". Returns an exit status, after a message.
int write_file(const char *path, const void *bytes, size_t len);
// Creates the folder and its parents. false with errno.
bool make_dirs(const char *path);

#endif
