/* The memory of a record batch.  All that it is made of lies in one block, freed when its last
 * array is released:
 *
 *   | Shared | children, of all arrays | their pointers | buffers' pointers | buffer | buffer | ...
 */
#ifndef WINDJOIN_GATHER_BLOCK_H
#define WINDJOIN_GATHER_BLOCK_H
#include "payload.h"

typedef struct {
    size_t bytes; /* of the block */
    int64_t arrays; /* not yet released */
} Shared;

#define MOST_SPARE_BLOCK (1 << 20) /* bytes of a block that waits to serve again */
#define MOST_BUFFERS 3     /* of an array */

/* The memory of the last result that is gone serves the next: new memory would be cleared by the
 * system first.  Results are released by any thread. */
static char *spare_block;

static inline char *block_new(size_t bytes) {
    char *spare = __atomic_exchange_n(&spare_block, NULL, __ATOMIC_ACQ_REL);
    size_t room = spare ? ((Shared *)spare)->bytes : 0;
    if (bytes <= room && room <= 4 * bytes) return spare;
    free(spare);
    char *memory = malloc(bytes);
    if (memory) ((Shared *)memory)->bytes = bytes;
    return memory;
}

static inline void leave_spare_block(void) {
    free(__atomic_exchange_n(&spare_block, NULL, __ATOMIC_ACQ_REL));
}

static inline void block_leave(char *memory) {
    if (((Shared *)memory)->bytes <= MOST_SPARE_BLOCK)
        memory = __atomic_exchange_n(&spare_block, memory, __ATOMIC_ACQ_REL);
    free(memory);
}

static inline void array_release(ArrowArray *array) {
    for (int64_t k = 0; k < array->n_children; k++)
        if (array->children[k]->release) array->children[k]->release(array->children[k]);
    Shared *block = array->private_data;
    array->release = NULL;
    if (__atomic_sub_fetch(&block->arrays, 1, __ATOMIC_ACQ_REL) == 0) block_leave((char *)block);
}

/* Where the parts of a block are still free. */
typedef struct {
    Shared *block;
    ArrowArray *array;
    ArrowArray **child;
    const void **buffer;
    char *data;
} Room;

static inline void array_begin(ArrowArray *array, Room *room, int64_t length, int buffers,
                               int children) {
    memset(array, 0, sizeof(ArrowArray));
    array->length = length;
    array->n_buffers = buffers;
    array->n_children = children;
    array->buffers = room->buffer;
    memset(room->buffer, 0, (size_t)buffers * sizeof(void *));
    array->children = room->child;
    array->private_data = room->block;
    array->release = array_release;
    room->buffer += buffers;
    room->child += children;
    room->block->arrays++;
}

static inline char *room_take(Room *room, int64_t bytes) {
    char *data = room->data;
    room->data += round_up(bytes);
    return data;
}
#endif
