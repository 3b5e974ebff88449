/* SPDX-License-Identifier: MIT */
/*
 * check_path.c -- how many source files a reader has to open to follow a store, and a commit.
 *
 * GOAL    A store passes at most 8 files from the signal handler to the page, a commit at most 15
 *         from xend() until it is durable, and doc/ARCHITECTURE.md names them.
 * METHOD  A child process is traced instruction by instruction.  `addr2line` says in which source
 *         file the function lies in which each instruction is.  A function of a header counts for
 *         the source that it is called from, and files of base/ do not count.
 *
 * XAC_PATH=1  prints the files and the functions that are passed
 */
#include <config.h>

#include <elf.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/common/env.h"

/* Sanitizers and a debug build pass their own checks. */
#if !defined(__x86_64__) || defined(__SANITIZE_ADDRESS__) \
    || defined(__SANITIZE_THREAD__) || defined(XAC_DEBUG)

int
main(void)
{
    puts("skipped: another build passes other files");
    return 77;
}

#else

# define STORE_MOST  8
# define COMMIT_MOST 15
# define TURN_FILES  2 /* of these, under the serial policy only: it, and the turn       */

# define DOC        "doc/ARCHITECTURE.md"
# define FILES_MAX  64
# define NAME_BYTES 64

/* Commits before the one that is followed: what is done only once has been done, and it is not one
   of those that collect garbage (each eighth). */
# define N_BEFORE   20

struct files {
    size_t n;
    char name[FILES_MAX][NAME_BYTES];
};

struct situation {
    const char *name;
    int flags;
    uint64_t checking;
    bool is_beside; /* another process takes part                                      */
    enum xac_policy_kind policy;
};

static const struct situation situations[] = {
    {"not durable, alone", 0, XAC_CHECKING_FAST, false, XAC_POLICY_OLDEST_WINS},
    {"not durable, alone, strict", 0, XAC_CHECKING_STRICT, false, XAC_POLICY_OLDEST_WINS},
    {"not durable, beside another process", 0, XAC_CHECKING_FAST, true,
     XAC_POLICY_OLDEST_WINS},
    {"durable, alone", XAC_DURABLE, XAC_CHECKING_FAST, false, XAC_POLICY_OLDEST_WINS},
    {"durable, alone, strict", XAC_DURABLE, XAC_CHECKING_STRICT, false,
     XAC_POLICY_OLDEST_WINS},
    {"durable, beside another process", XAC_DURABLE, XAC_CHECKING_FAST, true,
     XAC_POLICY_OLDEST_WINS},
    {"not durable, alone, serial", 0, XAC_CHECKING_FAST, false, XAC_POLICY_SERIAL},
    {"durable, alone, serial", XAC_DURABLE, XAC_CHECKING_FAST, false, XAC_POLICY_SERIAL},
    {"durable, beside another process, serial", XAC_DURABLE, XAC_CHECKING_FAST, true,
     XAC_POLICY_SERIAL},
};

# define N_SITUATIONS (sizeof situations / sizeof situations[0])

/* The engine that the child has: another one passes other files. */
static _Atomic uint64_t *engine;

/* Where the sources lie, as addr2line has it. */
static char sources[PATH_MAX];

/* ---- Instructions ----------------------------------------------------------------------- */

extern const char __executable_start[], etext[];

/* pc_of -- where the stopped child is. */
static uintptr_t
pc_of(pid_t pid)
{
    struct user_regs_struct regs;

    must(ptrace(PTRACE_GETREGS, pid, NULL, &regs) == 0);
    return regs.rip;
}

/* follow -- run the child until its first SIGUSR1, then step by step until the second; note where
   it has been, one byte for each byte of the program. */
static void
follow(pid_t pid, uint8_t *seen)
{
    bool is_stepping = false;
    int status, signal = 0;

    must(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)); /* SIGSTOP */
    for (;;) {
        must(ptrace(is_stepping ? PTRACE_SINGLESTEP : PTRACE_CONT, pid, NULL, signal)
             == 0);
        must(waitpid(pid, &status, 0) == pid);
        must(WIFSTOPPED(status));
        signal = WSTOPSIG(status);
        if (signal == SIGUSR1) {
            signal = 0;
            if (is_stepping)
                break;
            is_stepping = true;
        } else if (is_stepping) {
            const char *pc = (const char *)pc_of(pid); /* NOLINT */

            if (signal == SIGTRAP)
                signal = 0;
            if (pc >= __executable_start && pc < etext)
                seen[pc - __executable_start] = 1;
        }
    }
    must(ptrace(PTRACE_CONT, pid, NULL, 0) == 0);
    must(waitpid(pid, &status, 0) == pid);
    must(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static size_t
text_bytes(void)
{
    return (size_t)(etext - __executable_start);
}

/* link_address -- of the program's first byte, for addr2line. */
static unsigned long
link_address(void)
{
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)(const void *)__executable_start;

    return head->e_type == ET_DYN ? 0 : (unsigned long)(uintptr_t)__executable_start;
}

/* ---- Files ------------------------------------------------------------------------------ */

static void
files_add(struct files *f, const char *name)
{
    for (size_t i = 0; i < f->n; i++) {
        if (strcmp(f->name[i], name) == 0)
            return;
    }
    must(f->n < FILES_MAX && strlen(name) < NAME_BYTES);
    memcpy(f->name[f->n++], name, strlen(name) + 1);
}

/* add_line -- one line of addr2line, "DIR/libxac/ROOM/FILE:LINE", if it counts. */
static void
add_line(struct files *f, char *line)
{
    char *room = strstr(line, "/libxac/"), *file;

    if (room == NULL)
        return;
    (void)snprintf(sources, sizeof sources, "%.*s", (int)(room - line), line);
    room += strlen("/libxac/");
    line[strcspn(line, ":\n")] = '\0';
    file = strrchr(room, '/');
    if (file == NULL || strncmp(room, "base/", 5) == 0 || strstr(file, ".h") != NULL)
        return;
    files_add(f, file + 1);
}

/* files_of -- the source files in which the instructions lie; false: nobody can tell. */
static bool
files_of(const uint8_t *seen, struct files *f)
{
    char exe[PATH_MAX], command[PATH_MAX + 80], line[PATH_MAX + 80],
        last[sizeof line] = "";
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    FILE *list = fopen("addresses", "w"), *out;
    bool is_verbose = getenv("XAC_PATH") != NULL;

    must(n > 0 && list != NULL);
    exe[n] = '\0';
    for (size_t i = 0; i < text_bytes(); i++) {
        if (seen[i] != 0)
            fprintf(list, "%#lx\n", link_address() + i);
    }
    must(fclose(list) == 0);
    (void)snprintf(command, sizeof command, "addr2line -a -i -e '%s' <addresses", exe);
    out = popen(command, "r"); /* NOLINT */
    must(out != NULL);
    while (fgets(line, sizeof line, out) != NULL) {
        if (strncmp(line, "0x", 2) != 0) {
            (void)memcpy(last, line, sizeof last);
            continue;
        }
        add_line(f, last); /* the outermost of functions that were inlined */
    }
    add_line(f, last);
    (void)pclose(out);
    for (size_t i = 0; is_verbose && i < f->n; i++)
        printf("    %s\n", f->name[i]);
    return f->n > 0;
}

/* passed -- what a child passes between its signals; false: nobody can tell, or it has not the engine
   `uffd`. */
static bool
passed(void (*child)(void *), const struct situation *at, struct files *f)
{
    uint8_t *seen = calloc(text_bytes(), 1);
    pid_t other = 0;
    bool is_known;

    must(seen != NULL);
    must_ok(xac_set_option(XAC_OPT_POLICY, (uint64_t)at->policy));
    if (at->is_beside)
        other = env_companion(at->flags, 8);
    follow(proc_spawn(child, (void *)(uintptr_t)at), seen);
    f->n = 0;
    is_known = files_of(seen, f);
    free(seen);
    if (other != 0)
        proc_kill(other);
    printf("%-40s %zu files\n", at->name, f->n);
    return is_known && word_load(engine) == XAC_ENGINE_UFFD;
}

/* names -- does the paragraph of DOC that has these words name all of the files?  Prints those
   that it does not. */
static bool
names(const char *words, const struct files *f)
{
    static char text[1 << 17];
    char path[PATH_MAX + sizeof DOC];
    const char *from, *end;
    bool all = true;
    FILE *doc;

    (void)snprintf(path, sizeof path, "%s/" DOC, sources);
    doc = fopen(path, "r");
    must(doc != NULL);
    text[fread(text, 1, sizeof text - 1, doc)] = '\0';
    (void)fclose(doc);
    from = strstr(text, words);
    must(from != NULL);
    end = strstr(from, "\n\n");
    must(end != NULL);
    for (size_t i = 0; i < f->n; i++) {
        const char *at = strstr(from, f->name[i]);

        if (at == NULL || at > end) {
            printf("%s does not name %s\n", DOC, f->name[i]);
            all = false;
        }
    }
    return all;
}

/* ---- What is followed ------------------------------------------------------------------- */

static uint64_t *
attach(const struct situation *at)
{
    uint64_t *base;

    must(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0);
    must(raise(SIGSTOP) == 0);
    env_checking = at->checking;
    base = env_attach(at->flags, 8);
    word_store(engine, (uint64_t)env_stats().engine);
    return base;
}

static void
store_once(void *arg)
{
    uint64_t *base = attach(arg);

    env_increment(env_cell(base, 1));
    must_ok(xbegin());
    (void)raise(SIGUSR1);
    *(volatile uint64_t *)env_cell(base, 3) = 1;
    (void)raise(SIGUSR1);
    must_ok(xend());
}

static void
commit_once(void *arg)
{
    uint64_t *base = attach(arg);

    for (uint64_t i = 0; i < N_BEFORE; i++)
        env_increment(env_cell(base, i % 4));
    must_ok(xbegin());
    *(volatile uint64_t *)env_cell(base, 1) += 1;
    (void)raise(SIGUSR1);
    must_ok(xend());
    (void)raise(SIGUSR1);
}

/* must_pass_few -- files, and all of them named in the paragraph of DOC that has these words. */
static void
must_pass_few(void (*child)(void *), const struct situation *at, size_t most,
              const char *words)
{
    struct files f;

    if (!passed(child, at, &f)) {
        puts("skipped: no debug information, or no userfaultfd");
        return;
    }
    must(f.n <= most);
    must(names(words, &f));
}

START_TEST(store_passes_few_files)
{
    must_pass_few(store_once, &situations[_i], STORE_MOST, "So a store passes");
}
END_TEST

START_TEST(commit_passes_few_files)
{
    const struct situation *at = &situations[_i];
    size_t most = COMMIT_MOST + (at->policy == XAC_POLICY_SERIAL ? TURN_FILES : 0);

    must_pass_few(commit_once, at, most, "commit passes these files");
}
END_TEST

static void
setup(void)
{
    env_setup();
    env_without_frames("its files are others");
    engine = proc_shared(sizeof *engine);
}

int
main(void)
{
    Suite *s = suite_create("path");
    TCase *t = env_tcase_with(s, "path", 120, setup);

    tcase_add_loop_test(t, store_passes_few_files, 0, N_SITUATIONS);
    tcase_add_loop_test(t, commit_passes_few_files, 0, N_SITUATIONS);
    return env_main(s);
}

#endif
