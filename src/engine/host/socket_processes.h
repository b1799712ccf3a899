#pragma once
#include <memory>
#include <string>

#include "host/processes.h"
#include "krigtune/core/clock.h"

namespace krigtune {

/// Where the processes of a job find one another: rank 0 listens at host:port.
struct Rendezvous {
  int rank = 0;
  int size = 1;
  std::string host;
  int port = 0;
  double patience_s = 60.0;  ///< for the last to come
};

/// Processes joined by TCP: each transport is a full mesh of connections of its own, so that several can be used at
/// once. Throws EnvironmentError where they do not find one another. `clock` must outlive it.
std::unique_ptr<Processes> connect_by_sockets(const Rendezvous& rendezvous, const Clock& clock);

}  // namespace krigtune
