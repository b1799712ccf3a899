#include "vector_unit_functions.h"

#define KRIGTUNE_TEXT_OF(token) #token
#define KRIGTUNE_TEXT(macro) KRIGTUNE_TEXT_OF(macro)

namespace krigtune::KRIGTUNE_VECTOR_UNIT {

extern const VectorUnit kUnit;
const VectorUnit kUnit{
    KRIGTUNE_TEXT(KRIGTUNE_VECTOR_UNIT), cholesky, solve_rows, subtract_product, invert, add_moments};

}  // namespace krigtune::KRIGTUNE_VECTOR_UNIT
