// characters.h: what the ids of texts that are read with vocab=chars stand for.
//
// A network has learned them, so they go into checkpoints: whoever reads one gives each character the id that it had.
#ifndef RUNTIME_CHARACTERS_H
#define RUNTIME_CHARACTERS_H

#include <stdbool.h>
#include <stdint.h>

// Id i is byte[i]. num 0: there are none, or they are not known.
typedef struct mlrt_characters {
  int num;
  uint8_t byte[256];
} mlrt_characters;

// Those that the file that a run begins with has.
typedef struct mlrt_known_characters {
  mlrt_characters characters;
  const char *from; // the file's name
  bool more;        // others may follow, with the ids behind
} mlrt_known_characters;

// As metadata have them: "10 32 97".
enum { MLRT_CHARACTERS_TEXT = 256 * 4 };
void mlrt_characters_write(const mlrt_characters *c, char text[MLRT_CHARACTERS_TEXT]);
// False: it is no such text, or has a byte twice.
bool mlrt_characters_read(mlrt_characters *c, const char *text);

#endif
