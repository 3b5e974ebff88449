/* SPDX-License-Identifier: MIT */
/*
 * options.h -- the table of all options: name, values, default, when it may be set, whom it
 * concerns, and the environment variable that can set it.
 *
 * What the entry points check and store, and what a variable may say, follows from the table.  So
 * do doc/options.md, a section of libxac.3, and the last lines of each comment in
 * include/xac_options.h: scripts/check_options writes and compares them.
 *
 * OWNER    Nobody: the table is constant.  A struct xac_env_options is its caller's.
 * THREADS  Any; the fault handler reads the fields of struct xac_env_options only.
 * INVARIANTS
 *   1. A row's number is its place, and the name of a row is that of the constant.
 *   2. The default is a valid value, or one that cannot be set and means "not set".
 */
#ifndef XAC_ENV_OPTIONS_H
#define XAC_ENV_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <xac_options.h>

struct xac_env_options;

/* One more than the greatest number of an option. */
#define XAC_OPTION_END (XAC_OPT_GROUP_WAIT_MS + 1)

/* Which values an option takes, beside the one that its row names in `also`. */
enum xac_option_values {
    XAC_VALUES_FLAG, /* 0 or 1                                                          */
    XAC_VALUES_ENUM, /* the constants of an enum: 0 to `most`                           */
    XAC_VALUES_RANGE, /* `least` to `most`                                               */
    XAC_VALUES_POWER, /* a power of two, `least` to `most`                               */
    XAC_VALUES_MODE /* permissions of a file: xac_owner_mode_ok()                      */
};

enum xac_option_when {
    XAC_SET_BEFORE, /* before the environment is opened                                 */
    XAC_SET_OUTSIDE, /* while the thread has no transaction                              */
    XAC_SET_ANY /* at any time                                                      */
};

enum xac_option_whose {
    XAC_OF_PROCESS, /* each process has its own                                          */
    XAC_OF_FIRST, /* that of the first participant counts for all                      */
    XAC_OF_ALL    /* one value, which any participant may change                       */
};

/* A value of an option as its variable names it; a list of them ends with a NULL word. */
struct xac_option_word {
    const char *word;
    uint64_t value;
};

struct xac_option_row {
    const char *name;     /* "XAC_OPT_..."; NULL: no option has this number       */
    const char *unit;     /* of the value, or the name of its enum                */
    const char *variable; /* of the environment, or NULL                          */
    bool overrules;       /* it counts more than what the program sets; else less */
    const struct xac_option_word *words; /* what it may say; NULL: a number       */
    enum xac_option_values values;
    uint64_t least, most, also;
    uint64_t otherwise; /* the default                                            */
    enum xac_option_when when;
    enum xac_option_whose whose;
    size_t offset, bytes; /* of the field in struct xac_env_options               */
};

/* xac_option_find -- the row of an option, NULL if there is none of that number. */
const struct xac_option_row *xac_option_find(int number);

/*
 * xac_option_check -- is there such an option, and may it have that value?
 *
 * in   what  the function that the program has called, for the message
 * ret  0 or EINVAL
 */
int xac_option_check(const char *what, int number, uint64_t value);

/*
 * xac_option_is_overruled -- has the environment of the process a variable that counts more than
 * what the program sets?
 */
bool xac_option_is_overruled(const struct xac_option_row *row);

/*
 * xac_option_of_today -- the option that is in the place of a deprecated one.
 *
 * in      o       what is set so far
 * in,out  valuep  the value that has been checked
 * ret  XAC_OPT_CHECKING for XAC_OPT_STAY_MAPPED; else number, and the value is not changed.
 */
int xac_option_of_today(const struct xac_env_options *o, int number, uint64_t *valuep);

/* xac_option_store -- set the field of an option; the value has been checked. */
void xac_option_store(struct xac_env_options *o, int number, uint64_t value);

/* xac_options_default -- all options have their defaults; no log directory. */
void xac_options_default(struct xac_env_options *o);

/*
 * xac_options_outside -- take over what the environment of the process says, last of all.
 *
 * in      is_set  by number: the program has set the option
 * in,out  o       not changed on failure
 * ret  0; EINVAL: a variable has another value than the option may have
 */
int xac_options_outside(const bool is_set[XAC_OPTION_END], struct xac_env_options *o);

#endif /* XAC_ENV_OPTIONS_H */
