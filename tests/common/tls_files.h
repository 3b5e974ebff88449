/* SPDX-License-Identifier: MIT */
/*
 * tls_files.h -- certificates for tests of TLS, made by openssl(1) in the current directory.
 */
#ifndef XAC_TEST_TLS_FILES_H
#define XAC_TEST_TLS_FILES_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "env.h"

/* What the options of xship and xraftd have for the certificate of a name. */
#define TLS_FILES(who) "--tls-ca ca.pem --tls-cert " who ".pem --tls-key " who ".key "

/*
 * tls_files_make -- by lines of the shell: `authority NAME`, and `make NAME SUBJECT DAYS AUTHORITY ALTERNATIVE-NAME`.
 *
 * ret  false: there is no openssl(1).
 */
static inline bool
tls_files_make(const char *lines)
{
    static const char prelude[] =
        "exec >openssl.log 2>&1; set -e\n"
        "ec='-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes'\n"
        "authority() { openssl req -x509 $ec -keyout $1.key -out $1.pem -subj /CN=$1 -days 9; }\n"
        "make() { openssl req $ec -keyout $1.key -out $1.csr -subj /CN=$2\n"
        "  printf \"subjectAltName=$5\" >$1.ext\n"
        "  openssl x509 -req -in $1.csr -CA $4.pem -CAkey $4.key -CAcreateserial -out $1.pem "
        "-days $3 -extfile $1.ext; }\n";
    char script[4000];

    if (system("openssl version >/dev/null 2>&1") != 0)
        return false;
    must((size_t)snprintf(script, sizeof script, "%s%s", prelude, lines) < sizeof script);
    must_ok(system(script));
    return true;
}

#endif /* XAC_TEST_TLS_FILES_H */
