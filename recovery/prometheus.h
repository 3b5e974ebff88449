/* SPDX-License-Identifier: MIT */
/*
 * prometheus.h -- xstat --prometheus: a look in Prometheus' text format, version 0.0.4.
 */
#ifndef XAC_PROMETHEUS_H
#define XAC_PROMETHEUS_H

#include "look.h"

/* prometheus_print -- in  look  NULL: nobody is attached. */
void prometheus_print(const char *dir, const struct xac_env *env,
                      const struct look *look);

#endif /* XAC_PROMETHEUS_H */
