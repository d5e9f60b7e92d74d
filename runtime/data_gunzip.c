// data_gunzip.c: unpacks a .gz once, to private pages of exactly the right size.
//
// The size is not known before the end (the trailer may lie), so pages grow by doubling and the
// rest is given back. Growth is bounded: by what the unpacked header asks for (`need`), by the
// machine's memory, by 64 GiB. Untouched pages take no memory, so growing costs nothing.
#include "runtime/data_reader.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#define ZLIB_CONST
#include <zlib.h>

enum { HEAD_BYTES = 1 << 16, FIRST_PAGES = 1 << 20, PIECE = 1 << 20 };

bool mlrt_is_gz(const uint8_t *data, int64_t len) {
  return len >= 3 && data[0] == 0x1f && data[1] == 0x8b && data[2] == 8;
}

typedef struct unpacking {
  const mlrt_file *packed;
  z_stream z;
  int64_t taken; // packed bytes that were given to zlib
  uint8_t *out;
  int64_t len, cap, limit;
  bool by_header; // `limit` is what the header asks for
} unpacking;

static int64_t memory_limit(void) {
  int64_t physical = (int64_t)sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE);
  int64_t most = (int64_t)64 << 30;
  return physical > 0 && physical < most ? physical : most;
}

static bool too_large(const unpacking *u, mlrt_error *e) {
  if (u->by_header)
    return mlrt_error_set(e, "%s: unpacks to more bytes than its own header asks for (%lld)",
                          u->packed->name, (long long)(u->limit - 1));
  return mlrt_error_memory(e,
                           "%s: unpacks to more than this machine's memory (%lld bytes)\n"
                           "help: unpack it with gunzip; plain files are read in place",
                           u->packed->name, (long long)u->limit);
}

static bool grow(unpacking *u, mlrt_error *e) {
  if (u->cap >= u->limit)
    return too_large(u, e);
  int64_t cap = mlrt_pages_size(u->cap > u->limit / 2 ? u->limit : 2 * u->cap);
  void *out = mremap(u->out, (size_t)u->cap, (size_t)cap, MREMAP_MAYMOVE);
  if (out == MAP_FAILED)
    return mlrt_error_memory(e, "%s: no memory to unpack it (more than %lld bytes)",
                             u->packed->name, (long long)u->cap);
  u->out = out;
  u->cap = cap;
  return true;
}

// Packed bytes are handed over in pieces, and the pages of a piece are let go when it is used up:
// packed and unpacked bytes are not in memory together.
static void feed(unpacking *u) {
  if (u->z.avail_in > 0)
    return;
  if (u->packed->map && u->taken > 0 && u->taken % PIECE == 0)
    madvise(u->packed->map + u->taken - PIECE, PIECE, MADV_DONTNEED);
  int64_t rest = u->packed->len - u->taken;
  u->z.next_in = u->packed->data + u->taken;
  u->z.avail_in = (uInt)(rest > PIECE ? PIECE : rest);
  u->taken += u->z.avail_in;
}

static int64_t packed_position(const unpacking *u) {
  return u->taken - (int64_t)u->z.avail_in;
}

static bool broken(const unpacking *u, int status, mlrt_error *e) {
  const mlrt_file *f = u->packed;
  if (status == Z_BUF_ERROR)
    return mlrt_error_set(e, "%s: the .gz file is cut off after %lld bytes\nhelp: fetch it again",
                          f->name, (long long)f->len);
  if (status == Z_MEM_ERROR)
    return mlrt_error_memory(e, "%s: no memory to unpack it", f->name);
  return mlrt_error_set(e, "%s: the .gz file is damaged at byte %lld: %s", f->name,
                        (long long)packed_position(u), u->z.msg ? u->z.msg : "bad stream");
}

// The header is unpacked: from here on it bounds the size.
static void learn_limit(unpacking *u, mlrt_need_fn need) {
  if (!need || u->by_header)
    return;
  int64_t most = need(u->out, u->len);
  if (most < u->limit) {
    u->limit = most + 1; // one more byte is room to notice a surplus
    u->by_header = true;
  }
}

// One gzip member into the pages, as far as `stop` bytes at a time.
static bool unpack_member(unpacking *u, mlrt_need_fn need, mlrt_error *e) {
  for (;;) {
    if (u->len >= HEAD_BYTES)
      learn_limit(u, need);
    int64_t end = u->len < HEAD_BYTES ? HEAD_BYTES : u->cap < u->limit ? u->cap : u->limit;
    if (u->len >= end) {
      if (!grow(u, e))
        return false;
      continue;
    }
    int64_t room = end - u->len > (1 << 30) ? 1 << 30 : end - u->len;
    feed(u);
    u->z.next_out = u->out + u->len;
    u->z.avail_out = (uInt)room;
    int status = inflate(&u->z, Z_NO_FLUSH);
    u->len += room - (int64_t)u->z.avail_out;
    if (status == Z_STREAM_END)
      return true;
    if (status != Z_OK)
      return broken(u, status, e);
  }
}

// Copies by way of tapes or blocks are filled up with zeros, as gzip knows.
static bool only_zeros(const mlrt_file *f, int64_t at) {
  while (at < f->len && f->data[at] == 0)
    at++;
  return at == f->len;
}

// A .gz may have several members; but for zeros, anything else behind the first is an error.
static bool unpack_all(unpacking *u, mlrt_need_fn need, mlrt_error *e) {
  for (;;) {
    if (!unpack_member(u, need, e))
      return false;
    int64_t at = packed_position(u);
    if (only_zeros(u->packed, at))
      return true;
    if (!mlrt_is_gz(u->packed->data + at, u->packed->len - at))
      return mlrt_error_set(e, "%s: %lld bytes follow the end of the .gz data (at byte %lld)",
                            u->packed->name, (long long)(u->packed->len - at), (long long)at);
    inflateReset(&u->z);
  }
}

static void shrink(unpacking *u) {
  int64_t used = mlrt_pages_size(u->len);
  if (used < u->cap)
    munmap(u->out + used, (size_t)(u->cap - used));
  u->cap = used;
}

static bool run(unpacking *u, mlrt_need_fn need, mlrt_error *e) {
  const char *name = u->packed->name;
  u->cap = FIRST_PAGES;
  u->limit = memory_limit();
  u->out = mlrt_pages_new(u->cap);
  if (!u->out || inflateInit2(&u->z, 16 + MAX_WBITS) != Z_OK)
    return mlrt_error_memory(e, "%s: no memory to unpack it", name);
  bool ok = unpack_all(u, need, e);
  inflateEnd(&u->z);
  if (ok && u->len == 0)
    ok = mlrt_error_set(e, "%s: is empty when unpacked", name);
  return ok;
}

bool mlrt_gunzip(mlrt_file *f, mlrt_need_fn need, mlrt_error *e) {
  unpacking u = {.packed = f};
  if (!run(&u, need, e)) {
    if (u.out)
      munmap(u.out, (size_t)u.cap);
    return false;
  }
  shrink(&u);
  if (f->map) // the packed bytes
    munmap(f->map, (size_t)f->map_bytes);
  f->map = u.out;
  f->map_bytes = u.cap;
  f->data = u.out;
  f->len = u.len;
  f->memory = MLRT_MEM_PRIVATE;
  return true;
}
