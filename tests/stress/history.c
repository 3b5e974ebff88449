/* SPDX-License-Identifier: MIT */
/*
 * history.c -- see history.h.
 */
#include <config.h>

#include "history.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ERRORS_PRINTED 20
#define NONE           UINT32_MAX

/* A committed value of a cell. */
struct version {
    uint64_t value; /* key of the hash table; 0 marks a free slot             */
    uint64_t over;  /* the value it was written over                          */
    uint32_t cell;
    uint32_t writer;   /* node                                                   */
    uint32_t position; /* in the cell's chain, from 1; 0 if not in it            */
};

/* A transaction, as a node of the graph. */
struct node {
    const struct history_txn *txn;
    const struct history_access *accesses;
    uint32_t first_edge; /* list, NONE at the end                                */
};

struct edge {
    uint32_t to, next;
    char kind; /* 'w' overwrote, 'r' read from, 'a' read what `to` overwrote     */
    uint32_t cell;
};

struct checker {
    struct node *nodes;
    size_t n_nodes;
    struct version *versions; /* hash table */
    size_t n_slots;
    struct version ***chains; /* per cell: versions by position, [0] unused      */
    size_t *chain_lengths;
    struct edge *edges;
    size_t n_edges, edges_max;
    struct history_report *report;
};

static void *
allocate(size_t n, size_t size)
{
    void *p = calloc(n + 1, size);

    if (p == NULL) {
        fprintf(stderr, "history: out of memory\n");
        exit(EXIT_FAILURE);
    }
    return p;
}

__attribute__((format(printf, 2, 3))) static void
report_error(struct checker *c, const char *format, ...)
{
    va_list ap;

    if (c->report->n_errors++ >= ERRORS_PRINTED)
        return;
    fprintf(stderr, "history: ");
    va_start(ap, format);
    vfprintf(stderr, format, ap);
    va_end(ap);
    fprintf(stderr, "\n");
}

static const char *
outcome_name(const struct node *node)
{
    static const char *const names[] = {"committed", "aborted", "query", "unfinished"};

    return names[node->txn->outcome];
}

static void
print_node(const struct checker *c, uint32_t n)
{
    const struct node *node = &c->nodes[n];

    fprintf(stderr,
            "  transaction %u of process %u, %s, %" PRIu64 " to %" PRIu64 " ns:", n,
            node->txn->process, outcome_name(node), node->txn->begin_ns,
            node->txn->end_ns);
    for (uint32_t i = 0; i < node->txn->count; i++) {
        const struct history_access *a = &node->accesses[i];

        fprintf(stderr, " %u:%" PRIx64, a->cell, a->seen);
        if (a->wrote)
            fprintf(stderr, "->%" PRIx64, a->given);
    }
    fprintf(stderr, "\n");
}

/* ---- unfinished transactions ----------------------------------------------------------- */

/* A value of an unfinished transaction. */
struct doubtful {
    uint64_t value;
    struct history_txn *txn;
};

static int
by_value(const void *a, const void *b)
{
    uint64_t x = ((const struct doubtful *)a)->value;
    uint64_t y = ((const struct doubtful *)b)->value;

    return (x > y) - (x < y);
}

/* doubts -- all values of unfinished transactions, sorted; ret how many. */
static size_t
doubts(struct history *histories, size_t n_histories, struct doubtful **outp)
{
    struct doubtful *out = NULL;
    size_t n = 0, room = 0;

    for (size_t i = 0; i < n_histories; i++) {
        struct history *h = &histories[i];

        for (size_t t = 0; t < h->n_txns; t++) {
            struct history_txn *txn = &h->txns[t];

            for (uint32_t k = 0; txn->outcome == HISTORY_UNKNOWN && k < txn->count; k++) {
                if (n == room) {
                    room = 2 * room + 64;
                    out = realloc(out, room * sizeof *out);
                    if (out == NULL)
                        exit(EXIT_FAILURE);
                }
                out[n++] = (struct doubtful){h->accesses[txn->first + k].given, txn};
            }
        }
    }
    if (n > 0)
        qsort(out, n, sizeof *out, by_value);
    *outp = out;
    return n;
}

/* see -- a value that was there: the transaction that wrote it has committed. */
static void
see(struct doubtful *doubtful, size_t n, uint64_t value)
{
    struct doubtful key = {.value = value}, *d;

    d = value != 0 && n > 0 ? bsearch(&key, doubtful, n, sizeof key, by_value) : NULL;
    if (d != NULL)
        d->txn->outcome = HISTORY_COMMITTED;
}

void
history_settle(struct history *histories, size_t n_histories, const uint64_t *last,
               size_t n_cells)
{
    struct doubtful *doubtful;
    size_t n = doubts(histories, n_histories, &doubtful);

    for (size_t cell = 0; cell < n_cells; cell++)
        see(doubtful, n, last[cell]);
    for (size_t i = 0; i < n_histories && n > 0; i++)
        for (size_t a = 0; a < histories[i].n_accesses; a++)
            see(doubtful, n, histories[i].accesses[a].seen);
    for (size_t i = 0; i < n_histories; i++) {
        for (size_t t = 0; t < histories[i].n_txns; t++) {
            struct history_txn *txn = &histories[i].txns[t];

            if (txn->outcome != HISTORY_UNKNOWN)
                continue;
            txn->outcome = HISTORY_ABORTED;
            txn->count = 0;
        }
    }
    free(doubtful);
}

/* ---- versions ----------------------------------------------------------------------- */

static struct version *
slot_of(struct checker *c, uint64_t value)
{
    size_t i = (size_t)(value * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (c->n_slots - 1);

    while (c->versions[i].value != 0 && c->versions[i].value != value)
        i = (i + 1) & (c->n_slots - 1);
    return &c->versions[i];
}

/* The committed version of this value; NULL if there is none. */
static struct version *
find_version(struct checker *c, uint64_t value)
{
    struct version *v = slot_of(c, value);

    return v->value == value ? v : NULL;
}

static void
insert_versions(struct checker *c)
{
    for (uint32_t n = 0; n < c->n_nodes; n++) {
        const struct node *node = &c->nodes[n];

        if (node->txn->outcome != HISTORY_COMMITTED)
            continue;
        for (uint32_t i = 0; i < node->txn->count; i++) {
            const struct history_access *a = &node->accesses[i];
            struct version *v = slot_of(c, a->given);

            if (!a->wrote)
                continue;
            if (v->value != 0)
                report_error(c, "value %" PRIx64 " was written twice: bad test",
                             a->given);
            *v = (struct version){.value = a->given,
                                  .over = a->seen,
                                  .cell = a->cell,
                                  .writer = n};
            c->chain_lengths[a->cell]++;
        }
    }
}

/*
 * Order each cell's versions, from the last value back to 0 (rule 1).  Whatever is not on
 * the way was lost.
 */
static void
build_chains(struct checker *c, const uint64_t *last, size_t n_cells)
{
    for (uint32_t cell = 0; cell < n_cells; cell++) {
        size_t n = c->chain_lengths[cell], position = n;
        uint64_t value = last[cell];

        c->chains[cell] = allocate(n, sizeof *c->chains[cell]);
        while (value != 0 && position > 0) {
            struct version *v = find_version(c, value);

            if (v == NULL || v->cell != cell) {
                report_error(c, "cell %u: value %" PRIx64 " that nobody committed there",
                             cell, value);
                break;
            }
            v->position = (uint32_t)position;
            c->chains[cell][position--] = v;
            value = v->over;
        }
        if (value != 0 || position != 0)
            report_error(c, "cell %u: %zu of %zu committed updates were lost", cell,
                         position, n);
    }
}

/* ---- the graph ------------------------------------------------------------------------ */

static void
add_edge(struct checker *c, uint32_t from, uint32_t to, char kind, uint32_t cell)
{
    if (from == to)
        return;
    if (c->n_edges == c->edges_max) {
        c->edges_max = c->edges_max * 2 + 1024;
        c->edges = realloc(c->edges, c->edges_max * sizeof *c->edges);
        if (c->edges == NULL)
            exit(EXIT_FAILURE);
    }
    c->edges[c->n_edges] = (struct edge){.to = to,
                                         .next = c->nodes[from].first_edge,
                                         .kind = kind,
                                         .cell = cell};
    c->nodes[from].first_edge = (uint32_t)c->n_edges++;
}

/* One read: rules 2 to 4, and its edges. */
static void
check_read(struct checker *c, uint32_t reader, const struct history_access *a)
{
    const struct history_txn *txn = c->nodes[reader].txn;
    const struct version *v = NULL, *next = NULL;
    uint32_t position = 0;

    if (a->seen != 0) {
        v = find_version(c, a->seen);
        if (v == NULL || v->cell != a->cell) {
            report_error(c,
                         "cell %u: %s transaction read %" PRIx64
                         ", which no committed transaction left there",
                         a->cell, outcome_name(&c->nodes[reader]), a->seen);
            print_node(c, reader);
            return;
        }
        position = v->position;
        if (position == 0)
            return; /* lost, reported above */
        if (c->nodes[v->writer].txn->begin_ns > txn->end_ns)
            report_error(c, "cell %u: read from the future", a->cell);
        add_edge(c, v->writer, reader, 'r', a->cell);
    }
    if (position < c->chain_lengths[a->cell])
        next = c->chains[a->cell][position + 1];
    if (next == NULL)
        return;
    if (c->nodes[next->writer].txn->end_ns < txn->begin_ns) {
        report_error(c,
                     "cell %u: %s transaction read what had been overwritten before it "
                     "began",
                     a->cell, outcome_name(&c->nodes[reader]));
        print_node(c, next->writer);
        print_node(c, reader);
    }
    add_edge(c, reader, next->writer, 'a', a->cell);
}

static void
build_graph(struct checker *c)
{
    for (uint32_t n = 0; n < c->n_nodes; n++) {
        const struct node *node = &c->nodes[n];

        for (uint32_t i = 0; i < node->txn->count; i++)
            check_read(c, n, &node->accesses[i]);
    }
    c->report->n_edges = c->n_edges;
}

static void
print_cycle(struct checker *c, const uint32_t *path, const uint32_t *path_edge,
            size_t depth, uint32_t back_to)
{
    size_t start = depth;

    while (start > 0 && path[start] != back_to)
        start--;
    report_error(c, "cycle of %zu transactions: not serializable", depth - start + 1);
    if (c->report->n_errors > ERRORS_PRINTED)
        return;
    for (size_t i = start; i <= depth; i++) {
        const struct edge *e = &c->edges[path_edge[i]];

        print_node(c, path[i]);
        fprintf(stderr, "    %s the next one (cell %u)\n",
                e->kind == 'r' ? "was read by" : "read what was overwritten by", e->cell);
    }
}

/* Depth-first search without recursion; a way back to a node on the path is a cycle. */
static void
find_cycles(struct checker *c)
{
    enum {
        WHITE,
        GREY,
        BLACK
    };
    unsigned char *colour = allocate(c->n_nodes, 1);
    uint32_t *path = allocate(c->n_nodes, sizeof *path);
    uint32_t *path_edge = allocate(c->n_nodes, sizeof *path_edge);

    for (uint32_t root = 0; root < c->n_nodes; root++) {
        size_t depth = 0;

        if (colour[root] != WHITE)
            continue;
        path[0] = root;
        path_edge[0] = c->nodes[root].first_edge;
        colour[root] = GREY;
        for (;;) {
            uint32_t e = path_edge[depth], to;

            if (e == NONE) {
                colour[path[depth]] = BLACK;
                if (depth == 0)
                    break;
                depth--;
                path_edge[depth] = c->edges[path_edge[depth]].next;
                continue;
            }
            to = c->edges[e].to;
            if (colour[to] == WHITE) {
                colour[to] = GREY;
                depth++;
                path[depth] = to;
                path_edge[depth] = c->nodes[to].first_edge;
                continue;
            }
            if (colour[to] == GREY)
                print_cycle(c, path, path_edge, depth, to);
            path_edge[depth] = c->edges[e].next;
        }
    }
    free(colour);
    free(path);
    free(path_edge);
}

static void
make_nodes(struct checker *c, const struct history *histories, size_t n_histories)
{
    size_t n_accesses = 0;

    for (size_t h = 0; h < n_histories; h++) {
        c->n_nodes += histories[h].n_txns;
        n_accesses += histories[h].n_accesses;
    }
    c->nodes = allocate(c->n_nodes, sizeof *c->nodes);
    c->n_slots = 1024;
    while (c->n_slots < 2 * n_accesses)
        c->n_slots *= 2;
    c->versions = allocate(c->n_slots, sizeof *c->versions);
    c->n_nodes = 0;
    for (size_t h = 0; h < n_histories; h++) {
        for (size_t t = 0; t < histories[h].n_txns; t++) {
            const struct history_txn *txn = &histories[h].txns[t];

            c->nodes[c->n_nodes++] =
                (struct node){.txn = txn,
                              .accesses = &histories[h].accesses[txn->first],
                              .first_edge = NONE};
            c->report->n_committed += txn->outcome == HISTORY_COMMITTED;
            c->report->n_aborted += txn->outcome == HISTORY_ABORTED;
            c->report->n_queries += txn->outcome == HISTORY_QUERY;
            c->report->n_at += txn->at_ns != 0;
        }
    }
}

void
history_check(const struct history *histories, size_t n_histories, const uint64_t *last,
              size_t n_cells, struct history_report *report)
{
    struct checker c = {.report = report};

    memset(report, 0, sizeof *report);
    make_nodes(&c, histories, n_histories);
    c.chains = allocate(n_cells, sizeof *c.chains);
    c.chain_lengths = allocate(n_cells, sizeof *c.chain_lengths);
    insert_versions(&c);
    build_chains(&c, last, n_cells);
    build_graph(&c);
    find_cycles(&c);
    for (size_t cell = 0; cell < n_cells; cell++)
        free(c.chains[cell]);
    free(c.chains);
    free(c.chain_lengths);
    free(c.versions);
    free(c.nodes);
    free(c.edges);
}
