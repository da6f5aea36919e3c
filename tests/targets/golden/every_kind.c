#include "every_kind.h"

#include <math.h>

static double axode_fmin(double a, double b) { return a != a ? a : (a < b ? a : b); }

static double axode_fmax(double a, double b) { return a != a ? a : (a > b ? a : b); }

static double axode_hypot(double a, double b) { return a != a || b != b ? a + b : hypot(a, b); }

static double axode_sign(double a) { return a > 0.0 ? 1.0 : (a < 0.0 ? -1.0 : a); }

void every_kind(const double *x, const double *left_torque, double *out)
{
    (void)x;
    (void)left_torque;
    (void)out;
    const double v0 = x[0];
    const double v1 = left_torque[1];
    const double v3 = v0 + v1;
    const double v4 = v0 - v1;
    const double v5 = v0 * v1;
    const double v6 = v0 / v1;
    const double v7 = -v0;
    const double v8 = sqrt(v0);
    const double v9 = sin(v0);
    const double v10 = cos(v0);
    const double v11 = tan(v0);
    const double v12 = asin(v0);
    const double v13 = acos(v0);
    const double v14 = atan(v0);
    const double v15 = atan2(v0, v1);
    const double v16 = exp(v0);
    const double v17 = expm1(v0);
    const double v18 = log(v0);
    const double v19 = log1p(v0);
    const double v20 = pow(v0, v1);
    const double v21 = sinh(v0);
    const double v22 = cosh(v0);
    const double v23 = tanh(v0);
    const double v24 = asinh(v0);
    const double v25 = acosh(v0);
    const double v26 = atanh(v0);
    const double v27 = erf(v0);
    const double v28 = axode_hypot(v0, v1);
    const double v29 = floor(v0);
    const double v30 = ceil(v0);
    const double v31 = fmod(v0, v1);
    const double v32 = remainder(v0, v1);
    const double v33 = fabs(v0);
    const double v34 = axode_sign(v0);
    const double v35 = copysign(v0, v1);
    const double v36 = axode_fmin(v0, v1);
    const double v37 = axode_fmax(v0, v1);
    const double v38 = (double)(v0 < v1);
    const double v39 = (double)(v0 <= v1);
    const double v40 = (double)(v0 == v1);
    const double v41 = (double)(v0 != v1);
    const double v42 = (double)(v0 == 0.0);
    const double v43 = (double)(v0 != 0.0 && v1 != 0.0);
    const double v44 = (double)(v0 != 0.0 || v1 != 0.0);
    const double v45 = v0 != 0.0 ? v1 : (-0.5);
    out[0] = v3;
    out[1] = v4;
    out[2] = v5;
    out[3] = v6;
    out[4] = v7;
    out[5] = v8;
    out[6] = v9;
    out[7] = v10;
    out[8] = v11;
    out[9] = v12;
    out[10] = v13;
    out[11] = v14;
    out[12] = v15;
    out[13] = v16;
    out[14] = v17;
    out[15] = v18;
    out[16] = v19;
    out[17] = v20;
    out[18] = v21;
    out[19] = v22;
    out[20] = v23;
    out[21] = v24;
    out[22] = v25;
    out[23] = v26;
    out[24] = v27;
    out[25] = v28;
    out[26] = v29;
    out[27] = v30;
    out[28] = v31;
    out[29] = v32;
    out[30] = v33;
    out[31] = v34;
    out[32] = v35;
    out[33] = v36;
    out[34] = v37;
    out[35] = v38;
    out[36] = v39;
    out[37] = v40;
    out[38] = v41;
    out[39] = v42;
    out[40] = v43;
    out[41] = v44;
    out[42] = v45;
    out[43] = INFINITY;
    out[44] = (-INFINITY);
    out[45] = NAN;
    out[46] = 0.1;
}
