// files.h: what several parts of the runtime ask of files.
#ifndef RUNTIME_FILES_H
#define RUNTIME_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

// Regular files; of names that nothing has yet: whether they would be one in one folder.
bool mlrt_same_file(const char *a, const char *b);
// Whether a rename may take its place: a pipe or a device would be gone, and a folder refuses;
// or links that lead to each other.
bool mlrt_is_replaceable(const char *path);
// Whether a file that is made in `folder` may take the place of the one at `path` there, if any, as far as that can be
// asked; else errno is EPERM: somebody else's file where the folder is sticky, as /tmp is; one that chattr made
// immutable.
bool mlrt_may_be_replaced(const char *path, const char *folder);
// The file that a link leads to, which need not be there yet: the one to replace, so that the link stays. `path`
// where it is no link. Freed by the caller; NULL: out of memory.
char *mlrt_behind_links(const char *path);
// Whether it is, or a link leads to, what names an open file of the program, such as /dev/stdout. Of the file that was
// opened, `>> file`, nothing else is known.
bool mlrt_is_stream(const char *path);
// Where `path` is or would be made: freed by the caller; NULL: out of memory.
char *mlrt_folder_of(const char *path);
// Whether `fd` is still what the path names: another process may have renamed or removed it.
bool mlrt_is_at(int fd, const char *path);
// To read it; -1 with errno. Does not wait for the other end of a pipe: that is no file to read in places.
int mlrt_open_input(const char *path);
// Whether the output of a long run could be written to `path`, asked at its start; false with errno. What is there stays
// as it is. Pipes are not tried: their readers would see an end.
bool mlrt_may_be_written(const char *path);
// Whether a file is there, with something in it, that does not begin as the one to be written: another one, such as a
// checkpoint or the graph, is not emptied for a slip of the keyboard. `begin`: at most 15 characters.
bool mlrt_has_other_text(const char *path, const char *begin);
// To write it, from its beginning; NULL with errno. A pipe that nobody reads is an error (ENXIO), not a wait that no signal
// would end.
FILE *mlrt_open_output(const char *path);
// Takes the place of standard streams that the caller has closed, before a file does: what is printed would go into
// it. Printing fails as it would have.
void mlrt_occupy_streams(void);
// For this program until it closes `fd`. False: another one has it. Everybody has it on file systems without locks.
bool mlrt_lock(int fd);
// A file whose place a new one takes once that is whole. All NULL: none is.
typedef struct mlrt_place {
  char *path;   // behind links
  char *temp;   // the new one, until then
  char *folder; // where both are
} mlrt_place;
// False: out of memory; mlrt_place_close is still due.
bool mlrt_place_open(mlrt_place *p, const char *path);
void mlrt_place_close(mlrt_place *p);
// Opens the new file to write it: empty, for this program alone until it closes it, and open to those to whom the one that
// it replaces is. Waits so many seconds for another program that has it. -1 with errno: EWOULDBLOCK where that one still
// does.
int mlrt_place_begin(const mlrt_place *p, int seconds);
// Gives it the name, whatever had that. It is synced: its bytes must be on disk before the name says that they are; the
// name is before this returns. False with errno: then it may have its new name all the same (mlrt_is_at).
bool mlrt_place_take(const mlrt_place *p, int fd);
// A rename is on disk when its folder is. `file`: open, and in it. False with errno.
bool mlrt_sync_folder(const char *folder, int file);
// All of it, however often the kernel takes a part. False with errno.
bool mlrt_write_all(int fd, const void *from, size_t bytes);

#endif
