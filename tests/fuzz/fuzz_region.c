/* SPDX-License-Identifier: MIT */
#include <config.h>
#include "target.h"
const struct fuzz_target fuzz_region_targets[] = {{NULL, NULL}};
