/* Greedy weighted minimum set cover: which hosts hold, together, all segments that are asked for?
 *
 * A set of segments is a bitset over slots, `words` long; a set of hosts one over host numbers,
 * `host_words` long.  Weights are whole numbers 1 .. 1024 and gains at most 4096: then the order of
 * weight / gain is exact even in single precision, and ties go to the lowest host number on every
 * machine.  (Two such fractions that differ do so by more than 2^-22 of their size.)
 */
#ifndef WINDJOIN_COVER_H
#define WINDJOIN_COVER_H

#include <assert.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define WJ_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define WJ_CLONES
#endif
#define WJ_INLINE static inline __attribute__((always_inline))

/* Up to this many hosts, counting anew beats keeping counts. */
#define WJ_FEW_HOSTS 12
#define WJ_NO_GAIN INT64_MAX

typedef struct {
    int hosts;                /* host numbers are 0 .. hosts - 1 */
    int host_words;
    int first_word;           /* only words first_word .. last_word of slot bitsets are looked at */
    int last_word;
    int words;                /* stride of `held` */
    const uint64_t *held;     /* [hosts][words]: the slots that a host holds */
    const uint64_t *holders;  /* [slots][host_words]: the hosts that hold a slot */
    const double *weight;     /* [hosts] */
    int32_t *count;           /* [hosts] scratch */
    int64_t *key;             /* [hosts] scratch: weight / gain and the host number, ordered as one integer */
    uint64_t *random;         /* state of the random choice; 0 chooses by weight / gain */
} wj_cover;

WJ_INLINE int wj_gain(const wj_cover *in, int host, const uint64_t *left) {
    const uint64_t *held = in->held + (int64_t)host * in->words;
    int gain = 0;
    for (int w = in->first_word; w <= in->last_word; w++)
        gain += __builtin_popcountll(held[w] & left[w]);
    return gain;
}

WJ_INLINE int wj_any(const wj_cover *in, const uint64_t *left) {
    uint64_t any = 0;
    for (int w = in->first_word; w <= in->last_word; w++) any |= left[w];
    return any != 0;
}

WJ_INLINE void wj_take(const wj_cover *in, int host, uint64_t *left) {
    const uint64_t *held = in->held + (int64_t)host * in->words;
    for (int w = in->first_word; w <= in->last_word; w++) left[w] &= ~held[w];
}

/* Few hosts: score all of them anew for every choice. */
WJ_INLINE int wj_cover_recounting(const wj_cover *in, uint64_t *left, int32_t *chosen) {
    int n = 0;
    while (wj_any(in, left)) {
        int best = -1, best_gain = 0;
        double best_weight = 0;
        for (int host = 0; host < in->hosts; host++) {
            int gain = wj_gain(in, host, left);
            if (gain && (best < 0 || in->weight[host] * best_gain < best_weight * gain)) {
                best = host, best_gain = gain, best_weight = in->weight[host];
            }
        }
        if (best < 0) return -1;
        chosen[n++] = best;
        wj_take(in, best, left);
    }
    return n;
}

WJ_INLINE void wj_rescore(const wj_cover *in, int host) {
    float score = (float)in->weight[host] / (float)in->count[host];
    int32_t bits;
    memcpy(&bits, &score, sizeof bits);
    in->key[host] = in->count[host] ? (int64_t)bits << 32 | host : WJ_NO_GAIN;
}

WJ_INLINE int wj_argmin(const int64_t *key, int n) {
    int64_t least = WJ_NO_GAIN;
    for (int i = 0; i < n; i++) least = key[i] < least ? key[i] : least;
    return least == WJ_NO_GAIN ? -1 : (int)(least & 0xffffffff);
}

/* Slots `covered` are no longer left: their holders gain less from now on. */
WJ_INLINE void wj_uncount(const wj_cover *in, int word, uint64_t covered, uint64_t *touched) {
    while (covered) {
        int slot = word * 64 + __builtin_ctzll(covered);
        const uint64_t *holders = in->holders + (int64_t)slot * in->host_words;
        covered &= covered - 1;
        for (int hw = 0; hw < in->host_words; hw++) {
            uint64_t hosts = holders[hw];
            touched[hw] |= hosts;
            while (hosts) {
                in->count[hw * 64 + __builtin_ctzll(hosts)]--;
                hosts &= hosts - 1;
            }
        }
    }
}

/* Many hosts: count once, then take off what is covered through the lists of holders. */
WJ_INLINE int wj_cover_counting(const wj_cover *in, uint64_t *left, int32_t *chosen) {
    uint64_t touched[64];
    int n = 0, best;
    for (int host = 0; host < in->hosts; host++) {
        in->count[host] = wj_gain(in, host, left);
        wj_rescore(in, host);
    }
    while (wj_any(in, left)) {
        const uint64_t *held;
        if ((best = wj_argmin(in->key, in->hosts)) < 0) return -1;
        chosen[n++] = best;
        held = in->held + (int64_t)best * in->words;
        memset(touched, 0, sizeof(uint64_t) * in->host_words);
        for (int w = in->first_word; w <= in->last_word; w++) {
            wj_uncount(in, w, left[w] & held[w], touched);
            left[w] &= ~held[w];
        }
        for (int hw = 0; hw < in->host_words; hw++)
            for (uint64_t hosts = touched[hw]; hosts; hosts &= hosts - 1)
                wj_rescore(in, hw * 64 + __builtin_ctzll(hosts));
    }
    return n;
}

/* The unoptimised router: any host that covers something, all equally likely (xorshift64). */
WJ_INLINE int wj_cover_at_random(const wj_cover *in, uint64_t *left, int32_t *chosen) {
    int n = 0;
    while (wj_any(in, left)) {
        int useful = 0;
        uint64_t x = *in->random;
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        *in->random = x;
        for (int host = 0; host < in->hosts; host++)
            if (wj_gain(in, host, left)) in->count[useful++] = host;
        if (useful == 0) return -1;
        chosen[n] = in->count[(int)(x % (uint64_t)useful)];
        wj_take(in, chosen[n++], left);
    }
    return n;
}

/* Cover `left`, which is used up.  Writes the chosen hosts in order of choice and returns how many,
 * or -1 if some slot is held by nobody.  `touched` above bounds hosts to 4096. */
WJ_CLONES static int wj_cover_greedy(const wj_cover *in, uint64_t *left, int32_t *chosen) {
    assert(in->host_words <= 64);
    if (in->random && *in->random) return wj_cover_at_random(in, left, chosen);
    if (in->hosts <= WJ_FEW_HOSTS)
        return wj_cover_recounting(in, left, chosen);
    return wj_cover_counting(in, left, chosen);
}

#endif
