// same_file.h: whether two names, or an open file and a name, are one file.
#ifndef RUNTIME_SAME_FILE_H
#define RUNTIME_SAME_FILE_H

#include <stdbool.h>

// Regular files; of names that nothing has yet: whether they are the same text.
bool mlrt_same_file(const char *a, const char *b);
// Whether `fd` is still what the path names: another process may have renamed or removed it.
bool mlrt_is_at(int fd, const char *path);

#endif
