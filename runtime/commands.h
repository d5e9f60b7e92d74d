// commands.h: the trainer's other commands. Each returns the exit code.
#ifndef RUNTIME_COMMANDS_H
#define RUNTIME_COMMANDS_H

#include "runtime/trainer.h"

int mlrt_train(const mlrt_program *p, mlrt_options *o);   // loop.c
int mlrt_eval(const mlrt_program *p, mlrt_options *o);    // eval.c
int mlrt_predict(const mlrt_program *p, mlrt_options *o); // predict.c
int mlrt_check(const mlrt_program *p, mlrt_options *o);   // check.c
int mlrt_info(const mlrt_program *p, mlrt_options *o);    // info.c

// Opens a trainer with the states of the checkpoint, or the weights, that the options name; returns
// its step.
int64_t mlrt_open_trained(mlrt_trainer *t, const mlrt_program *p, mlrt_options *o); // eval.c
// Fails when the program has no data of that name; NULL is fine.
void mlrt_check_split(const mlrt_program *p, const char *split); // eval.c

// The parts of `check`: number of failures.
int mlrt_check_kernels(const mlrt_program *p, const mlrt_options *o); // check_kernels.c
int mlrt_check_gradients(const mlrt_program *p, mlrt_options *o);     // check_gradients.c
int mlrt_check_program(const mlrt_program *p, mlrt_options *o);       // check_program.c

#endif
