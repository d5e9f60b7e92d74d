// support_campaign.h: how much a long test takes on. Tests that include this are run in both builds: with sanitizers,
// which look for other faults in the same code, a part of the work does.
#ifndef TESTS_SUPPORT_CAMPAIGN_H
#define TESTS_SUPPORT_CAMPAIGN_H

#include <stdlib.h>

#ifdef MLTC_SLOW_BUILD
enum { TEST_SANITIZED = 1 };
#else
enum { TEST_SANITIZED = 0 };
#endif

// Of `all` cases: a sixth with sanitizers, at least one.
static inline int test_part(int all) {
  return TEST_SANITIZED ? (all + 5) / 6 : all;
}

// Of `all` cases that differ in their numbers only, where most of the time goes into compiling them: half, and all where
// MLTC_SLOW is set (as for test_campaign); a sixth with sanitizers.
static inline int test_share(int all) {
  return getenv("MLTC_SLOW") ? all : TEST_SANITIZED ? test_part(all) : (all + 1) / 2;
}

// `usual` random modules, or such a part; twenty times as many where MLTC_SLOW is set: tests that ask are there a second
// time, as slow/unit/NAME (tests/CMakeLists.txt).
static inline int test_campaign(int usual) {
  return getenv("MLTC_SLOW") ? 20 * usual : test_part(usual);
}

#endif
