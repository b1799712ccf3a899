#pragma once
#include <string>
#include <vector>

namespace krigtune {

/// The instruction sets for which the inner loops of the surrogate and the kernels of the engine are compiled, the
/// slowest first. kPlain is the instruction set that every processor of the family has; kAvx2 is AVX2 with FMA; kAvx512
/// is AVX-512 with F, DQ, VL and BW.
enum class VectorUnitKind { kPlain, kAvx2, kAvx512 };

/// Returns "plain", "avx2" or "avx512".
const char* to_string(VectorUnitKind kind);

/// Returns the vector units that this processor and its operating system support: kPlain first, the fastest last.
/// Returns only kPlain if the processor is not of the x86-64 family or the compiler is neither GCC nor Clang.
std::vector<VectorUnitKind> processor_vector_units();

/// Returns the vector unit called `name`, or the last of `available` if the name is empty. Throws UserError if no
/// vector unit has that name, or if it is not among `available`.
VectorUnitKind choose_vector_unit(const std::string& name, const std::vector<VectorUnitKind>& available);

/// Returns the vector unit that this process uses: the fastest that the processor has, or the one that the environment
/// variable KRIGTUNE_VECTOR_UNIT names. The variable is read at the first call; later calls return the same answer at
/// the cost of a comparison. Throws UserError as choose_vector_unit does, so programs call it before they begin.
VectorUnitKind chosen_vector_unit();

/// Returns the name of this computer as gethostname(2) reports it, or "" if it has none.
std::string host_name();

}  // namespace krigtune
