#pragma once

namespace krigtune {

/// Vector units that this processor and its operating system have, each with all that our builds for it assume:
/// AVX2 with FMA; AVX-512 with F, DQ, VL and BW. False on processors that are not of the x86-64 family.
bool has_avx2();
bool has_avx512();

}  // namespace krigtune
