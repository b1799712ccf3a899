#pragma once
#include <memory>

#include "core/clock.h"
#include "engine/host/communicator.h"
#include "engine/host/processes.h"

namespace krigtune::engine {

/// A communicator whose ranks are processes. Bit by bit the results of ThreadGroup's. `clock` must outlive it.
std::unique_ptr<Communicator> make_transport_communicator(std::unique_ptr<Transport> transport, const Clock& clock);

}  // namespace krigtune::engine
