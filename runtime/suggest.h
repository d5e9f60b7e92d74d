// suggest.h: "did you mean": the candidate nearest to a misspelt word, if near enough.
#ifndef RUNTIME_SUGGEST_H
#define RUNTIME_SUGGEST_H

typedef struct mlrt_suggestion {
  const char *word, *best; // best: NULL while nothing is near
  int len;                 // of word
  int distance;            // of best; candidates must be nearer than this
} mlrt_suggestion;

mlrt_suggestion mlrt_suggest_begin(const char *word);
mlrt_suggestion mlrt_suggest_begin_part(const char *word, int len); // its first `len` bytes
void mlrt_suggest_try(mlrt_suggestion *s, const char *candidate);

#endif
