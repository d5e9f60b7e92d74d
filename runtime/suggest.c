// suggest.c: edit distance with swaps of neighbours ("thread" and "threads", "lr" and "rl").
#include "runtime/suggest.h"

#include <limits.h>
#include <string.h>

enum { LONGEST = 48 };

static int smallest(int a, int b, int c) {
  int m = a < b ? a : b;
  return m < c ? m : c;
}

static int edit_distance(const char *a, int n, const char *b) {
  int m = (int)strlen(b);
  if (n > LONGEST || m > LONGEST)
    return INT_MAX;
  int rows[3][LONGEST + 1]; // row i is rows[i % 3]: swaps look two rows back
  for (int j = 0; j <= m; j++)
    rows[0][j] = j;
  for (int i = 1; i <= n; i++) {
    int *row = rows[i % 3], *up = rows[(i + 2) % 3], *up2 = rows[(i + 1) % 3];
    row[0] = i;
    for (int j = 1; j <= m; j++) {
      row[j] = smallest(up[j] + 1, row[j - 1] + 1, up[j - 1] + (a[i - 1] != b[j - 1]));
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && up2[j - 2] + 1 < row[j])
        row[j] = up2[j - 2] + 1;
    }
  }
  return rows[n % 3][m];
}

mlrt_suggestion mlrt_suggest_begin_part(const char *word, int len) {
  return (mlrt_suggestion){.word = word, .len = len, .distance = len <= 4 ? 2 : len / 3 + 1};
}

mlrt_suggestion mlrt_suggest_begin(const char *word) {
  return mlrt_suggest_begin_part(word, (int)strlen(word));
}

void mlrt_suggest_try(mlrt_suggestion *s, const char *candidate) {
  int d = edit_distance(s->word, s->len, candidate);
  if (d < s->distance) {
    s->distance = d;
    s->best = candidate;
  }
}
