/* SPDX-License-Identifier: MIT */
/*
 * archive_env.h -- for tests of archives: a writer with a clock, an rclone of our own, and the tools.
 *
 * Defines things, so it is included once per program.
 */
#ifndef XAC_TEST_ARCHIVE_ENV_H
#define XAC_TEST_ARCHIVE_ENV_H

#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/unit/ship/standby_env.h"
#include "tests/common/tool_run.h"

#define DEST    "dest"
#define OWN     ":own:" DEST
#define NEW     "new"
#define HISTORY 4000

/* ---- The environment -------------------------------------------------------------- */

/* After transaction k, and before the next one, it was when[k]. */
static _Atomic uint64_t *when;

static uint64_t
now_ns(void)
{
    struct timespec t;

    must_ok(clock_gettime(CLOCK_REALTIME, &t));
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* write_timed -- a child: board->n transactions behind those that there are. */
static void
write_timed(void *arg)
{
    uint64_t *x, k;

    (void)arg;
    must_ok(xSetOption(XAC_OPT_LOG_SEGMENT_BYTES, board->segment_bytes));
    x = (uint64_t *)env_attach(DURABLE, PAGES);
    k = env_get(x);
    for (uint64_t i = 0; i < board->n && word_load(&board->stop) == 0; i++) {
        int rc;

        k++;
        word_store(&board->written, k);
        do {
            must_ok(xbegin());
            do_transaction(x, k);
            rc = xend();
        } while (rc == ABORTED);
        must_rc(rc, COMMITTED);
        word_store(&when[k], now_ns());
        word_store(&board->acknowledged, k);
        if (board->pause_us != 0)
            proc_sleep_us(board->pause_us);
        if (board->checkpoint_every != 0 && k % board->checkpoint_every == 0)
            must_ok(xCheckpoint());
    }
    if (!board->leaves)
        env_detach();
}

static void
start(void)
{
    setup();
    when = (_Atomic uint64_t *)proc_shared(HISTORY * sizeof *when);
    must_ok(mkdir(DEST, 0777));
}

/* commit -- n transactions. */
static void
commit(uint64_t n)
{
    board->n = n;
    proc_run(write_timed, NULL);
}

/* ---- Our rclone ------------------------------------------------------------------- */

/*
 * Each operation counts one in `n`; if that is the number in `plan` the mode in `mode` says what happens: fail
 * before or after it is done, or half done, or kill the caller before or after.  In mode `always` all fail.
 */
static const char own[] =
    "#!/bin/sh\n"
    "c=$1; shift; a=; b=\n"
    "while [ $# -gt 0 ]; do case $1 in --retries) shift;; --*) ;;\n"
    "  *) if [ -z \"$a\" ]; then a=${1#:own:}; else b=${1#:own:}; fi;; esac; shift; done\n"
    "n=$(($(cat n 2>/dev/null || echo 0) + 1)); echo $n >n\n"
    "m=; if [ \"$(cat plan 2>/dev/null)\" = $n ] || grep -q always mode 2>/dev/null; then\n"
    "  m=$(cat mode); fi\n"
    "if [ \"$(cat mode 2>/dev/null)\" = log ] && [ $c = copyto ]; then case $b in */log.*)\n"
    "  if [ ! -e failed ]; then touch failed; m=before; fi;; esac; fi\n"
    "case $m in before|always) echo 'ERROR : planned' >&2; exit 7;;\n"
    "  kill-before) kill -9 $PPID; exit 7;; esac\n"
    "case $c in\n"
    "lsf) if [ -d \"$a\" ]; then ls \"$a\"; elif [ -f \"$a\" ]; then basename \"$a\"; else\n"
    "  echo 'directory not found' >&2; exit 3; fi;;\n"
    "cat) if [ ! -f \"$a\" ]; then echo 'object not found' >&2; exit 3; fi; cat \"$a\";;\n"
    "copyto) if [ -e \"$b\" ]; then echo 'immutable file modified' >&2; exit 1; fi\n"
    "  if [ \"$m\" = half ]; then head -c 20 \"$a\" >\"$b\"; exit 7; fi\n"
    "  cp \"$a\" \"$b\"; basename \"$b\" >>order;;\n"
    "deletefile) rm \"$a\";;\n"
    "esac || exit 1\n"
    "case $m in after|half) exit 7;; kill-after) kill -9 $PPID;; esac\n"
    "exit 0\n";

/* text_write -- a file of a test. */
static void
text_write(const char *path, const char *text)
{
    (void)unlink(path);
    file_write(path, 0, text, strlen(text));
}

static void
own_make(void)
{
    char cwd[1000], path[3000];

    must(getcwd(cwd, sizeof cwd) != NULL);
    must_ok(mkdir("bin", 0777));
    text_write("bin/rclone", own);
    must_ok(chmod("bin/rclone", 0755));
    (void)snprintf(path, sizeof path, "%s/bin:%s", cwd, getenv("PATH"));
    must_ok(setenv("PATH", path, 1));
}

/* plan -- the n-th operation from now on. */
static void
plan(uint64_t n, const char *mode)
{
    char text[24];

    (void)snprintf(text, sizeof text, "%llu\n", (unsigned long long)n);
    text_write("n", "0\n");
    text_write("plan", text);
    text_write("mode", mode);
}

/* n_operations -- since then. */
static uint64_t
n_operations(void)
{
    char text[24] = "";
    int fd = open("n", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return 0;
    (void)!read(fd, text, sizeof text - 1);
    (void)close(fd);
    return strtoull(text, NULL, 10);
}

/* ---- Shipping and restoring ------------------------------------------------------- */

static const char *
top(void)
{
    const char *dir = getenv("top_builddir");

    return dir != NULL ? dir : ".";
}

/* ship_to -- all there is; it must succeed. */
static void
ship_to(const char *dest)
{
    char arguments[200];

    (void)snprintf(arguments, sizeof arguments, "--quiet --to %s", dest);
    if (tool_run("xarchive", arguments, ENV_DIR) != 0)
        env_fail(__FILE__, __LINE__, "%s", output);
}

/* restore -- to NEW; ret the exit code. */
static int
restore(const char *options, const char *src)
{
    char arguments[300];

    run_shell("rm -rf " NEW);
    (void)snprintf(arguments, sizeof arguments, "%s %s", options, src);
    return tool_run("xrestore", arguments, NEW);
}

/* must_restore -- ret the number of the transaction that has come last. */
static uint64_t
must_restore(const char *options, const char *src)
{
    if (restore(options, src) != 0)
        env_fail(__FILE__, __LINE__, "%s", output);
    must(!file_exists(NEW "/xac.unfinished"));
    return must_be_state(NEW IN_COPY);
}

/* start_tool -- ret its process. */
static pid_t
start_tool(const char *tool, const char *arguments, const char *log)
{
    char command[5000];
    pid_t pid;

    (void)snprintf(command, sizeof command, "exec %s/%s %s >%s 2>&1", top(), tool,
                   arguments, log);
    pid = fork();
    if (pid == 0) {
        (void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    must(pid > 0);
    return pid;
}

/* end_tool -- in order; ret the exit code. */
static int
end_tool(pid_t pid)
{
    int status;

    must_ok(kill(pid, SIGTERM));
    status = proc_wait(pid);
    must(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* await_words -- in the log of a tool. */
static void
await_words(const char *log, const char *words)
{
    for (int i = 0; i < 3000; i++) {
        int fd = open(log, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? 0 : read(fd, output, sizeof output - 1);

        output[n > 0 ? n : 0] = '\0';
        if (fd >= 0)
            (void)close(fd);
        if (strstr(output, words) != NULL)
            return;
        proc_sleep_us(10000);
    }
    env_fail(__FILE__, __LINE__, "not said: %s: %s", words, output);
}

/* first_backup -- the time of it, from xrestore --list. */
static uint64_t
first_backup(const char *src)
{
    const char *at;

    must_eq(tool_run("xrestore", "--list --json", src), 0);
    at = strstr(output, "\"from_time_ns\": ");
    must(at != NULL);
    return strtoull(at + 16, NULL, 10);
}

#endif /* XAC_TEST_ARCHIVE_ENV_H */
