// cmd_diff.h: `mltc diff [--json] A.json B.json`.
#ifndef DRIVER_CMD_DIFF_H
#define DRIVER_CMD_DIFF_H

// argv[0] is "diff". As of diff(1): 0 the plans are the same, 1 they differ, 2 trouble.
int cmd_diff(int argc, char **argv);

#endif
