// report_page.h: --emit=report: a plan to look at in a browser.
#ifndef CODEGEN_REPORT_PAGE_H
#define CODEGEN_REPORT_PAGE_H

#include "codegen/program.h"

// One HTML page that needs nothing else: report_page/report.html with its style and scripts, and as JSON
//   {"plan": as plan.json,
//    "groups": [[["matmul", "f32[64,10]", "mlp.graph:7"], ...]],   members of kernels, each list once
//    "members": [[0, 1, 1, 2]],                                    by function and kernel: of groups
//    "machines": [{"name", "assumed", "gbytes", "rates": {"f32": gflops}}]}    rooflines
void cg_print_report(const cg_program *p, const plan *pl, ir_buf *out);

#endif
