/* Which of 512 rows have at least k of m items: a sum of bits, carried.  Included once per
 * instruction set, with COUNT, TARGET, VECTOR, FROM_BITS, TO_BITS, OR, AND, XOR, SUM3, CARRY3, FULL and
 * EMPTY set; `part` says which stretch of the 512 bits a vector is.
 *
 * The sum starts at 2^planes - k, so that it overflows `planes` bits exactly when k is reached.
 */
TARGET static void COUNT(const Bits *bits, const int32_t *lane, int64_t m, int64_t k, Bits *out) {
    int planes = 0;
    while (((int64_t)1 << planes) < k) planes++;
    int64_t start = ((int64_t)1 << planes) - k;
    for (int part = 0; part < PARTS; part++) {
        VECTOR reached = EMPTY, sum[MOST_PLANES];
        for (int j = 0; j < planes; j++) sum[j] = start >> j & 1 ? FULL : EMPTY;
        if (planes == 0) {
            for (int64_t i = 0; i < m; i++) reached = OR(reached, FROM_BITS(bits + lane[i], part));
        } else if (planes <= 2) {
            VECTOR one = sum[0], two = planes == 2 ? sum[1] : EMPTY;
            for (int64_t i = 0; i < m; i += 4) {
                VECTOR a = FROM_BITS(bits + lane[i], part), b = FROM_BITS(bits + lane[i + 1], part);
                VECTOR c = FROM_BITS(bits + lane[i + 2], part), d = FROM_BITS(bits + lane[i + 3], part);
                VECTOR carry = CARRY3(one, a, b);
                one = SUM3(one, a, b);
                VECTOR more = CARRY3(one, c, d);
                one = SUM3(one, c, d);
                if (planes == 1) reached = OR(reached, OR(carry, more));
                else {
                    reached = OR(reached, CARRY3(two, carry, more));
                    two = SUM3(two, carry, more);
                }
            }
        } else {
            for (int64_t i = 0; i < m; i += 4) {
                VECTOR a = FROM_BITS(bits + lane[i], part), b = FROM_BITS(bits + lane[i + 1], part);
                VECTOR c = FROM_BITS(bits + lane[i + 2], part), d = FROM_BITS(bits + lane[i + 3], part);
                VECTOR carry = CARRY3(sum[0], a, b), rest = SUM3(sum[0], a, b);
                VECTOR more = CARRY3(rest, c, d);
                sum[0] = SUM3(rest, c, d);
                VECTOR four = CARRY3(sum[1], carry, more);
                sum[1] = SUM3(sum[1], carry, more);
                for (int j = 2; j < planes; j++) {
                    VECTOR next = AND(sum[j], four);
                    sum[j] = XOR(sum[j], four);
                    four = next;
                }
                reached = OR(reached, four);
            }
        }
        TO_BITS(out, part, reached);
    }
}
