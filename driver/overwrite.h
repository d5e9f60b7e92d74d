// overwrite.h: what mltc writes must not take the place of what it is told to read.
#ifndef DRIVER_OVERWRITE_H
#define DRIVER_OVERWRITE_H

#include "driver/draft.h"

// What is wrong with the output; NULL: nothing. Looks at the graph, what it imports, the plan that it is compiled
// with and its data, embedded or not, once they are known: t->module may be NULL.
const char *overwrite_find(const draft_subject *s, const draft *t);

#endif
