#pragma once
#include "krigtune/core/words.h"
#include "krigtune/workload/rates.h"

namespace krigtune {

inline constexpr EnumWords<Precision, 3> kPrecisionWords = {{{to_string(Precision::kFp32), Precision::kFp32},
                                                             {to_string(Precision::kFp16), Precision::kFp16},
                                                             {to_string(Precision::kBf16), Precision::kBf16}}};

}  // namespace krigtune
