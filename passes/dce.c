// dce.c: removes what no result and no write needs.
//
//   before:  %a = exp %x            after:  %b = neg %x
//            %b = neg %x                    result output y = %b
//            result output y = %b
//
// Inputs stay: they are the function's interface. Other passes drop what they leave unused
// (ir_rewrite_end); this one is for what was dead to begin with and for IR written by hand.
#include "ir/builder.h"
#include "passes/pass.h"

bool pass_dce(ir_module *m, ir_diags *d) {
  (void)d;
  return pass_each_func(m, ir_drop_dead);
}
