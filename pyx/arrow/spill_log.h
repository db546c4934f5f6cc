/* Bytes in a file by their position: appended at the end, read anywhere, forgotten from the begin.
 *
 *   positions   forgotten |  extent 5   |  extent 6   |  extent 7   | not there yet
 *                         | ...^begin   |             |      ^end   |
 *   file        |  extent 7   |  extent 5   |   spare     |  extent 6   |
 *
 * Extents lie anywhere in the file.  Those of which all is forgotten serve again: what the system
 * holds in memory of them is written over, and it need not ask for more.
 */
#ifndef WINDJOIN_SPILL_LOG_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#define WINDJOIN_SPILL_LOG_H
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXTENT_BITS 20
#define EXTENT ((int64_t)1 << EXTENT_BITS)
#define SPARE_EXTENTS 8 /* more than those in use that keep their room on the disk */

/* A file of extents, and of whatever else is written behind its end. */
typedef struct {
    int file;        /* -1: there is none */
    int64_t end;     /* where more goes */
    int64_t *spare;  /* extents that serve nobody: where they begin */
    int64_t spares;
    int64_t extents; /* of both kinds */
    int64_t room;    /* for so many in `spare` */
    int64_t most;    /* where it has to end; 0: anywhere */
} SpillFile;

typedef struct {
    int64_t *extent;     /* where extents begin in the file, in a ring, by their numbers */
    int64_t mask;        /* -1: there is no ring yet */
    int64_t first, stop; /* the extents that there are */
    int64_t begin, end;  /* the positions that there are */
} Log;

/* The file gets the room of [at, at + n) back. */
static inline void file_give_back(const SpillFile *file, int64_t at, int64_t n) {
#ifdef FALLOC_FL_PUNCH_HOLE
    if (fallocate(file->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, n)) {
        /* a file system that cannot: the room comes back with the file */
    }
#endif
}

/* 0: they could not be written, see errno. */
static inline int write_all(int file, const char *from, int64_t n, int64_t at) {
    while (n > 0) {
        ssize_t done = pwrite(file, from, (size_t)n, at);
        if (done < 0 && errno == EINTR) continue;
        if (done == 0) errno = ENOSPC;
        if (done <= 0) return 0;
        from += done;
        n -= done;
        at += done;
    }
    return 1;
}

/* 0: they could not be read, see errno. */
static inline int read_all(int file, char *to, int64_t n, int64_t at) {
    while (n > 0) {
        ssize_t done = pread(file, to, (size_t)n, at);
        if (done < 0 && errno == EINTR) continue;
        if (done == 0) errno = EIO; /* the file has become shorter */
        if (done <= 0) return 0;
        to += done;
        n -= done;
        at += done;
    }
    return 1;
}

/* Whether so many more bytes may be written behind its end; else errno says why not. */
static inline int file_fits(const SpillFile *file, int64_t more) {
    if (!file->most || more <= 0 || file->end + more <= file->most) return 1;
    errno = EDQUOT;
    return 0;
}

/* Where an extent begins that serves nobody; -1: no memory. */
static inline int64_t extent_take(SpillFile *file) {
    if (file->spares) return file->spare[--file->spares];
    if (file->extents == file->room) { /* so that giving back cannot fail */
        int64_t room = file->room ? 2 * file->room : 16;
        int64_t *grown = realloc(file->spare, (size_t)room * sizeof(int64_t));
        if (!grown) return -1;
        file->spare = grown;
        file->room = room;
    }
    int64_t at = (file->end + 4095) & ~(int64_t)4095;
    file->end = at + EXTENT;
    file->extents++;
    return at;
}

static inline void extent_give(SpillFile *file, int64_t at) {
    int64_t used = file->extents - file->spares;
    if (file->spares >= used + SPARE_EXTENTS) file_give_back(file, at, EXTENT);
    file->spare[file->spares++] = at;
}

/* Extents for positions before `end`; 0: no memory. */
static inline int log_extend(SpillFile *file, Log *log, int64_t end) {
    int64_t stop = (end + EXTENT - 1) >> EXTENT_BITS;
    if (stop - log->first > log->mask + 1) {
        int64_t room = 4;
        while (room < stop - log->first) room *= 2;
        int64_t *ring = malloc((size_t)room * sizeof(int64_t));
        if (!ring) return 0;
        for (int64_t k = log->first; k < log->stop; k++)
            ring[k & (room - 1)] = log->extent[k & log->mask];
        free(log->extent);
        log->extent = ring;
        log->mask = room - 1;
    }
    for (; log->stop < stop; log->stop++) {
        int64_t at = extent_take(file);
        if (at < 0) return 0;
        log->extent[log->stop & log->mask] = at;
    }
    return 1;
}

/* Bytes of [at, at + n) that lie together, from `at` on, and where. */
static inline int64_t log_piece(const Log *log, int64_t at, int64_t n, int64_t *place) {
    int64_t within = at & (EXTENT - 1), there = EXTENT - within;
    *place = log->extent[(at >> EXTENT_BITS) & log->mask] + within;
    return there < n ? there : n;
}

/* n bytes have the positions from `at` on; 0: they could not be written, see errno. */
static inline int log_write(SpillFile *file, Log *log, const char *from, int64_t n, int64_t at) {
    int64_t end = at + n, place;
    int64_t extents = ((end + EXTENT - 1) >> EXTENT_BITS) - log->stop - file->spares;
    if (!file_fits(file, extents * EXTENT)) return 0;
    if (!log_extend(file, log, end)) {
        errno = ENOMEM;
        return 0;
    }
    while (at < end) {
        int64_t some = log_piece(log, at, end - at, &place);
        if (!write_all(file->file, from, some, place)) return 0;
        from += some;
        at += some;
    }
    if (log->end < end) log->end = end;
    return 1;
}

/* 0: they could not be read, see errno. */
static inline int log_read(const SpillFile *file, const Log *log, char *to, int64_t n, int64_t at) {
    int64_t end = at + n, place;
    while (at < end) {
        int64_t some = log_piece(log, at, end - at, &place);
        if (!read_all(file->file, to, some, place)) return 0;
        to += some;
        at += some;
    }
    return 1;
}

/* Nobody asks for positions before `at` any more. */
static inline void log_forget(SpillFile *file, Log *log, int64_t at) {
    int64_t first = at >> EXTENT_BITS;
    for (; log->first < first && log->first < log->stop; log->first++)
        extent_give(file, log->extent[log->first & log->mask]);
    if (log->first < first) log->first = log->stop = first;
    log->begin = at;
    if (log->end < at) log->end = at;
}
#endif
