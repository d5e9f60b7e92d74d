// support_campaign.h: how many random modules a test takes.
#ifndef TESTS_SUPPORT_CAMPAIGN_H
#define TESTS_SUPPORT_CAMPAIGN_H

#include <stdlib.h>

// `usual` of them; ten times as many where MLTC_SLOW is set: tests that ask are there a second time, as
// slow/unit/NAME (tests/CMakeLists.txt).
static inline int test_campaign(int usual) {
  return getenv("MLTC_SLOW") ? 10 * usual : usual;
}

#endif
