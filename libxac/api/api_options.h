/* SPDX-License-Identifier: MIT */
/*
 * api_options.h -- the options of an environment: what the program has set, what the variables of
 * its environment say, and the defaults.
 *
 * LOCK      xac_api_lock, for those of the default environment.
 */
#ifndef XAC_API_OPTIONS_H
#define XAC_API_OPTIONS_H

#include <stdint.h>

struct xac_env_options;
struct xac_options;

/*
 * xac_api_options_default -- of the default environment, as xSetOption() has set them; locked.
 * xac_api_options_given -- of a structure; its size has been checked.
 *
 * out  log_dir of *out is not copied.
 * ret  0; EINVAL, ENAMETOOLONG: a value is out of range.
 */
int xac_api_options_default(struct xac_env_options *out);
int xac_api_options_given(const struct xac_options *given, struct xac_env_options *out);

/* xac_api_log_directory -- as xSetLogDirectory() has set it; NULL: no wish. */
const char *xac_api_log_directory(void);

/* Whom a recovery tells how far it is; fn NULL: nobody. */
struct xac_api_progress {
    void (*fn)(void *arg, uint64_t done, uint64_t total);
    void *arg;
};

/* xac_api_recovery_progress -- as xSetRecoveryProgress() has set it. */
struct xac_api_progress xac_api_recovery_progress(void);

#endif /* XAC_API_OPTIONS_H */
