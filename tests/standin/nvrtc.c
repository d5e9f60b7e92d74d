// nvrtc.c: libnvrtc-standin.so: stands for NVRTC where nobody runs its code. Tests name it in $MLTC_NVRTC.
//
//   kernels.cu  ->  an ELF header for sm_80, then the text      a "cubin"
//                   .target sm_80, then the text                "PTX"
// The stand-in driver wants of an image that it is for its device and has the names of its kernels; what it
// runs is what clang++ has made of the same text. NVRTC takes seconds for that text, and every machine has not
// got it. What NVRTC itself says of kernels is held by cuda_compile.sh, cuda.sh and the units *_compile.
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK, OUT_OF_MEMORY, INVALID_INPUT = 3, INVALID_OPTION = 5 };
enum { EM_CUDA_CUBIN = 190, ABI_OF_CUDA_13 = 8, ARCH_AT = 8 };
enum { TARGET_BYTES = 64 };

typedef struct standin_program {
  char *text, *cubin, *ptx;
  size_t cubin_bytes;
} standin_program;

static const int known[] = {75, 80, 86, 89, 90, 100, 120};
enum { NUM_KNOWN = sizeof known / sizeof *known };

int nvrtcVersion(int *major, int *minor) {
  *major = 13;
  *minor = 0;
  return OK;
}

int nvrtcGetNumSupportedArchs(int *num) {
  *num = NUM_KNOWN;
  return OK;
}

int nvrtcGetSupportedArchs(int *archs) {
  memcpy(archs, known, sizeof known);
  return OK;
}

int nvrtcCreateProgram(standin_program **out, const char *text, const char *name, int num_headers,
                       const char *const *headers, const char *const *header_names) {
  (void)name, (void)headers, (void)header_names;
  if (num_headers != 0)
    return INVALID_INPUT;
  standin_program *p = calloc(1, sizeof *p);
  if (!p || !(p->text = strdup(text)))
    return OUT_OF_MEMORY;
  *out = p;
  return OK;
}

int nvrtcDestroyProgram(standin_program **program) {
  free((*program)->text);
  free((*program)->cubin);
  free((*program)->ptx);
  free(*program);
  *program = NULL;
  return OK;
}

// "sm_90a" or "compute_80" among the options.
static const char *find_arch(int num_options, const char *const *options) {
  static const char option[] = "--gpu-architecture=";
  for (int i = 0; i < num_options; i++)
    if (strncmp(options[i], option, sizeof option - 1) == 0)
      return options[i] + sizeof option - 1;
  return NULL;
}

static int make_cubin(standin_program *p, int capability) {
  size_t text_bytes = strlen(p->text);
  p->cubin_bytes = sizeof(Elf64_Ehdr) + text_bytes;
  p->cubin = malloc(p->cubin_bytes);
  if (!p->cubin)
    return OUT_OF_MEMORY;
  Elf64_Ehdr header = {.e_ident = ELFMAG,
                       .e_machine = EM_CUDA_CUBIN,
                       .e_flags = (Elf64_Word)capability << ARCH_AT,
                       .e_shoff = p->cubin_bytes};
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_ABIVERSION] = ABI_OF_CUDA_13;
  memcpy(p->cubin, &header, sizeof header);
  memcpy(p->cubin + sizeof header, p->text, text_bytes);
  return OK;
}

static int make_ptx(standin_program *p, const char *target) {
  size_t room = strlen(p->text) + TARGET_BYTES;
  p->ptx = malloc(room);
  if (!p->ptx)
    return OUT_OF_MEMORY;
  snprintf(p->ptx, room, "//\n.target sm_%.16s\n%s", target, p->text);
  return OK;
}

int nvrtcCompileProgram(standin_program *p, int num_options, const char *const *options) {
  const char *arch = find_arch(num_options, options);
  const char *target = arch ? strchr(arch, '_') : NULL;
  if (!target++)
    return INVALID_OPTION;
  int capability = atoi(target);
  int code = strncmp(arch, "sm_", 3) == 0 ? make_cubin(p, capability) : OK;
  return code == OK ? make_ptx(p, target) : code;
}

int nvrtcGetCUBINSize(standin_program *p, size_t *bytes) {
  *bytes = p->cubin_bytes;
  return OK;
}

int nvrtcGetCUBIN(standin_program *p, char *data) {
  memcpy(data, p->cubin, p->cubin_bytes);
  return OK;
}

int nvrtcGetPTXSize(standin_program *p, size_t *bytes) {
  *bytes = strlen(p->ptx) + 1;
  return OK;
}

int nvrtcGetPTX(standin_program *p, char *data) {
  strcpy(data, p->ptx);
  return OK;
}

int nvrtcGetProgramLogSize(standin_program *p, size_t *bytes) {
  (void)p;
  *bytes = 1;
  return OK;
}

int nvrtcGetProgramLog(standin_program *p, char *data) {
  (void)p;
  *data = '\0';
  return OK;
}

const char *nvrtcGetErrorString(int code) {
  return code == OK ? "no error" : "an error of the stand-in";
}
