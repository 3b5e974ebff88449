/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "thesis.h"

#include <stddef.h>
#include <string.h>

#include "util.h"

/* clang-format off */
#define VALUES(...) ((const struct bench_thesis_value[]){__VA_ARGS__, {0}})
/* clang-format on */

/* Section 4.1, page 78, and table 4.1, page 80. */
const struct bench_thesis_machine bench_thesis_machines[] = {
    {"1", 3000, "Pentium 4 3.0 GHz, 4 SATA disks in RAID 10, Linux 2.6.8"},
    {"2", 2400, "2 Xeon 2.4 GHz, ATA disk, Linux 2.4.22"},
    {"3", 1400, "4 Opteron 1.4 GHz, Linux 2.6.5"},
    {"3(a)", 1400, "4 Opteron 1.4 GHz, SCSI disk with ReiserFS, Linux 2.6.5"},
    {"3(b)", 1400, "4 Opteron 1.4 GHz, SCSI disk with ext3, Linux 2.6.5"},
    {"4", 300, "Pentium II 300 MHz, ATA disk, Linux 2.4.20"},
    {0},
};

/*
 * A durable "page write" is compared with writing the whole page (access=fill), for the
 * Thesis logs whole pages and we log what has changed.
 */
const struct bench_thesis_row bench_thesis_rows[] = {
    /* Table 4.2. */
    {"4.2", 85, "page read", "kcycles",
     VALUES({"1", 1, {110.0}}, {"2", 1, {44.4}}, {"3", 1, {21.7}}, {"4", 1, {16.1}}),
     "touch", "access=read hint=none pages=1024", "us_per_page"},
    {"4.2", 85, "page read, advisory function", "kcycles",
     VALUES({"1", 1, {58.5}}, {"2", 1, {31.1}}, {"3", 1, {16.0}}, {"4", 1, {10.1}}),
     "touch", "access=read hint=page pages=1024", "us_per_page"},
    {"4.2", 85, "page write", "kcycles",
     VALUES({"1", 1, {195.5}}, {"2", 1, {91.6}}, {"3", 1, {43.5}}, {"4", 1, {149.4}}),
     "touch", "access=write hint=none pages=1024", "us_per_page"},
    {"4.2", 85, "page write, advisory function", "kcycles",
     VALUES({"1", 1, {88.2}}, {"2", 1, {63.4}}, {"3", 1, {34.8}}, {"4", 1, {143.8}}),
     "touch", "access=write hint=page pages=1024", "us_per_page"},
    {"4.2", 85, "speed-up of reads by the advisory function", "percent",
     VALUES({"1", 1, {47}}, {"2", 1, {31}}, {"3", 1, {26}}, {"4", 1, {37}}), "touch",
     "access=read hint=page pages=1024", "percent_saved_by_hint"},
    {"4.2", 85, "speed-up of writes by the advisory function", "percent",
     VALUES({"1", 1, {55}}, {"2", 1, {31}}, {"3", 1, {20}}, {"4", 1, {4}}), "touch",
     "access=write hint=page pages=1024", "percent_saved_by_hint"},
    /* Table 4.3. */
    {"4.3", 86, "entering the SIGSEGV handler", "cycles",
     VALUES({"1", 1, {32216}}, {"2", 1, {8032}}, {"3", 1, {3489}}, {"4", 1, {3078}}),
     "handler", "operation=segv_enter", "us"},
    {"4.3", 86, "mmap of a page", "cycles",
     VALUES({"1", 1, {15156}}, {"2", 1, {10054}}, {"3", 1, {3228}}, {"4", 1, {2282}}),
     "handler", "operation=mmap", "us"},
    {"4.3", 86, "leaving the SIGSEGV handler", "cycles",
     VALUES({"1", 1, {29323}}, {"2", 1, {9723}}, {"3", 1, {4745}}, {"4", 1, {3140}}),
     "handler", "operation=segv_exit", "us"},
    /* Table 4.4. */
    {"4.4", 87, "first write to a page after mmap", "cycles",
     VALUES({"1", 2, {16851, 945}}, {"2", 2, {5310, 139}}, {"3", 2, {3311, 211}},
            {"4", 2, {3995, 1133}}),
     "handler", "operation=first_write", "us"},
    /* Table 4.5. */
    {"4.5", 88, "memcpy of a page, the first", "cycles",
     VALUES({"1", 1, {44067}}, {"2", 1, {19497}}, {"3", 1, {9578}}, {"4", 1, {7324}}),
     "handler", "operation=memcpy_first", "us"},
    {"4.5", 88, "memcpy of a page, 2nd to 5th", "cycles",
     VALUES({"1", 1, {2493}}, {"2", 1, {1718}}, {"3", 1, {676}}, {"4", 1, {3320}}),
     "handler", "operation=memcpy_next", "us"},
    {"4.5", 88, "memcpy of a page, of 1,000", "cycles",
     VALUES({"1", 1, {1122}}, {"2", 1, {1052}}, {"3", 1, {608}}, {"4", 1, {932}}),
     "handler", "operation=memcpy", "us"},
    /* Table 4.6. */
    {"4.6", 89, "page read, estimate", "kcycles",
     VALUES({"1", 1, {108.2}}, {"2", 1, {43.2}}, {"3", 1, {18.0}}, {"4", 1, {14.6}}),
     "model", "equation=thesis access=read hint=none", "us_per_page_predicted"},
    {"4.6", 89, "page read, actual", "kcycles",
     VALUES({"1", 1, {110.0}}, {"2", 1, {44.4}}, {"3", 1, {21.7}}, {"4", 1, {16.1}}),
     "model", "equation=thesis access=read hint=none", "us_per_page_measured"},
    {"4.6", 89, "page read, not explained", "percent",
     VALUES({"1", 1, {1.6}}, {"2", 1, {2.8}}, {"3", 1, {17.4}}, {"4", 1, {9.7}}), "model",
     "equation=thesis access=read hint=none", "percent_unexplained"},
    {"4.6", 89, "page write, estimate", "kcycles",
     VALUES({"1", 1, {185.7}}, {"2", 1, {72.0}}, {"3", 1, {30.0}}, {"4", 1, {23.9}}),
     "model", "equation=thesis access=write hint=none", "us_per_page_predicted"},
    {"4.6", 89, "page write, actual", "kcycles",
     VALUES({"1", 1, {195.5}}, {"2", 1, {91.6}}, {"3", 1, {43.5}}, {"4", 1, {149.4}}),
     "model", "equation=thesis access=write hint=none", "us_per_page_measured"},
    {"4.6", 89, "page write, not explained", "percent",
     VALUES({"1", 1, {5.0}}, {"2", 1, {21.3}}, {"3", 1, {31.0}}, {"4", 1, {84.0}}),
     "model", "equation=thesis access=write hint=none", "percent_unexplained"},
    {"4.6", 89, "page read, advisory function, estimate", "kcycles",
     VALUES({"1", 1, {46.9}}, {"2", 1, {25.4}}, {"3", 1, {9.7}}, {"4", 1, {8.4}}),
     "model", "equation=thesis access=read hint=page", "us_per_page_predicted"},
    {"4.6", 89, "page read, advisory function, actual", "kcycles",
     VALUES({"1", 1, {58.5}}, {"2", 1, {31.1}}, {"3", 1, {16.0}}, {"4", 1, {10.1}}),
     "model", "equation=thesis access=read hint=page", "us_per_page_measured"},
    {"4.6", 89, "page read, advisory function, not explained", "percent",
     VALUES({"1", 1, {19.8}}, {"2", 1, {18.2}}, {"3", 1, {39.3}}, {"4", 1, {16.4}}),
     "model", "equation=thesis access=read hint=page", "percent_unexplained"},
    {"4.6", 89, "page write, advisory function, estimate", "kcycles",
     VALUES({"1", 1, {47.9}}, {"2", 1, {26.5}}, {"3", 1, {10.3}}, {"4", 1, {9.3}}),
     "model", "equation=thesis access=write hint=page", "us_per_page_predicted"},
    {"4.6", 89, "page write, advisory function, actual", "kcycles",
     VALUES({"1", 1, {88.2}}, {"2", 1, {63.4}}, {"3", 1, {34.8}}, {"4", 1, {143.8}}),
     "model", "equation=thesis access=write hint=page", "us_per_page_measured"},
    {"4.6", 89, "page write, advisory function, not explained", "percent",
     VALUES({"1", 1, {45.7}}, {"2", 1, {58.2}}, {"3", 1, {70.3}}, {"4", 1, {93.5}}),
     "model", "equation=thesis access=write hint=page", "percent_unexplained"},
    /* Table 4.7. */
    {"4.7", 91, "durable, page read", "us",
     VALUES({"1", 1, {39}}, {"3(a)", 1, {15}}, {"3(b)", 1, {16}}), "touch-durable",
     "access=read hint=none pages=1024", "us_per_page"},
    {"4.7", 91, "durable, page write", "us",
     VALUES({"1", 1, {1569}}, {"3(a)", 1, {235}}, {"3(b)", 1, {227}}), "touch-durable",
     "access=fill hint=none pages=1024", "us_per_page"},
    {"4.7", 91, "durable, page read, advisory function", "us",
     VALUES({"1", 1, {22}}, {"3(a)", 1, {14}}, {"3(b)", 1, {15}}), "touch-durable",
     "access=read hint=page pages=1024", "us_per_page"},
    {"4.7", 91, "durable, page write, advisory function", "us",
     VALUES({"1", 1, {1297}}, {"3(a)", 1, {179}}, {"3(b)", 1, {182}}), "touch-durable",
     "access=fill hint=page pages=1024", "us_per_page"},
    /* Table 4.8. */
    {"4.8", 93, "fsync of a file of 10,000 pages, one modified", "ms",
     VALUES({"1", 6, {13.6, 184.3, 2.4, 8.0, 12.7, 5836.5}},
            {"3(a)", 6, {4.8, 24.0, 0.7, 4.0, 7.0, 761.6}},
            {"3(b)", 6, {4.7, 23.1, 0.8, 3.9, 6.9, 731.9}}),
     "msync", "operation=fsync pages=1", "us"},
    /* Table 4.9. */
    {"4.9", 95, "test A, 1 process", "us",
     VALUES({"2", 1, {26.2}}, {"3(a)", 1, {22.9}}, {"3(b)", 1, {24.3}}), "concurrency",
     "test=A processes=1", "us_per_transaction"},
    {"4.9", 95, "test A, 2 processes", "us",
     VALUES({"2", 1, {23.0}}, {"3(a)", 1, {24.3}}, {"3(b)", 1, {24.9}}), "concurrency",
     "test=A processes=2", "us_per_transaction"},
    {"4.9", 95, "test A, speed-up of 2 processes", "ratio",
     VALUES({"2", 1, {1.14}}, {"3(a)", 1, {0.94}}, {"3(b)", 1, {0.98}}), "concurrency",
     "test=A processes=2", "speedup"},
    {"4.9", 95, "test B, 1 process", "us",
     VALUES({"2", 1, {28.3}}, {"3(a)", 1, {28.1}}, {"3(b)", 1, {28.2}}), "concurrency",
     "test=B processes=1", "us_per_transaction"},
    {"4.9", 95, "test B, 2 processes", "us",
     VALUES({"2", 1, {24.2}}, {"3(a)", 1, {27.5}}, {"3(b)", 1, {26.3}}), "concurrency",
     "test=B processes=2", "us_per_transaction"},
    {"4.9", 95, "test B, speed-up of 2 processes", "ratio",
     VALUES({"2", 1, {1.16}}, {"3(a)", 1, {1.02}}, {"3(b)", 1, {1.07}}), "concurrency",
     "test=B processes=2", "speedup"},
    {"4.9", 95, "test C, 1 process", "us",
     VALUES({"2", 1, {1786}}, {"3(a)", 1, {2259}}, {"3(b)", 1, {2248}}), "concurrency",
     "test=C processes=1", "us_per_transaction"},
    {"4.9", 95, "test C, 2 processes", "us",
     VALUES({"2", 1, {903}}, {"3(a)", 1, {1132}}, {"3(b)", 1, {1130}}), "concurrency",
     "test=C processes=2", "us_per_transaction"},
    {"4.9", 95, "test C, speed-up of 2 processes", "ratio",
     VALUES({"2", 1, {1.98}}, {"3(a)", 1, {2.00}}, {"3(b)", 1, {1.99}}), "concurrency",
     "test=C processes=2", "speedup"},
    /* Table 4.10. */
    {"4.10", 96, "test A, 1 process", "ms",
     VALUES({"3(a)", 1, {6.12}}, {"3(b)", 1, {6.21}}), "concurrency-durable",
     "test=A processes=1", "us_per_transaction"},
    {"4.10", 96, "test A, 2 processes", "ms",
     VALUES({"3(a)", 1, {6.16}}, {"3(b)", 1, {6.26}}), "concurrency-durable",
     "test=A processes=2", "us_per_transaction"},
    {"4.10", 96, "test A, speed-up of 2 processes", "ratio",
     VALUES({"3(a)", 1, {0.99}}, {"3(b)", 1, {0.99}}), "concurrency-durable",
     "test=A processes=2", "speedup"},
    {"4.10", 96, "test B, 1 process", "ms",
     VALUES({"3(a)", 1, {6.11}}, {"3(b)", 1, {6.22}}), "concurrency-durable",
     "test=B processes=1", "us_per_transaction"},
    {"4.10", 96, "test B, 2 processes", "ms",
     VALUES({"3(a)", 1, {6.20}}, {"3(b)", 1, {6.21}}), "concurrency-durable",
     "test=B processes=2", "us_per_transaction"},
    {"4.10", 96, "test B, speed-up of 2 processes", "ratio",
     VALUES({"3(a)", 1, {0.99}}, {"3(b)", 1, {1.00}}), "concurrency-durable",
     "test=B processes=2", "speedup"},
    {"4.10", 96, "test C, 1 process", "ms",
     VALUES({"3(a)", 1, {6.32}}, {"3(b)", 1, {6.39}}), "concurrency-durable",
     "test=C processes=1", "us_per_transaction"},
    {"4.10", 96, "test C, 2 processes", "ms",
     VALUES({"3(a)", 1, {6.63}}, {"3(b)", 1, {6.62}}), "concurrency-durable",
     "test=C processes=2", "us_per_transaction"},
    {"4.10", 96, "test C, speed-up of 2 processes", "ratio",
     VALUES({"3(a)", 1, {0.95}}, {"3(b)", 1, {0.97}}), "concurrency-durable",
     "test=C processes=2", "speedup"},
    /* Table C.1. */
    {"C.1", 136, "delay between successive rdtsc", "cycles",
     VALUES({"1", 6, {99.5, 458, 92, 92, 112, 35332}},
            {"2", 6, {92.0, 0.92, 92, 92, 92, 184}}, {"3", 6, {9.0, 3.2, 5, 8, 23, 36}},
            {"4", 6, {41.0, 0.16, 41, 41, 41, 51}}),
     "timer", "clock=rdtsc", "us"},
    /* Table C.2. */
    {"C.2", 136, "delay between successive gettimeofday", "us",
     VALUES({"1", 6, {2.87, 2.24, 2.0, 3.0, 7.0, 201.0}},
            {"2", 6, {0.87, 0.39, 0.0, 1.0, 1.0, 20.0}},
            {"3", 6, {1.3, 0.50, 1.0, 1.0, 2.0, 8.0}},
            {"4", 6, {1.55, 2.99, 1.0, 2.0, 2.0, 271.0}}),
     "timer", "clock=gettimeofday", "us"},
    /* Table C.3. */
    {"C.3", 141, "entering the SIGSEGV handler", "cycles",
     VALUES({"1", 6, {32216, 11268, 33320, 33956, 54772, 648236}},
            {"2", 6, {8032, 546, 7884, 8032, 8132, 45720}},
            {"3", 6, {3489, 182, 3238, 3466, 3741, 13190}},
            {"4", 6, {3078, 613, 2971, 3051, 3155, 30968}}),
     "handler", "operation=segv_enter", "us"},
    {"C.3", 141, "mmap of a page", "cycles",
     VALUES({"1", 6, {15156, 2747, 13916, 14580, 26672, 70748}},
            {"2", 6, {10054, 639, 9920, 10024, 10380, 49520}},
            {"3", 6, {3228, 512, 2892, 3205, 3420, 13335}},
            {"4", 6, {2282, 711, 2142, 2259, 2340, 56322}}),
     "handler", "operation=mmap", "us"},
    {"C.3", 141, "leaving the SIGSEGV handler", "cycles",
     VALUES({"1", 6, {29323, 9288, 27408, 28428, 44996, 635340}},
            {"2", 6, {9723, 830, 9632, 9704, 9872, 46960}},
            {"3", 6, {4745, 110, 4377, 4709, 4844, 9204}},
            {"4", 6, {3140, 537, 3055, 3114, 3267, 21255}}),
     "handler", "operation=segv_exit", "us"},
    /* Table C.4. */
    {"C.4", 141, "1,000 times memcpy of a page", "cycles",
     VALUES({"1", 6, {1122167, 129167, 1064328, 1076620, 1803956, 2204000}},
            {"2", 6, {1052253, 7379, 1046292, 1052316, 1086384, 1106784}},
            {"3", 6, {608482, 8049, 605017, 608112, 612237, 791724}},
            {"4", 6, {931823, 98636, 925048, 925089, 953525, 4037042}}),
     "handler", "operation=memcpy_1000", "us"},
    /* Table C.5. */
    {"C.5", 142, "durable, page read", "us",
     VALUES({"1", 6, {38.6, 65.0, 34.6, 35.5, 52.7, 2044.5}},
            {"3(a)", 6, {15.4, 33.1, 14.1, 14.4, 14.7, 1062.6}},
            {"3(b)", 6, {16.4, 10.6, 15.5, 15.8, 30.2, 344.6}}),
     "touch-durable", "access=read hint=none pages=1024", "us_per_page"},
    {"C.5", 142, "durable, page read, advisory function", "us",
     VALUES({"1", 6, {22.4, 75.0, 18.1, 18.8, 36.0, 2032.2}},
            {"3(a)", 6, {14.0, 32.5, 11.8, 13.0, 13.5, 1039.4}},
            {"3(b)", 6, {15.1, 25.2, 12.7, 13.8, 25.9, 636.2}}),
     "touch-durable", "access=read hint=page pages=1024", "us_per_page"},
    {"C.5", 142, "durable, page write", "us",
     VALUES({"1", 6, {1569.3, 4146.0, 560.4, 731.3, 9578.2, 106560}},
            {"3(a)", 6, {235.0, 276.3, 108.7, 126.0, 1231.71, 1800.13}},
            {"3(b)", 6, {226.8, 297.6, 103.9, 121.2, 1510.3, 1798.0}}),
     "touch-durable", "access=fill hint=none pages=1024", "us_per_page"},
    {"C.5", 142, "durable, page write, advisory function", "us",
     VALUES({"1", 6, {1297.4, 2808.0, 524.4, 842.5, 8645.2, 54514}},
            {"3(a)", 6, {179.4, 173.9, 102.9, 114.7, 822.3, 1612.6}},
            {"3(b)", 6, {182.2, 203.8, 97.8, 115.3, 1072.4, 1674.3}}),
     "touch-durable", "access=fill hint=page pages=1024", "us_per_page"},
    /* Table C.6. */
    {"C.6", 143, "asynchronous msync of the modified page", "us",
     VALUES({"1", 6, {8, 1, 7, 8, 16, 27}}, {"2", 6, {11, 3, 8, 9, 19, 25}},
            {"3(a)", 6, {5, 1, 4, 5, 6, 12}}, {"3(b)", 6, {5, 1, 4, 5, 6, 12}},
            {"4", 6, {33, 6, 28, 31, 43, 111}}),
     "msync", "operation=msync_async pages=1", "us"},
    {"C.6", 143, "fsync of a file of 10,000 pages, one modified", "us",
     VALUES({"1", 6, {13575, 184338, 2439, 8015, 12672, 5836456}},
            {"2", 6, {5137, 36919, 294, 2663, 41061, 1156245}},
            {"3(a)", 6, {4794, 24018, 735, 4002, 7000, 761552}},
            {"3(b)", 6, {4698, 23090, 818, 3949, 6925, 731910}},
            {"4", 6, {3531, 46721, 592, 632, 32576, 1460662}}),
     "msync", "operation=fsync pages=1", "us"},
    /* Table C.7. */
    {"C.7", 143, "lseek to the start", "us",
     VALUES({"1", 6, {6, 2, 5, 6, 13, 62}}, {"2", 6, {4, 13, 2, 3, 4, 406}},
            {"3(a)", 6, {3, 1, 2, 2, 4, 9}}, {"3(b)", 6, {3, 1, 2, 3, 4, 9}},
            {"4", 6, {9, 5, 7, 8, 9, 103}}),
     "msync", "operation=lseek", "us"},
    {"C.7", 143, "write of 10,000 pages, one at a time", "us",
     VALUES({"1", 6, {103446, 244907, 90564, 92088, 113437, 5615347}},
            {"2", 6, {151895, 166318, 119006, 119571, 1193881, 1278444}},
            {"3(a)", 6, {63465, 4036, 62992, 63270, 64268, 190798}},
            {"3(b)", 6, {92507, 70402, 78171, 83658, 586612, 837660}},
            {"4", 6, {2168185, 504761, 1423656, 2521593, 2893774, 3070492}}),
     "msync", "operation=write_all", "us"},
    /* Table C.8. */
    {"C.8", 143, "SHA1 of a page", "kcycles",
     VALUES({"1", 6, {85.6, 16.5, 81.7, 82.9, 118.6, 685.6}},
            {"2", 6, {84.5, 2.3, 83.6, 84.2, 86.4, 177.5}},
            {"4", 6, {105.2, 555.9, 52.2, 52.3, 69.2, 6069.2}}),
     "checksum", "checksum=sha1 bytes=4096", "us"},
    {"C.8", 143, "MD5 of a page", "kcycles",
     VALUES({"1", 6, {36.3, 10.1, 34.4, 35.1, 67.3, 680.5}},
            {"2", 6, {35.5, 5.7, 34.4, 35.5, 35.9, 582.0}},
            {"4", 6, {54.6, 412.2, 25.9, 25.9, 30.6, 6050.1}}),
     "checksum", "checksum=md5 bytes=4096", "us"},
    /* Table C.9. */
    {"C.9", 145, "test A, 1 process", "us",
     VALUES({"1", 2, {32.2, 0.27}}, {"2", 2, {26.2, 0.10}}, {"3(a)", 2, {22.9, 0.63}},
            {"3(b)", 2, {24.3, 1.36}}, {"4", 2, {109, 3.39}}),
     "concurrency", "test=A processes=1", "us_per_transaction"},
    {"C.9", 145, "test A, 2 processes", "us",
     VALUES({"1", 2, {30.7, 0.36}}, {"2", 2, {23.0, 0.15}}, {"3(a)", 2, {24.3, 1.14}},
            {"3(b)", 2, {24.9, 1.07}}, {"4", 2, {185, 13.1}}),
     "concurrency", "test=A processes=2", "us_per_transaction"},
    {"C.9", 145, "test A, speed-up of 2 processes", "ratio",
     VALUES({"1", 1, {1.05}}, {"2", 1, {1.14}}, {"3(a)", 1, {0.94}}, {"3(b)", 1, {0.98}},
            {"4", 1, {0.59}}),
     "concurrency", "test=A processes=2", "speedup"},
    {"C.9", 145, "test B, 1 process", "us",
     VALUES({"1", 2, {33.6, 0.25}}, {"2", 2, {28.3, 0.26}}, {"3(a)", 2, {28.1, 0.42}},
            {"3(b)", 2, {28.2, 1.67}}, {"4", 2, {121, 3.39}}),
     "concurrency", "test=B processes=1", "us_per_transaction"},
    {"C.9", 145, "test B, 2 processes", "us",
     VALUES({"1", 2, {32.2, 0.87}}, {"2", 2, {24.2, 0.48}}, {"3(a)", 2, {27.5, 1.05}},
            {"3(b)", 2, {26.3, 0.74}}, {"4", 2, {190, 11.5}}),
     "concurrency", "test=B processes=2", "us_per_transaction"},
    {"C.9", 145, "test B, speed-up of 2 processes", "ratio",
     VALUES({"1", 1, {1.04}}, {"2", 1, {1.17}}, {"3(a)", 1, {1.02}}, {"3(b)", 1, {1.07}},
            {"4", 1, {0.64}}),
     "concurrency", "test=B processes=2", "speedup"},
    {"C.9", 145, "test C, 1 process", "us",
     VALUES({"1", 2, {1453, 4.90}}, {"2", 2, {1787, 30.3}}, {"3(a)", 2, {2259, 3.90}},
            {"3(b)", 2, {2248, 2.74}}, {"4", 2, {10487, 8.51}}),
     "concurrency", "test=C processes=1", "us_per_transaction"},
    {"C.9", 145, "test C, 2 processes", "us",
     VALUES({"1", 2, {1460, 56.0}}, {"2", 2, {903, 36.3}}, {"3(a)", 2, {1132, 1.82}},
            {"3(b)", 2, {1130, 1.30}}, {"4", 2, {10565, 8.86}}),
     "concurrency", "test=C processes=2", "us_per_transaction"},
    {"C.9", 145, "test C, speed-up of 2 processes", "ratio",
     VALUES({"1", 1, {1.00}}, {"2", 1, {1.98}}, {"3(a)", 1, {2.00}}, {"3(b)", 1, {1.99}},
            {"4", 1, {0.99}}),
     "concurrency", "test=C processes=2", "speedup"},
    /* Table C.10. */
    {"C.10", 146, "test A, 1 process", "us",
     VALUES({"1", 2, {8231, 234}}, {"3(a)", 2, {6116, 8.23}}, {"3(b)", 2, {6210, 23.1}}),
     "concurrency-durable", "test=A processes=1", "us_per_transaction"},
    {"C.10", 146, "test A, 2 processes", "us",
     VALUES({"1", 2, {8531, 3500}}, {"3(a)", 2, {6162, 95.3}}, {"3(b)", 2, {6264, 64.8}}),
     "concurrency-durable", "test=A processes=2", "us_per_transaction"},
    {"C.10", 146, "test A, speed-up of 2 processes", "ratio",
     VALUES({"1", 1, {0.96}}, {"3(a)", 1, {0.99}}, {"3(b)", 1, {0.99}}),
     "concurrency-durable", "test=A processes=2", "speedup"},
    {"C.10", 146, "test B, 1 process", "us",
     VALUES({"1", 2, {8868, 46.5}}, {"3(a)", 2, {6113, 3.28}}, {"3(b)", 2, {6215, 18.1}}),
     "concurrency-durable", "test=B processes=1", "us_per_transaction"},
    {"C.10", 146, "test B, 2 processes", "us",
     VALUES({"1", 2, {8878, 3133}}, {"3(a)", 2, {6201, 93.8}}, {"3(b)", 2, {6213, 20.1}}),
     "concurrency-durable", "test=B processes=2", "us_per_transaction"},
    {"C.10", 146, "test B, speed-up of 2 processes", "ratio",
     VALUES({"1", 1, {1.00}}, {"3(a)", 1, {0.98}}, {"3(b)", 1, {1.00}}),
     "concurrency-durable", "test=B processes=2", "speedup"},
    {"C.10", 146, "test C, 1 process", "us",
     VALUES({"1", 2, {9125, 65.6}}, {"3(a)", 2, {6315, 6.57}}, {"3(b)", 2, {6388, 16.2}}),
     "concurrency-durable", "test=C processes=1", "us_per_transaction"},
    {"C.10", 146, "test C, 2 processes", "us",
     VALUES({"1", 2, {10042, 1452}}, {"3(a)", 2, {6626, 464}},
            {"3(b)", 2, {6619, 438.4}}),
     "concurrency-durable", "test=C processes=2", "us_per_transaction"},
    {"C.10", 146, "test C, speed-up of 2 processes", "ratio",
     VALUES({"1", 1, {0.91}}, {"3(a)", 1, {0.95}}, {"3(b)", 1, {0.97}}),
     "concurrency-durable", "test=C processes=2", "speedup"},
    {0},
};

double
bench_thesis_us(const struct bench_thesis_row *row,
                const struct bench_thesis_value *value, enum bench_thesis_column column)
{
    const struct bench_thesis_machine *m = bench_thesis_machines;
    double v = value->v[column];

    while (m->name != NULL && strcmp(m->name, value->machine) != 0)
        m++;
    if (column >= value->n || m->name == NULL)
        return -1;
    if (strcmp(row->unit, "cycles") == 0)
        return v / m->mhz;
    if (strcmp(row->unit, "kcycles") == 0)
        return v * 1e3 / m->mhz;
    if (strcmp(row->unit, "us") == 0)
        return v;
    return strcmp(row->unit, "ms") == 0 ? v * 1e3 : -1;
}

void
bench_thesis_print(FILE *f)
{
    for (const struct bench_thesis_row *r = bench_thesis_rows; r->table != NULL; r++)
        for (const struct bench_thesis_value *v = r->values; v->machine != NULL; v++) {
            bench_json_begin(f);
            bench_json_str(f, "table", r->table);
            bench_json_u64(f, "page", r->page);
            bench_json_str(f, "what", r->what);
            bench_json_str(f, "unit", r->unit);
            bench_json_str(f, "machine", v->machine);
            bench_json_num(f, "value", v->v[BENCH_THESIS_MEAN]);
            bench_json_num(f, "us", bench_thesis_us(r, v, BENCH_THESIS_MEAN));
            bench_json_str(f, "experiment", r->experiment);
            bench_json_str(f, "where", r->where);
            bench_json_str(f, "keys", r->keys);
            bench_json_end(f);
        }
}
