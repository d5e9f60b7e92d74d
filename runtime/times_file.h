// times_file.h: what the files of --kernel-times of both kinds of device have in common.
#ifndef RUNTIME_TIMES_FILE_H
#define RUNTIME_TIMES_FILE_H

#include <stdint.h>
#include <stdio.h>

// Ends the process where the file could not be written: at the start, not after hours of training. Leaves it as it is.
void mlrt_times_check(const char *path);
// Empty, to be written to; ends the process where it cannot be.
FILE *mlrt_times_begin(const char *path);
// "name":"text"
void mlrt_times_text(FILE *f, const char *name, const char *text);
// The first fields of a kernel: what it is, how often it ran, and how long: in all, and on average. No braces.
void mlrt_times_kernel(FILE *f, const char *name, const char *ops, const char *where,
                       int64_t launches, double seconds);
// Closes the file; ends the process where not all of it could be written.
void mlrt_times_finish(FILE *f, const char *path);

#endif
