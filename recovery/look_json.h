/* SPDX-License-Identifier: MIT */
/*
 * look_json.h -- a look as members of a JSON object, for xstat --json.
 */
#ifndef XAC_LOOK_JSON_H
#define XAC_LOOK_JSON_H

#include "look.h"
#include "tool.h"

void look_json(struct json *j, const struct look *look);

#endif /* XAC_LOOK_JSON_H */
