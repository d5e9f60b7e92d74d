// files.h: what several parts of the runtime ask of files.
#ifndef RUNTIME_FILES_H
#define RUNTIME_FILES_H

#include <stdbool.h>
#include <stddef.h>

// Regular files; of names that nothing has yet: whether they are the same text.
bool mlrt_same_file(const char *a, const char *b);
// Whether `fd` is still what the path names: another process may have renamed or removed it.
bool mlrt_is_at(int fd, const char *path);
// To read it; -1 with errno. Does not wait for the other end of a pipe: that is no file to read in places.
int mlrt_open_input(const char *path);
// All of it, however often the kernel takes a part. False with errno.
bool mlrt_write_all(int fd, const void *from, size_t bytes);

#endif
