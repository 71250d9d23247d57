// (a, b) -> (a cos - b sin, b cos + a sin), where a is an element of the first half of a head and b its partner in the second.
static void rotate(ls_rotation_job* job, float*) {
    const ls_rotation& p = *job->rotation;
    const int64_t half = p.dim / 2;
    for (int64_t unit; (unit = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED)) < job->units;)
        for (int64_t r = unit * LS_NORM_ROWS; r < p.rows && r < (unit + 1) * LS_NORM_ROWS; r++) {
            const float *cos = p.cos + r * half, *sin = p.sin + r * half;
            for (int64_t h = 0; h < p.heads; h++) {
                float *a = p.x + r * p.row + h * p.head, *b = a + half;
                int64_t d = 0;
                for (; d + L <= half; d += L) {
                    const vf c = load(cos + d), s = load(sin + d) * p.sign, x = load(a + d), y = load(b + d);
                    store(a + d, x * c - y * s);
                    store(b + d, y * c + x * s);
                }
                for (; d < half; d++) {
                    const float c = cos[d], s = sin[d] * p.sign, x = a[d], y = b[d];
                    a[d] = x * c - y * s;
                    b[d] = y * c + x * s;
                }
            }
        }
}
