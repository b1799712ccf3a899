#include "vector_unit/vector_unit_functions.h"

#define KRIGTUNE_TEXT_OF(token) #token
#define KRIGTUNE_TEXT(macro) KRIGTUNE_TEXT_OF(macro)

namespace krigtune::surrogate::KRIGTUNE_VECTOR_UNIT {

extern const VectorUnit kUnit;
constexpr VectorUnit kUnit{
    .name = KRIGTUNE_TEXT(KRIGTUNE_VECTOR_UNIT),
    .cholesky = cholesky,
    .solve_rows = solve_rows,
    .subtract_product = subtract_product,
    .invert = invert,
    .add_moments = add_moments,
    .matern52 = matern52,
    .matern32 = matern32,
    .squared_exponential = squared_exponential,
    .add_squares = add_squares,
    .add_mismatches = add_mismatches,
    .sum_squares = sum_squares,
    .sum_mismatches = sum_mismatches,
    .log_h = log_h,
    .log_normal_cdf = log_normal_cdf,
};

}  // namespace krigtune::surrogate::KRIGTUNE_VECTOR_UNIT
