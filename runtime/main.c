// main.c: the trainer's entry, in an object of its own: programs that use the runtime as a library
// (tests) have their own main, and no generated program.
#include "runtime/mlrt.h"

int main(int argc, char **argv) {
  return mlrt_main(&mlrt_the_program, argc, argv);
}
