// nvrtc.c: libnvrtc-standin.so, the calls of NVRTC that codegen/nvrtc.c makes, without compiling anything. Tests whose
// kernels run on the emulator name it in $MLTC_NVRTC: an image is what the stand-in driver looks for in one, the
// architecture that it is for and the names of its kernels. Where the code itself matters (cuda_compile.sh, test_nvrtc.c,
// test_cuda_images.c) there is NVRTC.
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, OUT_OF_MEMORY = 1, INVALID_INPUT = 3 };

typedef struct program {
  char *text;
  char *image;
  bool real; // sm_...: of the GPU itself
} program;

int nvrtcVersion(int *major, int *minor);
int nvrtcGetNumSupportedArchs(int *num);
int nvrtcGetSupportedArchs(int *archs);
int nvrtcCreateProgram(program **out, const char *text, const char *name, int num_headers,
                       const char *const *headers, const char *const *header_names);
int nvrtcDestroyProgram(program **p);
int nvrtcCompileProgram(program *p, int num_options, const char *const *options);
int nvrtcGetCUBINSize(program *p, size_t *bytes);
int nvrtcGetCUBIN(program *p, char *data);
int nvrtcGetPTXSize(program *p, size_t *bytes);
int nvrtcGetPTX(program *p, char *data);
int nvrtcGetProgramLogSize(program *p, size_t *bytes);
int nvrtcGetProgramLog(program *p, char *data);
const char *nvrtcGetErrorString(int code);

int nvrtcVersion(int *major, int *minor) {
  *major = 13;
  *minor = 0;
  return OK;
}

static const int known[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};

int nvrtcGetNumSupportedArchs(int *num) {
  *num = sizeof known / sizeof *known;
  return OK;
}

int nvrtcGetSupportedArchs(int *archs) {
  memcpy(archs, known, sizeof known);
  return OK;
}

int nvrtcCreateProgram(program **out, const char *text, const char *name, int num_headers,
                       const char *const *headers, const char *const *header_names) {
  (void)name, (void)headers, (void)header_names;
  if (num_headers)
    return INVALID_INPUT;
  *out = calloc(1, sizeof **out);
  if (!*out || !((*out)->text = strdup(text)))
    return OUT_OF_MEMORY;
  return OK;
}

int nvrtcDestroyProgram(program **p) {
  free((*p)->text);
  free((*p)->image);
  free(*p);
  *p = NULL;
  return OK;
}

// --- compiling -----------------------------------------------------------------------------------
static const char *architecture(int num_options, const char *const *options) {
  static const char name[] = "--gpu-architecture=";
  for (int i = 0; i < num_options; i++)
    if (strncmp(options[i], name, strlen(name)) == 0)
      return options[i] + strlen(name);
  return NULL;
}

static bool begins(const char *text, const char *with) {
  return strncmp(text, with, strlen(with)) == 0;
}

// The kernels of a file are uses of macros at the start of a line, K_KERNEL(name, ...) and the like
// (codegen/cuda_prelude.h), and so are the tables of joint ones, K_ROWS_NEAR(name); other macros that are used so say
// nothing and do no harm.
static void put_names(FILE *out, const char *text) {
  for (const char *line = text; line && *line; line = strchr(line, '\n'), line += line != NULL) {
    const char *open = line + strspn(line, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
    int len = 0;
    if (!begins(line, "K_") || *open != '(' || begins(line, "K_CALLED"))
      continue;
    while (isalnum((unsigned char)open[1 + len]) || open[1 + len] == '_')
      len++;
    fprintf(out, ".visible .entry %s%.*s\n", begins(line, "K_ROWS") ? "k_rows_of_" : "", len,
            open + 1);
  }
}

int nvrtcCompileProgram(program *p, int num_options, const char *const *options) {
  const char *arch = architecture(num_options, options), *number = arch ? strchr(arch, '_') : NULL;
  size_t len = 0;
  FILE *out = number ? open_memstream(&p->image, &len) : NULL;
  if (!out)
    return INVALID_INPUT;
  p->real = strncmp(arch, "sm_", 3) == 0;
  fprintf(out, "// of the stand-in for NVRTC: no code\n.target sm%s\n", number);
  put_names(out, p->text);
  return fclose(out) == 0 ? OK : OUT_OF_MEMORY;
}

// --- what comes of it ----------------------------------------------------------------------------
int nvrtcGetPTXSize(program *p, size_t *bytes) {
  *bytes = p->image ? strlen(p->image) + 1 : 0;
  return OK;
}

int nvrtcGetPTX(program *p, char *data) {
  memcpy(data, p->image, strlen(p->image) + 1);
  return OK;
}

int nvrtcGetCUBINSize(program *p, size_t *bytes) {
  *bytes = 0;
  return p->real ? nvrtcGetPTXSize(p, bytes) : OK;
}

int nvrtcGetCUBIN(program *p, char *data) {
  return p->real ? nvrtcGetPTX(p, data) : INVALID_INPUT;
}

int nvrtcGetProgramLogSize(program *p, size_t *bytes) {
  (void)p;
  *bytes = 1;
  return OK;
}

int nvrtcGetProgramLog(program *p, char *data) {
  (void)p;
  *data = '\0';
  return OK;
}

const char *nvrtcGetErrorString(int code) {
  return code == OUT_OF_MEMORY ? "NVRTC_ERROR_OUT_OF_MEMORY"
         : code == OK          ? "NVRTC_SUCCESS"
                               : "NVRTC_ERROR_INVALID_INPUT";
}
