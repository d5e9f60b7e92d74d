// nvrtc.c: see nvrtc.h.
#include "codegen/nvrtc.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codegen/cache.h"

// --- what NVRTC exports (its manual; 0 is success everywhere) ------------------------------------
typedef void *program;
typedef struct entries {
  int (*version)(int *major, int *minor);
  int (*num_archs)(int *num);
  int (*archs)(int *archs);
  int (*create)(program *p, const char *text, const char *name, int num_headers,
                const char *const *headers, const char *const *header_names);
  int (*destroy)(program *p);
  int (*compile)(program p, int num_options, const char *const *options);
  int (*cubin_size)(program p, size_t *bytes);
  int (*cubin)(program p, char *data);
  int (*ptx_size)(program p, size_t *bytes);
  int (*ptx)(program p, char *data);
  int (*log_size)(program p, size_t *bytes);
  int (*log)(program p, char *data);
  const char *(*error)(int code);
} entries;

static const struct {
  const char *name;
  size_t offset;
} symbols[] = {
    {"nvrtcVersion", offsetof(entries, version)},
    {"nvrtcGetNumSupportedArchs", offsetof(entries, num_archs)},
    {"nvrtcGetSupportedArchs", offsetof(entries, archs)},
    {"nvrtcCreateProgram", offsetof(entries, create)},
    {"nvrtcDestroyProgram", offsetof(entries, destroy)},
    {"nvrtcCompileProgram", offsetof(entries, compile)},
    {"nvrtcGetCUBINSize", offsetof(entries, cubin_size)},
    {"nvrtcGetCUBIN", offsetof(entries, cubin)},
    {"nvrtcGetPTXSize", offsetof(entries, ptx_size)},
    {"nvrtcGetPTX", offsetof(entries, ptx)},
    {"nvrtcGetProgramLogSize", offsetof(entries, log_size)},
    {"nvrtcGetProgramLog", offsetof(entries, log)},
    {"nvrtcGetErrorString", offsetof(entries, error)},
};
enum { NUM_SYMBOLS = sizeof symbols / sizeof *symbols };

struct cg_nvrtc {
  entries f;
  const char *version, *path, *identity;
  int num_archs, *archs;
};

// --- finding it ----------------------------------------------------------------------------------
static const char *const file_names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
enum { NUM_FILES = sizeof file_names / sizeof *file_names };

// Under a toolkit, and under the site-packages of the wheels nvidia-cuda-nvrtc(-cu12).
static const char *const sub_folders[] = {"", "/lib64", "/lib", "/nvidia/cu13/lib",
                                          "/nvidia/cuda_nvrtc/lib"};
enum { NUM_FOLDERS = sizeof sub_folders / sizeof *sub_folders };

static bool is_folder(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

// NVRTC opens its builtins by name alone. Beside a library that the loader does not know they are
// found because they are already there.
static void open_builtins(ir_arena *a, const char *path) {
  const char *slash = strrchr(path, '/');
  glob_t g;
  if (!slash)
    return;
  const char *pattern = ir_format(a, "%.*s/libnvrtc-builtins.so.*", (int)(slash - path), path);
  if (glob(pattern, 0, NULL, &g) == 0 && g.gl_pathc > 0)
    dlopen(g.gl_pathv[g.gl_pathc - 1], RTLD_NOW | RTLD_LOCAL);
  globfree(&g);
}

static void *open_file(ir_arena *a, const char *path) {
  if (strchr(path, '/') && access(path, R_OK) == 0)
    open_builtins(a, path);
  return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static void *open_under(ir_arena *a, const char *folder) {
  for (int i = 0; folder && *folder && i < NUM_FOLDERS; i++)
    for (int j = 0; j < NUM_FILES; j++) {
      const char *path = ir_format(a, "%s%s/%s", folder, sub_folders[i], file_names[j]);
      void *lib = access(path, R_OK) == 0 ? open_file(a, path) : NULL;
      if (lib)
        return lib;
    }
  return NULL;
}

// "13.0" after "12.9" and "9.2": paths differ in their version only.
static int by_version(const void *x, const void *y) {
  return strverscmp(*(char *const *)x, *(char *const *)y);
}

static void *open_usual_places(ir_arena *a) {
  void *lib = open_under(a, "/usr/local/cuda");
  glob_t g;
  if (!lib && glob("/usr/local/cuda-*", 0, NULL, &g) == 0) {
    qsort(g.gl_pathv, g.gl_pathc, sizeof *g.gl_pathv, by_version);
    for (size_t i = g.gl_pathc; !lib && i-- > 0;)
      lib = open_under(a, g.gl_pathv[i]);
    globfree(&g);
  }
  return lib;
}

static void *open_anywhere(ir_arena *a) {
  void *lib = NULL;
  for (int i = 0; !lib && i < NUM_FILES; i++)
    lib = dlopen(file_names[i], RTLD_NOW | RTLD_LOCAL);
  if (!lib)
    lib = open_under(a, getenv("CUDA_HOME"));
  if (!lib)
    lib = open_under(a, getenv("CUDA_PATH"));
  return lib ? lib : open_usual_places(a);
}

static const char help[] =
    "install it with\n"
    "  apt-get install cuda-nvrtc-13-0        (NVIDIA's package repository; or any CUDA toolkit)\n"
    "  pip install nvidia-cuda-nvrtc          (and set MLTC_NVRTC to the site-packages folder)\n"
    "or use --cuda-compiler=clang, which makes PTX for the GPU's driver to compile";

static void *open_library(ir_arena *a, const char **why) {
  const char *place = getenv("MLTC_NVRTC");
  void *lib;
  if (place && *place) {
    lib = is_folder(place) ? open_under(a, place) : open_file(a, place);
    if (!lib)
      *why = ir_format(a, "MLTC_NVRTC=%s: there is no NVRTC (libnvrtc.so) that can be opened; %s",
                       place, help);
    return lib;
  }
  lib = open_anywhere(a);
  if (!lib)
    *why = ir_format(a,
                     "--target=cuda needs NVRTC (libnvrtc.so.13 or .12), NVIDIA's compiler, which "
                     "is not on this machine; %s",
                     help);
  return lib;
}

// --- opening it ----------------------------------------------------------------------------------
static bool resolve(ir_arena *a, void *lib, entries *f, const char **why) {
  for (int i = 0; i < NUM_SYMBOLS; i++) {
    void *address = dlsym(lib, symbols[i].name);
    if (!address) {
      *why = ir_format(a, "the NVRTC found has no %s: mltc needs version 12 or newer; %s",
                       symbols[i].name, help);
      return false;
    }
    memcpy((char *)f + symbols[i].offset, &address, sizeof address);
  }
  return true;
}

static const char *find_path(ir_arena *a, const cg_nvrtc *n) {
  Dl_info info;
  void *address;
  memcpy(&address, &n->f.compile, sizeof address);
  return dladdr(address, &info) ? ir_strdup(a, info.dli_fname) : NULL;
}

static const char *identify(ir_arena *a, const cg_nvrtc *n) {
  const char *stamp = n->path ? cg_file_stamp(a, n->path) : NULL;
  return ir_format(a, "nvrtc %s, %s", n->version, stamp ? stamp : "of no file");
}

const cg_nvrtc *cg_nvrtc_open(ir_arena *a, const char **why) {
  cg_nvrtc *n = IR_NEW(a, cg_nvrtc);
  void *lib = open_library(a, why);
  int major = 0, minor = 0;
  if (!lib || !resolve(a, lib, &n->f, why))
    return NULL;
  if (n->f.version(&major, &minor) != 0 || n->f.num_archs(&n->num_archs) != 0) {
    *why = ir_format(a, "the NVRTC found does not answer; %s", help);
    return NULL;
  }
  n->archs = IR_NEW_ARRAY(a, int, n->num_archs + 1);
  n->f.archs(n->archs);
  n->version = ir_format(a, "%d.%d", major, minor);
  n->path = find_path(a, n);
  n->identity = identify(a, n);
  return n;
}

const char *cg_nvrtc_version(const cg_nvrtc *n) {
  return n->version;
}

const char *cg_nvrtc_path(const cg_nvrtc *n) {
  return n->path;
}

const char *cg_nvrtc_identity(const cg_nvrtc *n) {
  return n->identity;
}

bool cg_nvrtc_knows(const cg_nvrtc *n, int compute) {
  for (int i = 0; i < n->num_archs; i++)
    if (n->archs[i] == compute)
      return true;
  return false;
}

const char *cg_nvrtc_all(const cg_nvrtc *n, ir_arena *a) {
  ir_buf b = ir_buf_new(a);
  for (int i = 0; i < n->num_archs; i++)
    ir_buf_printf(&b, "%ssm_%d", i ? ", " : "", n->archs[i]);
  return ir_buf_str(&b);
}

// --- compiling -----------------------------------------------------------------------------------
typedef int (*get_size)(program p, size_t *bytes);
typedef int (*get_data)(program p, char *data);

// NULL when there is none.
static const char *take(ir_arena *a, program p, get_size size, get_data data, size_t *len) {
  *len = 0;
  if (size(p, len) != 0 || *len == 0)
    return NULL;
  char *bytes = ir_alloc(a, *len + 1);
  return data(p, bytes) == 0 ? bytes : NULL;
}

bool cg_nvrtc_compile(const cg_nvrtc *n, ir_arena *a, const char *name, const char *text,
                      const char *const *options, int num_options, cg_nvrtc_code *code) {
  program p = NULL;
  size_t len;
  *code = (cg_nvrtc_code){.log = ""};
  int status = n->f.create(&p, text, name, 0, NULL, NULL);
  if (status == 0) {
    status = n->f.compile(p, num_options, options);
    const char *log = take(a, p, n->f.log_size, n->f.log, &len);
    code->log = log ? log : "";
  }
  if (status == 0) {
    code->cubin = take(a, p, n->f.cubin_size, n->f.cubin, &code->cubin_len);
    code->ptx = take(a, p, n->f.ptx_size, n->f.ptx, &code->ptx_len);
  } else {
    code->log = ir_format(a, "%sNVRTC %s: %s\n", code->log, n->version, n->f.error(status));
  }
  if (p)
    n->f.destroy(&p);
  return status == 0;
}
