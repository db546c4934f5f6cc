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
/* Up to this many, for up to this many segments, scoring anew beats keeping scores. */
#define WJ_SOME_HOSTS 48
#define WJ_NO_GAIN INT64_MAX
#define WJ_INFINITE ((int64_t)0x7f800000 << 32) /* the key of a score of weight / 0 */

typedef struct {
    int hosts;                /* host numbers are 0 .. hosts - 1 */
    int host_words;
    int first_word; /* only words first_word .. last_word of slot bitsets are looked at */
    int last_word;
    int words; /* stride of `held` */
    const uint64_t *held; /* [hosts][words]: the slots that a host holds */
    const uint64_t *holders; /* [slots][host_words]: the hosts that hold a slot */
    const double *weight; /* [hosts] */
    int32_t *count; /* [hosts] scratch */
    int64_t *key; /* [hosts] scratch: weight / gain and the host number, ordered as one integer */
    uint64_t *random; /* state of the random choice; 0 chooses by weight / gain */
} wj_cover;

/* `n_words` is in->last_word - in->first_word + 1: a constant where that is worth a copy of the
 * code, as it is where covers take less than a microsecond. */
WJ_INLINE int wj_gain(const wj_cover *in, int host, const uint64_t *left, int n_words) {
    const uint64_t *held = in->held + (int64_t)host * in->words + in->first_word;
    int gain = 0;
    for (int w = 0; w < n_words; w++) gain += __builtin_popcountll(held[w] & left[w]);
    return gain;
}

/* Whether anything is left once a host has taken what it holds. */
WJ_INLINE int wj_take(const wj_cover *in, int host, uint64_t *left, int n_words) {
    const uint64_t *held = in->held + (int64_t)host * in->words + in->first_word;
    uint64_t any = 0;
    for (int w = 0; w < n_words; w++) any |= left[w] &= ~held[w];
    return any != 0;
}

WJ_INLINE int wj_any(const uint64_t *left, int n_words) {
    uint64_t any = 0;
    for (int w = 0; w < n_words; w++) any |= left[w];
    return any != 0;
}

/* Few hosts: score all of them anew for every choice, without a branch on what is found. */
WJ_INLINE int wj_cover_recounting(const wj_cover *in, uint64_t *left, int32_t *chosen,
                                  int n_words) {
    int32_t weight[WJ_FEW_HOSTS];
    int n = 0, some = wj_any(left, n_words);
    for (int host = 0; host < in->hosts; host++) weight[host] = (int32_t)in->weight[host];
    while (some) {
        int32_t best = -1, best_gain = 0, best_weight = 1;
        for (int host = 0; host < in->hosts; host++) {
            int32_t gain = wj_gain(in, host, left, n_words);
            int better = weight[host] * best_gain < best_weight * gain;
            best = better ? host : best;
            best_gain = better ? gain : best_gain;
            best_weight = better ? weight[host] : best_weight;
        }
        if (best < 0) return -1;
        chosen[n++] = best;
        some = wj_take(in, best, left, n_words);
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
WJ_INLINE void wj_uncount(const wj_cover *in, int word, uint64_t covered, uint64_t *touched,
                          int host_words) {
    while (covered) {
        int slot = word * 64 + __builtin_ctzll(covered);
        const uint64_t *holders = in->holders + (int64_t)slot * host_words;
        covered &= covered - 1;
        for (int hw = 0; hw < host_words; hw++) {
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
WJ_INLINE int wj_cover_counting(const wj_cover *in, uint64_t *left, int32_t *chosen, int n_words,
                                int host_words) {
    uint64_t touched[64];
    int n = 0, some = wj_any(left, n_words);
    for (int host = 0; host < in->hosts; host++) {
        in->count[host] = wj_gain(in, host, left, n_words);
        wj_rescore(in, host);
    }
    while (some) {
        int best = wj_argmin(in->key, in->hosts);
        if (best < 0) return -1;
        const uint64_t *held = in->held + (int64_t)best * in->words + in->first_word;
        chosen[n++] = best;
        for (int hw = 0; hw < host_words; hw++) touched[hw] = 0;
        for (int w = 0; w < n_words; w++)
            wj_uncount(in, in->first_word + w, left[w] & held[w], touched, host_words);
        some = wj_take(in, best, left, n_words);
        for (int hw = 0; hw < host_words; hw++)
            for (uint64_t hosts = touched[hw]; hosts; hosts &= hosts - 1)
                wj_rescore(in, hw * 64 + __builtin_ctzll(hosts));
    }
    return n;
}

/* Some hosts and one word of segments: score all of them anew, several at a time.  `room` is a
 * constant of at least in->hosts; hosts that are not there gain nothing. */
WJ_INLINE int wj_cover_rescoring(const wj_cover *in, uint64_t *left, int32_t *chosen, int room) {
    float weight[WJ_SOME_HOSTS];
    int32_t gain[WJ_SOME_HOSTS];
    uint64_t held[WJ_SOME_HOSTS];
    int n = 0;
    for (int host = 0; host < room; host++) {
        int there = host < in->hosts;
        weight[host] = there ? (float)in->weight[host] : 1.0f;
        held[host] = there ? in->held[(int64_t)host * in->words + in->first_word] : 0;
    }
    for (uint64_t rest = *left; rest; rest &= ~held[chosen[n++]]) {
        int64_t least = WJ_NO_GAIN;
        for (int host = 0; host < room; host++)
            gain[host] = __builtin_popcountll(held[host] & rest);
        for (int host = 0; host < room; host++) {
            union {
                float value;
                int32_t bits;
            } score = {weight[host] / (float)gain[host]};
            int64_t key = (int64_t)score.bits << 32 | host;
            least = key < least ? key : least;
        }
        if (least >= WJ_INFINITE) return -1;
        chosen[n] = (int32_t)(least & 0xffffffff);
    }
    return n;
}

/* The unoptimised router: any host that covers something, all equally likely (xorshift64). */
WJ_INLINE int wj_cover_at_random(const wj_cover *in, uint64_t *left, int32_t *chosen, int n_words) {
    int n = 0, some = wj_any(left, n_words);
    while (some) {
        int useful = 0;
        uint64_t x = *in->random;
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        *in->random = x;
        for (int host = 0; host < in->hosts; host++)
            if (wj_gain(in, host, left, n_words)) in->count[useful++] = host;
        if (useful == 0) return -1;
        chosen[n] = in->count[(int)(x % (uint64_t)useful)];
        some = wj_take(in, chosen[n++], left, n_words);
    }
    return n;
}

/* Cover `left`, which is used up.  Writes the chosen hosts in order of choice and returns how many,
 * or -1 if some slot is held by nobody.  `touched` above bounds hosts to 4096. */
WJ_CLONES static int wj_cover_greedy(const wj_cover *in, uint64_t *left, int32_t *chosen) {
    int n_words = in->last_word - in->first_word + 1;
    assert(in->host_words <= 64);
    left += in->first_word;
    if (in->random && *in->random) return wj_cover_at_random(in, left, chosen, n_words);
    if (in->hosts <= WJ_FEW_HOSTS) switch (n_words) {
        case 1: return wj_cover_recounting(in, left, chosen, 1);
        case 2: return wj_cover_recounting(in, left, chosen, 2);
        case 4: return wj_cover_recounting(in, left, chosen, 4);
        default: return wj_cover_recounting(in, left, chosen, n_words);
        }
    if (n_words == 1 && in->hosts <= 32) return wj_cover_rescoring(in, left, chosen, 32);
    if (n_words == 1 && in->hosts <= WJ_SOME_HOSTS)
        return wj_cover_rescoring(in, left, chosen, WJ_SOME_HOSTS);
    if (in->host_words == 1)
        return n_words == 1 ? wj_cover_counting(in, left, chosen, 1, 1)
                            : wj_cover_counting(in, left, chosen, n_words, 1);
    if (in->host_words == 2 && n_words == 1) return wj_cover_counting(in, left, chosen, 1, 2);
    return wj_cover_counting(in, left, chosen, n_words, in->host_words);
}

#endif
