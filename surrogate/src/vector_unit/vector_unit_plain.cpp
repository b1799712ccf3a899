// For compilers and processors whose vector units krigtune does not know: only the plain functions.
#include "vector_unit/vector_unit.h"

namespace krigtune::surrogate {

namespace plain {
extern const VectorUnit kUnit;
}

const VectorUnit& vector_unit() { return plain::kUnit; }

std::vector<const VectorUnit*> available_vector_units() { return {&plain::kUnit}; }

}  // namespace krigtune::surrogate
