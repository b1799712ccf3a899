#pragma once
#include <memory>

#include "core/clock.h"
#include "engine/host/communicator.h"
#include "engine/host/processes.h"

namespace krigtune::engine {

/// Makes a communicator whose ranks are processes. Its results equal those of ThreadGroup bit by bit. `clock` must
/// outlive it.
std::unique_ptr<Communicator> make_transport_communicator(std::unique_ptr<Transport> transport, const Clock& clock);

}  // namespace krigtune::engine
