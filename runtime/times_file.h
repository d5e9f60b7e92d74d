// times_file.h: what the files of --kernel-times of both kinds of device have in common.
#ifndef RUNTIME_TIMES_FILE_H
#define RUNTIME_TIMES_FILE_H

#include <stdint.h>
#include <stdio.h>

// An empty file, now and not after hours of training; fails where it cannot be written.
void mlrt_times_create(const char *path);
// "name":"text"
void mlrt_times_text(FILE *f, const char *name, const char *text);
// The first fields of a kernel: what it is, how often it ran, and how long: in all, and on average. No braces.
void mlrt_times_kernel(FILE *f, const char *name, const char *ops, const char *where,
                       int64_t launches, double seconds);
// Closes the file; fails where not all of it could be written.
void mlrt_times_finish(FILE *f, const char *path);

#endif
