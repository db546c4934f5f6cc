/* One tile: PROBES vectors against 32 rows.  Included once per instruction set, with
 * TILE, TARGET, PROBES, LANES, VECTOR, LOAD, SPREAD, ZERO, FMA, SUB, ABS, ADD, MIN and AT_LEAST set.
 *
 * pack: [component][PROBES], rows: [component][32].  A value is the product, or minus the distance;
 * it is sure to be near where value >= sure_p + sure_r, and may be where !(value < maybe_p + maybe_r).
 */
TARGET static void TILE(int measure, int64_t width, const float *pack, const float *rows,
                        const float *sure_p, const float *maybe_p, const float *sure_r,
                        const float *maybe_r, uint32_t *sure, uint32_t *maybe) {
    enum { PARTS = COLUMNS / LANES };
    VECTOR value[PROBES][PARTS];
    for (int p = 0; p < PROBES; p++)
        for (int part = 0; part < PARTS; part++) value[p][part] = ZERO;
    for (int p = 0; p < PROBES; p++) sure[p] = maybe[p] = 0;
#define EACH(step)                                                                   \
    for (int64_t k = 0; k < width; k++) {                                            \
        VECTOR y[PARTS];                                                             \
        for (int part = 0; part < PARTS; part++) y[part] = LOAD(rows + k * 32 + part * LANES); \
        for (int p = 0; p < PROBES; p++) {                                           \
            VECTOR x = SPREAD(pack[k * PROBES + p]);                                 \
            for (int part = 0; part < PARTS; part++) {                               \
                VECTOR v = value[p][part];                                           \
                value[p][part] = step;                                               \
            }                                                                        \
        }                                                                            \
    }
    if (measure == L1) EACH(SUB(v, ABS(SUB(x, y[part]))))
    else if (measure == LINF) EACH(MIN(v, SUB(ZERO, ABS(SUB(x, y[part])))))
    else EACH(FMA(x, y[part], v))
#undef EACH
    for (int p = 0; p < PROBES; p++)
        for (int part = 0; part < PARTS; part++) {
            VECTOR limit = ADD(SPREAD(sure_p[p]), LOAD(sure_r + part * LANES));
            VECTOR loose = ADD(SPREAD(maybe_p[p]), LOAD(maybe_r + part * LANES));
            sure[p] |= AT_LEAST(value[p][part], limit) << (part * LANES);
            maybe[p] |= NOT_LESS(value[p][part], loose) << (part * LANES);
        }
}
