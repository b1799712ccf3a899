#pragma once
#include "krigtune/workload/rates.h"
#include "words.h"

namespace krigtune {

inline constexpr Words<Precision, 3> kPrecisionWords = {
    {{"fp32", Precision::kFp32}, {"fp16", Precision::kFp16}, {"bf16", Precision::kBf16}}};

}  // namespace krigtune
