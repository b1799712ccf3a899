#pragma once
#include <string>

#include "session/session.h"

namespace krigtune::report {

/// What to do where too little fits in memory, in the session's own names: "let the space hold a lower micro_batch or
/// tensor_parallel, or use more GPUs". Only what the session does not have already. A higher limit is advised where it
/// is the user's own number, not what a named GPU has.
std::string memory_advice(const session::Session& session);

}  // namespace krigtune::report
