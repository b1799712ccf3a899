#pragma once
#include <string>

#include "session/session.h"

namespace krigtune::report {

/// Returns advice for a session in which too little fits in memory, in its own names: "let the space hold a lower
/// micro_batch or tensor_parallel, or use more GPUs". It does not mention what the session already has. A higher limit
/// is suggested only if the limit is the user's own number and not that of a named GPU.
std::string memory_advice(const session::Session& session);

}  // namespace krigtune::report
