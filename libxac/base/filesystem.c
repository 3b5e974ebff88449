/* SPDX-License-Identifier: MIT */
/*
 * filesystem.c -- see filesystem.h.
 */
#include <config.h>

#include "base/filesystem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>

#include <xac.h>

#include "base/err.h"
#include "base/sys.h"

#define SHARE_DIVISOR 4

#define TMPFS_TYPE UINT32_C(0x01021994)
#define RAMFS_TYPE UINT32_C(0x858458f6)

/*
 * File systems of the network, or shared by several machines.  Those that a program serves
 * (FUSE) are not among them: for them the kernel itself keeps the locks of one machine, and
 * it cannot be told from outside whether there is another.
 */
static const struct {
    uint32_t type;
    const char *name;
} network[] = {
    {UINT32_C(0x00006969), "NFS"},    {UINT32_C(0x0000517b), "SMB"},
    {UINT32_C(0xff534d42), "CIFS"},   {UINT32_C(0xfe534d42), "SMB2"},
    {UINT32_C(0x0000564c), "NCP"},    {UINT32_C(0x73757245), "Coda"},
    {UINT32_C(0x5346414f), "AFS"},    {UINT32_C(0x6b414653), "AFS"},
    {UINT32_C(0x01021997), "9p"},     {UINT32_C(0x00c36400), "Ceph"},
    {UINT32_C(0x0bd00bd0), "Lustre"}, {UINT32_C(0x47504653), "GPFS"},
    {UINT32_C(0x01161970), "GFS2"},   {UINT32_C(0x7461636f), "OCFS2"},
    {UINT32_C(0x19830326), "BeeGFS"}, {UINT32_C(0x20030528), "OrangeFS"},
};

/* type_of -- 32 bits, as statfs(2) has it on all machines. */
static uint32_t
type_of(const struct statfs *fs)
{
    return (uint32_t)fs->f_type;
}

int
xac_filesystem_check(int fd, const char *path)
{
    const char *allowed = secure_getenv("XAC_ALLOW_NETWORK_FS");
    struct statfs fs;

    if (xac_sys.fstatfs(fd, &fs) != 0)
        return xac_err(errno, "%s: file system", path);
    if (allowed != NULL && strcmp(allowed, "1") == 0)
        return 0;
    for (size_t i = 0; i < sizeof network / sizeof network[0]; i++) {
        if (type_of(&fs) == network[i].type)
            return xac_err(XAC_EFILESYSTEM,
                           "%s lies on %s; XAC_ALLOW_NETWORK_FS=1 allows it, for one "
                           "machine at a time",
                           path, network[i].name);
    }
    return 0;
}

uint64_t
xac_filesystem_share(int fd, uint64_t memory_bytes)
{
    struct statfs fs;
    uint64_t bytes;

    if (xac_sys.fstatfs(fd, &fs) != 0
        || (type_of(&fs) != TMPFS_TYPE && type_of(&fs) != RAMFS_TYPE))
        return UINT64_MAX;
    /* A tmpfs that was mounted without a size has no blocks to count. */
    bytes = fs.f_blocks != 0 ? (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize : UINT64_MAX;
    bytes = bytes < memory_bytes ? bytes : memory_bytes;
    return bytes / SHARE_DIVISOR;
}
