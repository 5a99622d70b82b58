// Runs a fuzz target over files, and over the files of folders, without libFuzzer: what was found
// once stays a test with every compiler.
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned replayed;

static int replay_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        return 1;
    }
    size_t len = 0, cap = 1 << 16;
    uint8_t *buf = malloc(cap);
    while (buf) {
        len += fread(buf + len, 1, cap - len, f);
        if (len < cap) {
            break;
        }
        uint8_t *more = realloc(buf, cap *= 2);
        if (!more) {
            free(buf);
        }
        buf = more;
    }
    int bad = !buf || ferror(f);
    fclose(f);
    if (bad) {
        fprintf(stderr, "%s: cannot be read\n", path);
    } else {
        LLVMFuzzerTestOneInput(buf, len);
        replayed++;
    }
    free(buf);
    return bad;
}

static int replay(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
        return replay_file(path);
    }
    DIR *d = opendir(path);
    if (!d) {
        perror(path);
        return 1;
    }
    int bad = 0;
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        char full[4096];
        int n = snprintf(full, sizeof full, "%s/%s", path, e->d_name);
        if (e->d_name[0] != '.' && n > 0 && (size_t)n < sizeof full) {
            bad |= replay(full);
        }
    }
    closedir(d);
    return bad;
}

int main(int argc, char **argv)
{
    int bad = 0;
    for (int i = 1; i < argc; i++) {
        bad |= replay(argv[i]);
    }
    printf("%u inputs replayed\n", replayed);
    return bad || replayed == 0;
}
