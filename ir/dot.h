// dot.h: a picture of the IR for Graphviz.
#ifndef IR_DOT_H
#define IR_DOT_H

#include "ir/ir.h"

// One cluster per function and, after fusion, per kernel. `mltc x.graph --emit=dot | dot -Tsvg`.
void ir_print_dot(const ir_module *m, ir_buf *out);

#endif
