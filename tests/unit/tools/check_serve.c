/* SPDX-License-Identifier: MIT */
/*
 * check_serve.c -- xship serve and xship follow: standbys that connect, and connect again.
 *
 * GOAL    A standby follows over TCP, over a Unix socket and by TLS.  Whatever breaks, and whenever, it goes on by itself
 *         and loses nothing; what stands still or is silent is noticed in time and keeps nobody waiting.  A
 *         stranger is refused, with words at the server and none for him.
 * METHOD  The programs of the build, connected directly, or through a go-between that cuts the connection at
 *         random times, from a seed that is printed, keeps what it carries, or turns bits of it.
 *         XAC_BREAKS=n and XAC_KILLS=n say how often.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "tests/unit/ship/standby_env.h"
#include "tests/common/tls_files.h"
#include "tests/common/tool_run.h"

#define SECRET "--secret-file secret "

/* ---- The tools ------------------------------------------------------------------------ */

/* start_tool -- in the background; its standard error goes to a log. */
static pid_t
start_tool(const char *arguments, const char *log)
{
    const char *top = getenv("top_builddir");
    char command[5000];
    pid_t pid = fork();

    (void)snprintf(command, sizeof command, "exec %s/xship %s >%s 2>&1",
                   top != NULL ? top : ".", arguments, log);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* with a test that fails */
        (void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    must(pid > 0);
    return pid;
}

/* log_text -- what a tool has said so far, in `output`. */
static const char *
log_text(const char *log)
{
    int fd = open(log, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, output, sizeof output - 1);

    output[n > 0 ? n : 0] = '\0';
    if (fd >= 0)
        (void)close(fd);
    return output;
}

/* await_words -- until a tool says so. */
static void
await_words(const char *log, const char *words, unsigned limit_s)
{
    for (unsigned i = 0; i < limit_s * 20; i++) {
        if (strstr(log_text(log), words) != NULL)
            return;
        proc_sleep_us(50000);
    }
    env_fail(__FILE__, __LINE__, "%s does not say \"%s\": %s", log, words, output);
}

/* count_words -- how often a tool has said so. */
static unsigned
count_words(const char *log, const char *words)
{
    unsigned n = 0;

    for (const char *p = log_text(log); (p = strstr(p, words)) != NULL; p++)
        n++;
    return n;
}

/* start_serve -- at a port of the kernel's choice; *portp is it. */
static pid_t
start_serve(const char *options, unsigned *portp)
{
    char arguments[1000];
    pid_t pid;

    (void)snprintf(arguments, sizeof arguments, "serve --listen 127.0.0.1:%u %s " ENV_DIR,
                   *portp, options);
    (void)unlink("serve.log");
    pid = start_tool(arguments, "serve.log");
    await_words("serve.log", "port ", 20);
    *portp = (unsigned)strtoul(strstr(output, "port ") + 5, NULL, 10);
    return pid;
}

static pid_t
start_follow(const char *options, unsigned port, const char *to, const char *log)
{
    char arguments[1000];

    (void)snprintf(arguments, sizeof arguments, "follow %s 127.0.0.1:%u %s", options,
                   port, to);
    return start_tool(arguments, log);
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

static void
make_secret(const char *file, const char *text)
{
    (void)unlink(file);
    file_write(file, 0, text, strlen(text));
    must_ok(chmod(file, 0600));
}

/* await_standby -- until it has so many transactions; the one that follows stands still while one looks. */
static void
await_standby(pid_t follow, const char *copy, uint64_t k)
{
    char master[100], receiving[100];

    (void)snprintf(master, sizeof master, "%s/xac.master", copy);
    (void)snprintf(receiving, sizeof receiving, "%s/xac.receiving", copy);
    for (int i = 0; i < 600; i++) {
        if (file_exists(master) && !file_exists(receiving)) {
            uint64_t has;

            must_ok(kill(follow, SIGSTOP));
            proc_sleep_us(20000);
            has = judge(copy);
            must_ok(kill(follow, SIGCONT));
            if (has >= k)
                return;
        }
        proc_sleep_us(50000);
    }
    env_fail(__FILE__, __LINE__, "%s does not come to transaction %llu: %s", copy,
             (unsigned long long)k, log_text("follow.log"));
}

/* ---- A go-between --------------------------------------------------------------------- */

/* What it is told, and what it has seen. */
struct between {
    _Atomic uint64_t cuts;   /* cut whenever this grows                                */
    _Atomic uint64_t port;   /* its own                                               */
    _Atomic uint64_t frozen; /* 1: keep the connection, and carry nothing              */
    unsigned to;
    uint64_t turn_at; /* a bit of this byte from the follower; UINT64_MAX: none         */
    _Atomic uint64_t n_kept;
    uint8_t kept[200]; /* the first bytes of the follower's first connection            */
};

static struct between *between;

static int
connect_port(unsigned port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    must(fd >= 0);
    if (connect(fd, (struct sockaddr *)&at, sizeof at) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

/* keep_bytes -- the first ones; turn a bit if that is wanted. */
static void
keep_bytes(uint8_t *buf, size_t n, uint64_t at)
{
    uint64_t kept = word_load(&between->n_kept);

    if (between->turn_at >= at && between->turn_at < at + n)
        buf[between->turn_at - at] ^= 0x10;
    if (kept != at)
        return;
    for (size_t i = 0; i < n && kept < sizeof between->kept; i++)
        between->kept[kept++] = buf[i];
    word_store(&between->n_kept, kept);
}

/* carry -- one connection, until it is cut or ends. */
static void
carry(int a, int b)
{
    uint64_t cuts = word_load(&between->cuts), at = 0;
    int fd[2] = {a, b};
    uint8_t buf[4096];

    while (word_load(&between->cuts) == cuts) {
        struct pollfd p[2] = {{.fd = a, .events = POLLIN}, {.fd = b, .events = POLLIN}};

        if (word_load(&between->frozen) != 0) {
            proc_sleep_us(10000);
            continue;
        }
        if (poll(p, 2, 5) <= 0)
            continue;
        for (int i = 0; i < 2; i++) {
            ssize_t n = p[i].revents != 0 ? read(fd[i], buf, sizeof buf) : -1;

            if (p[i].revents != 0 && n <= 0)
                return;
            if (n > 0 && i == 0) {
                keep_bytes(buf, (size_t)n, at);
                at += (uint64_t)n;
            }
            if (n > 0 && send(fd[1 - i], buf, (size_t)n, MSG_NOSIGNAL) != n)
                return;
        }
    }
}

/* go_between -- a child: one connection after the other. */
static void
go_between(void *arg)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t n = sizeof at;

    (void)arg;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    must_ok(bind(listener, (struct sockaddr *)&at, sizeof at));
    must_ok(listen(listener, 8));
    must_ok(getsockname(listener, (struct sockaddr *)&at, &n));
    word_store(&between->port, ntohs(at.sin_port));
    for (;;) {
        int a = accept(listener, NULL, NULL);
        int b = connect_port(between->to);

        if (b >= 0) {
            carry(a, b);
            (void)close(b);
        }
        (void)close(a);
    }
}

/* start_between -- it and the server; ret its pid. */
static pid_t
start_between(unsigned to)
{
    pid_t pid;

    between = (struct between *)proc_shared(sizeof *between);
    between->to = to;
    between->turn_at = UINT64_MAX;
    pid = proc_spawn(go_between, NULL);
    for (int i = 0; i < 1000 && word_load(&between->port) == 0; i++)
        proc_sleep_us(10000);
    must(word_load(&between->port) != 0);
    return pid;
}

/* ---- Following ------------------------------------------------------------------------ */

/* make_certificates -- of a server, of a follower, of somebody else, and one that has run out. */
static bool
make_certificates(void)
{
    return tls_files_make("authority ca; authority alien\n"
                          "make server server 9 ca IP:127.0.0.1\n"
                          "make follower standby 9 ca DNS:standby\n"
                          "make other other 9 ca DNS:other\n"
                          "make old standby -1 ca DNS:standby\n"
                          "make stranger standby 9 alien DNS:standby\n");
}

/* How the two are connected. */
static const struct {
    const char *serve, *follow;
} ways[] = {
    {"--listen unix:at.sock ", "unix:at.sock "},
    {"--listen unix:at.sock " SECRET, SECRET "unix:at.sock "},
#ifdef HAVE_LIBSSL
    {"--listen unix:at.sock " SECRET TLS_FILES("server"),
     SECRET TLS_FILES("follower") "--tls-name 127.0.0.1 unix:at.sock "},
#endif
};

START_TEST(a_standby_follows)
{
    char arguments[500];
    pid_t serve, follow, writer;
    struct stat st;

    make_secret("secret", "a secret of some length\n");
    if (strstr(ways[_i].serve, "tls") != NULL && !make_certificates())
        return;
    write_n(30);
    (void)snprintf(arguments, sizeof arguments, "follow %s " COPY, ways[_i].follow);
    follow = start_tool(arguments, "follow.log"); /* before there is a server */
    proc_sleep_us(300000);
    (void)snprintf(arguments, sizeof arguments, "serve %s " ENV_DIR, ways[_i].serve);
    serve = start_tool(arguments, "serve.log");
    await_standby(follow, COPY, 30);
    must_ok(stat("at.sock", &st));
    must_eq(st.st_mode & 0777, 0600);
    board->n = 200;
    writer = proc_spawn(write_some, NULL);
    proc_join(writer);
    await_standby(follow, COPY, 230);
    /* The server ends: the standby waits for the next one. */
    must_eq(end_tool(serve), 0);
    must(!file_exists("at.sock"));
    await_words("serve.log", "the standby has all up to LSN", 1);
    await_words("follow.log", "the server has ended; connecting again", 5);
    write_n(20);
    serve = start_tool(arguments, "serve.log");
    await_standby(follow, COPY, 250);
    must_eq(end_tool(follow), 0);
    await_words("follow.log", COPY " has all up to LSN", 1);
    must_eq(end_tool(serve), 0);
    must_eq(must_be_state(COPY IN_COPY), 250);
}
END_TEST

/* start_writer -- until it is told to stop. */
static pid_t
start_writer(void)
{
    board->n = UINT64_MAX;
    board->pause_us = 3000; /* the judge does all transactions again each time */
    return proc_spawn(write_some, NULL);
}

/* end_of_log -- of a standby at rest. */
static uint64_t
end_of_log(const char *copy)
{
    struct xac_recover_options look = {.dry_run = true};
    struct xac_recover_report rep;
    int fd = open(copy, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    must_ok(xac_recover_dir(fd, &look, &rep, NULL));
    (void)close(fd);
    return rep.end_lsn;
}

/* end_equal -- the writer ends, and the standby has everything, once, and the same log. */
static void
end_equal(pid_t writer, pid_t serve, pid_t follow)
{
    word_store(&board->stop, 1);
    proc_join(writer);
    await_standby(follow, COPY, word_load(&board->written));
    must_eq(end_tool(follow), 0);
    must_eq(end_tool(serve), 0);
    /* It may have ended while it waited to connect again: then files may be behind its log. */
    must_eq(judge(COPY), word_load(&board->written));
    printf("%" PRIu64 " bytes of log are equal\n",
           must_be_same_log(COPY, end_of_log(COPY)));
}

START_TEST(broken_at_any_time_it_goes_on)
{
    uint64_t seed = env_seed(), breaks = env_number("XAC_BREAKS", 10);
    unsigned port = 0;
    pid_t serve, follow, writer, go;

    make_secret("secret", "a secret of some length\n");
    board->checkpoint_every = 0; /* so all of the log is compared */
    write_n(30);
    board->leaves = true;
    serve = start_serve(SECRET, &port);
    go = start_between(port);
    follow =
        start_follow(SECRET, (unsigned)word_load(&between->port), COPY, "follow.log");
    writer = start_writer();
    for (uint64_t i = 0; i < breaks; i++) {
        if (i == breaks / 4)
            await_standby(follow, COPY, 30);
        proc_sleep_us(rnd_below(&seed, i % 4 == 0 ? 30000 : 600000));
        word_store(&between->cuts, i + 1);
    }
    end_equal(writer, serve, follow);
    printf("%" PRIu64 " breaks\n", breaks);
    proc_kill(go);
}
END_TEST

START_TEST(killed_at_any_time_it_goes_on)
{
    uint64_t seed = env_seed(), kills = env_number("XAC_KILLS", 10), seen = 0;
    unsigned port = 0;
    pid_t serve, follow, writer;

    make_secret("secret", "a secret of some length\n");
    write_n(30);
    serve = start_serve(SECRET, &port);
    follow = start_follow(SECRET, port, COPY, "follow.log");
    writer = start_writer();
    for (uint64_t i = 0; i < kills; i++) {
        if (i == kills / 4)
            await_standby(follow, COPY, 30);
        proc_sleep_us(rnd_below(&seed, i % 4 == 0 ? 30000 : 600000));
        if (i % 2 == 0) {
            proc_kill(serve);
            serve = start_serve(SECRET, &port);
            continue;
        }
        proc_kill(follow);
        if (file_exists(COPY "/xac.master")) {
            uint64_t k = judge(COPY);

            must(k >= seen);
            seen = k;
        }
        follow = start_follow(SECRET, port, COPY, "follow.log");
    }
    end_equal(writer, serve, follow);
    printf("%" PRIu64 " kills\n", kills);
    must(seen > 0 || kills < 4);
}
END_TEST

START_TEST(what_stands_still_keeps_nobody_waiting)
{
    unsigned port = 0;
    pid_t serve, one, two;

    write_n(30);
    serve = start_serve("", &port);
    one = start_follow("", port, COPY, "one.log");
    two = start_follow("--slot two", port, "copy2", "two.log");
    await_standby(one, COPY, 30);
    await_standby(two, "copy2", 30);
    must_ok(kill(one, SIGSTOP));
    write_n(100);
    await_standby(two, "copy2", 130);
    await_words("serve.log", "the other side has been silent for 10 s", 20);
    must_ok(kill(one, SIGCONT));
    await_standby(one, COPY, 130);
    must_eq(end_tool(one), 0);
    must_eq(end_tool(two), 0);
    must_eq(end_tool(serve), 0);
    /* It may have ended while it waited to connect again: then files may be behind its log. */
    must_eq(judge(COPY), 130);
    must_eq(must_be_state("copy2" IN_COPY), 130);
}
END_TEST

START_TEST(silence_is_noticed_on_both_sides)
{
    unsigned port = 0;
    pid_t serve, follow, go;

    write_n(30);
    serve = start_serve("", &port);
    go = start_between(port);
    follow = start_follow("", (unsigned)word_load(&between->port), COPY, "follow.log");
    await_standby(follow, COPY, 30);
    word_store(&between->frozen, 1); /* as if somebody had pulled the cable */
    await_words("serve.log", "the other side has been silent for 10 s", 20);
    await_words("follow.log", "the other side has been silent for 10 s; connecting", 20);
    word_store(&between->cuts, 1);
    word_store(&between->frozen, 0);
    write_n(20);
    await_standby(follow, COPY, 50);
    must_eq(end_tool(follow), 0);
    must_eq(end_tool(serve), 0);
    proc_kill(go);
}
END_TEST

/* burn -- the server and all that it has begun are gone at once: none of them ends in order. */
static void
burn(pid_t serve)
{
    char text[8000], *p = text;

    must_ok(kill(serve, SIGSTOP));
    tool_children(serve, text);
    while (*p != '\0') {
        (void)kill((pid_t)strtol(p, &p, 10), SIGKILL);
        p += *p == ' ';
    }
    proc_kill(serve);
}

/* hold_query -- a child: a query on the standby that lasts until it is told otherwise. */
static void
hold_query(void *arg)
{
    uint64_t *x, k;
    int rc;

    (void)arg;
    while ((rc = xInit(COPY, DURABLE))
           == XAC_ENOTLEADER) /* nobody receives: another generation begins */
        proc_sleep_us(20000);
    must_ok(rc);
    x = (uint64_t *)xMmap(COPY IN_COPY, PAGES * env_page());
    must(x != (uint64_t *)MAP_FAILED);
    must_ok(xbeginQuery());
    k = x[0];
    word_store(&board->at, 1);
    while (word_load(&board->at) == 1)
        proc_sleep_us(20000);
    for (size_t i = 1; i < PAGES; i++)
        k += *env_cell(x, i) == k; /* its state is there to the end */
    must_ok(xendQuery());
    must_ok(xShutdown());
}

START_TEST(a_turn_that_waits_for_queries_keeps_the_connection)
{
    unsigned port = 0;
    pid_t serve, follow, held;

    write_n(30);
    serve = start_serve("", &port);
    follow = start_follow("", port, COPY, "follow.log");
    await_standby(follow, COPY, 30);
    held = proc_spawn(hold_query, NULL);
    proc_await(&board->at, 1, 60);
    write_n(20);
    write_n(20); /* another generation, which the query holds up */
    await_standby(follow, COPY, 50);
    proc_sleep_us(12000000);
    must_eq(count_words("serve.log", "silent"), 0);
    must_eq(count_words("follow.log", "connecting again"), 0);
    /* Meanwhile it notices that the source has gone, and goes on with the next one. */
    burn(serve);
    await_words("follow.log", "connecting again", 8);
    serve = start_serve("", &port);
    word_store(&board->at, 2);
    proc_join(held);
    await_standby(follow, COPY, 70);
    must_eq(end_tool(follow), 0);
    must_eq(end_tool(serve), 0);
    must_eq(judge(COPY), 70);
}
END_TEST

/* ---- Strangers ------------------------------------------------------------------------ */

/* must_end -- a tool ends by itself, soon, with this exit code. */
static void
must_end(pid_t pid, int code)
{
    int status = 0;

    for (int i = 0; i < 600 && waitpid(pid, &status, WNOHANG) != pid; i++) {
        if (i == 599) {
            proc_kill(pid);
            env_fail(__FILE__, __LINE__, "it does not end: %s", log_text("follow.log"));
        }
        proc_sleep_us(50000);
    }
    must(WIFEXITED(status));
    must_eq(WEXITSTATUS(status), code);
}

/* must_be_refused -- a follower ends with these words, and makes no standby; the server says why. */
static void
must_be_refused(const char *options, unsigned port, const char *words, const char *why)
{
    must_end(start_follow(options, port, "new", "follow.log"), 1);
    await_words("follow.log", words, 1);
    await_words("serve.log", why, 5);
    must(!file_exists("new"));
}

START_TEST(strangers_are_refused)
{
    unsigned port = 0;
    pid_t serve;

    make_secret("secret", "a secret of some length\n");
    make_secret("wrong", "a secret of same length");
    make_secret("short", "fifteen bytes..\n");
    write_n(10);
    serve = start_serve(SECRET, &port);
    must_be_refused("", port, "only the other side has a secret",
                    "only this one has a secret");
    must_be_refused("--secret-file wrong", port, "the server refuses this follower",
                    "the other side has another secret");
    must_eq(end_tool(serve), 0);
    serve = start_serve("", &port);
    must_be_refused(SECRET, port, "only this one has a secret",
                    "only the other side has");
    must_eq(end_tool(serve), 0);
    /* What is wrong here is said before anybody connects. */
    must_end(start_tool("follow --secret-file short 127.0.0.1:1 new", "short.log"), 1);
    await_words("short.log", "a secret has at least 16 bytes", 1);
    must_ok(chmod("secret", 0640));
    must_end(start_tool("follow " SECRET "127.0.0.1:1 new", "open.log"), 1);
    await_words("open.log", "only its owner can use", 1);
    must_end(start_tool("serve --listen 0.0.0.0:0 " ENV_DIR, "far.log"), 1);
    await_words("far.log", "other machines would reach this address", 1);
    must_eq(tool_run("xship", "serve --listen nothing", ENV_DIR), 1);
    ck_says("HOST:PORT or unix:PATH");
    must_eq(tool_run("xship", "serve", ENV_DIR), 2);
    must_eq(tool_run("xship", "send --listen 127.0.0.1:0", ENV_DIR), 2);
    must_eq(tool_run("xship", "follow --insecure-listen 127.0.0.1:1", "new"), 2);
}
END_TEST

#ifdef HAVE_LIBSSL
START_TEST(wrong_certificates_are_refused)
{
    unsigned port = 0;
    pid_t serve, follow;

    if (!make_certificates())
        return;
    write_n(10);
    serve = start_serve(TLS_FILES("server"), &port);
    must_be_refused(TLS_FILES("old"), port, "certificate", "certificate has expired");
    must_be_refused(TLS_FILES("stranger"), port, "TLS with the other side",
                    "unable to get local issuer certificate");
    must_be_refused(TLS_FILES("other"), port, "the server refuses this follower",
                    "its certificate is not for its slot, standby");
    must_be_refused(TLS_FILES("follower") "--tls-name localhost", port,
                    "hostname mismatch", "TLS with the other side");
    follow = start_follow(TLS_FILES("follower"), port, COPY, "follow.log");
    await_standby(follow, COPY, 10);
    must_eq(end_tool(follow), 0);
    must_eq(end_tool(serve), 0);
}
END_TEST
#endif

START_TEST(a_proof_does_not_hold_twice)
{
    uint8_t answer[1000];
    unsigned port = 0;
    pid_t serve, follow, go;
    ssize_t n, all = 0;
    int fd;

    make_secret("secret", "a secret of some length\n");
    write_n(10);
    serve = start_serve(SECRET, &port);
    go = start_between(port);
    follow =
        start_follow(SECRET, (unsigned)word_load(&between->port), COPY, "follow.log");
    await_standby(follow, COPY, 10);
    must_eq(end_tool(follow), 0);
    proc_kill(go);
    must(word_load(&between->n_kept) > 48 + 40 + 48);
    fd = connect_port(port);
    must(fd >= 0);
    must_eq(send(fd, between->kept, 48 + 40 + 48, 0), 48 + 40 + 48);
    while ((n = read(fd, answer + all, sizeof answer - (size_t)all)) > 0)
        all += n;
    (void)close(fd);
    /* Greeting and refusal: not a word. */
    must_eq(all, 48 + 40);
    must_eq(answer[48], 1);
    for (int i = 49; i < 48 + 40; i++)
        must_eq(answer[i], 0);
    await_words("serve.log", "the other side has another secret", 5);
    must_eq(end_tool(serve), 0);
}
END_TEST

START_TEST(a_turned_bit_is_refused)
{
    unsigned port = 0;
    pid_t serve, go;

    make_secret("secret", "a secret of some length\n");
    write_n(10);
    serve = start_serve(SECRET, &port);
    go = start_between(port);
    for (uint64_t at = 16; at < 48 + 40 + 48; at += 17) { /* greeting, proof, name */
        between->turn_at = at;
        must_end(start_follow(SECRET, (unsigned)word_load(&between->port), "new",
                              "follow.log"),
                 1);
        must(!file_exists("new"));
    }
    proc_kill(go);
    must_eq(end_tool(serve), 0);
}
END_TEST

START_TEST(slow_strangers_do_not_stay)
{
    enum {
        STRANGERS = 80
    };
    int fd[STRANGERS];
    unsigned port = 0;
    pid_t serve, follow;

    make_secret("secret", "a secret of some length\n");
    write_n(10);
    serve = start_serve(SECRET, &port);
    for (int i = 0; i < STRANGERS; i++) {
        fd[i] = connect_port(port);
        must(fd[i] >= 0);
        must_eq(send(fd[i], "XSHIPN", 6, MSG_NOSIGNAL), 6);
    }
    for (int i = 0; i < 20; i++) {
        must(tool_n_children(serve) <= 64);
        proc_sleep_us(50000);
    }
    must_eq(tool_n_children(serve), 64);
    /* The user of the secret waits for ten seconds at the most, and the rest of them ten more. */
    follow = start_follow(SECRET, port, COPY, "follow.log");
    await_standby(follow, COPY, 10);
    must_eq(end_tool(follow), 0);
    for (int i = 0; i < 300 && tool_n_children(serve) > 0; i++)
        proc_sleep_us(100000);
    must_eq(tool_n_children(serve), 0);
    for (int i = 0; i < STRANGERS; i++) {
        char c;

        must(recv(fd[i], &c, 1, MSG_DONTWAIT) <= 0); /* not even a greeting */
        (void)close(fd[i]);
    }
    must(count_words("serve.log", "refused") <= 22);
    must(count_words("serve.log", "more were refused") >= 1);
    must_eq(end_tool(serve), 0);
}
END_TEST

START_TEST(parted_logs_end_it)
{
    unsigned port = 0;
    pid_t serve, follow;

    write_n(10);
    run_shell("cp -a " ENV_DIR " twin");
    serve = start_serve("", &port);
    follow = start_follow("", port, COPY, "follow.log");
    write_n(5);
    await_standby(follow, COPY, 15);
    must_eq(end_tool(serve), 0);
    run_shell("mv " ENV_DIR " first && mv twin " ENV_DIR);
    write_n(7);
    must_eq(tool_run("xship", "hold", ENV_DIR " standby"), 0);
    serve = start_serve("", &port);
    must_end(follow, 1);
    await_words("follow.log", "receive anew", 1);
    must_eq(end_tool(serve), 0);
    must_eq(must_be_state(COPY IN_COPY), 15);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("serve");
    TCase *t = env_tcase_with(s, "serve", 600, setup);

    env_in_memory();
    tcase_add_loop_test(t, a_standby_follows, 0, (int)(sizeof ways / sizeof ways[0]));
    tcase_add_test(t, broken_at_any_time_it_goes_on);
    tcase_add_test(t, killed_at_any_time_it_goes_on);
    tcase_add_test(t, what_stands_still_keeps_nobody_waiting);
    tcase_add_test(t, silence_is_noticed_on_both_sides);
    tcase_add_test(t, strangers_are_refused);
#ifdef HAVE_LIBSSL
    tcase_add_test(t, wrong_certificates_are_refused);
#endif
    tcase_add_test(t, a_proof_does_not_hold_twice);
    tcase_add_test(t, a_turned_bit_is_refused);
    tcase_add_test(t, slow_strangers_do_not_stay);
    tcase_add_test(t, parted_logs_end_it);
    t = env_tcase_with(s, "turns", 300, setup);
    tcase_add_test(t, a_turn_that_waits_for_queries_keeps_the_connection);
    return env_main(s);
}
