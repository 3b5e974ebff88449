/* SPDX-License-Identifier: MIT */
/*
 * log_name.c -- see log_name.h.
 */
#include <config.h>

#include "log/log_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "log/log_format.h"

void
xac_log_segment_name(char *buf, uint64_t number)
{
    (void)snprintf(buf, XAC_LOG_NAME_MAX, XAC_LOG_PREFIX "%08llu",
                   (unsigned long long)number);
}

void
xac_log_datafile_name(char *buf, uint32_t generation, uint64_t serial)
{
    (void)snprintf(buf, XAC_LOG_NAME_MAX, XAC_DATA_PREFIX "%08x.%08llx",
                   (unsigned)generation, (unsigned long long)serial);
}

bool
xac_log_segment_named(const char *name, uint64_t *numberp)
{
    size_t n = strlen(XAC_LOG_PREFIX);
    char canonical[XAC_LOG_NAME_MAX];
    uint64_t number;

    if (strncmp(name, XAC_LOG_PREFIX, n) != 0)
        return false;
    number = strtoull(name + n, NULL, 10);
    xac_log_segment_name(canonical, number);
    if (number == 0 || number > xac_log_last_segment(XAC_SEGMENT_HEADER)
        || strcmp(name, canonical) != 0)
        return false;
    *numberp = number;
    return true;
}

bool
xac_log_datafile_named(const char *name, uint32_t *generationp, uint64_t *serialp)
{
    char canonical[XAC_LOG_NAME_MAX];
    unsigned long long serial;
    unsigned generation;

    if (sscanf(name, XAC_DATA_PREFIX "%8x.%16llx", &generation, &serial) != 2)
        return false;
    xac_log_datafile_name(canonical, generation, serial);
    *generationp = generation;
    *serialp = serial;
    return strcmp(name, canonical) == 0;
}
